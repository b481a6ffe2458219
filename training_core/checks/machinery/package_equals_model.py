"""The packaged model on raw rows against the model on the tensors that it was trained on."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from training_core import package
from training_core.checks.contract import Check, Finding
from training_core.checks.graph.calling import outputs_of
from training_core.checks.machinery.another_process import (
    NoProcess,
    Raised,
    rows_apart,
    transformed_elsewhere,
)
from training_core.checks.machinery.predictions import Predictions, coarse, out_of_range
from training_core.checks.machinery.small_runs import trained_copy
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.errors import TrainingFailed
from training_core.examples import Examples
from training_core.task import MultilabelTask

_ROWS = 96  # of train and of validation each
_ALONE = 6  # rows that are predicted one at a time
_TOLERANCE = 1e-4  # of the predictions' size; an exported graph adds up in another order


class PackageEqualsModel(Check):
    """Exports the network once, as the end of a long training would."""

    name = "package_equals_model"
    looks_at = "the packaged model predicts from raw rows what the network does from its tensors"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        model = trained_copy(subject).eval()
        broken = (
            self._restless(subject, model)
            or self._rounded(subject, model)
            or self._preprocessor(subject)
        )
        if broken:
            return broken
        note = ""
        try:
            broken = self._elsewhere(subject)
        except NoProcess as reason:
            note = f"; not compared in another process: {reason}"
        return broken or self._packaged(subject, model, note=note)

    # ---- before anything is exported -----------------------------------------------------------

    def _restless(self, subject: Subject, model: nn.Module) -> Finding | None:
        one, other = (_expected(subject, model, subject.batch(_ROWS), seed=s) for s in (1, 2))
        apart = _apart(one, other)
        if apart <= _TOLERANCE:
            return None
        return self.failed(
            f"in eval mode the same rows are predicted differently each time, by {apart:.1%} of "
            "the predictions' size",
            measured=apart,
            limit=_TOLERANCE,
            advice="draw nothing at random in eval mode: give F.dropout training=self.training",
        )

    def _rounded(self, subject: Subject, model: nn.Module) -> Finding | None:
        batch = subject.batch(_ROWS)
        outputs = outputs_of(model, batch).double().numpy()
        few = coarse(_expected(subject, model, batch), outputs, subject.task.kind)
        if not few:
            return None
        return self.failed(
            f"predictions are only {few}: they rank nothing any more",
            advice="let the task's predict return probabilities, not classes or rounded ones",
        )

    def _preprocessor(self, subject: Subject) -> Finding | None:
        """Rebuild the preprocessor from its state as JSON, as a package does."""
        fitted = subject.preprocessor
        try:
            state = json.loads(json.dumps(fitted.state_dict()))
        except (TypeError, ValueError) as error:
            return self.failed(
                f"the state of {type(fitted).__name__} is no JSON: {error}",
                advice="return plain numbers, texts, lists and dicts from state_dict",
            )
        rebuilt = type(fitted).from_state_dict(state)
        frame = subject.train.head(_ROWS)
        wrong = rows_apart(fitted.transform(frame.copy()), rebuilt.transform(frame.copy()))
        if not wrong:
            return None
        return self.failed(
            f"{type(fitted).__name__}, rebuilt from its state as JSON, transforms the same rows "
            f"otherwise: {wrong}",
            advice="keep all that fit learns in state_dict; JSON turns the keys of dicts into text",
        )

    def _elsewhere(self, subject: Subject) -> Finding | None:
        """Transform rows in another process, as a server would."""
        frame = subject.train.head(_ROWS)
        try:
            found = transformed_elsewhere(subject.preprocessor, frame)
        except Raised as error:
            return self.failed(
                f"{type(subject.preprocessor).__name__}, loaded from its state in another process, "
                f"transforms no rows: {error}",
                advice="keep all that fit learns in state_dict, and none of it in a module",
            )
        wrong = rows_apart(subject.preprocessor.transform(frame.copy()), found)
        if not wrong:
            return None
        return self.failed(
            f"{type(subject.preprocessor).__name__}, loaded from its state in another process, "
            f"makes other tensors of the same rows: {wrong}",
            advice="Python's hash() of texts and the order of sets are others in each process: "
            "take zlib.crc32 or hashlib, and sort sets",
        )

    # ---- the package ---------------------------------------------------------------------------

    def _packaged(self, subject: Subject, model: nn.Module, *, note: str) -> Finding:
        with tempfile.TemporaryDirectory() as place:
            try:
                loaded = self._write(subject, model, Path(place))
            except TrainingFailed as error:
                return self.failed(
                    error.what.splitlines()[0],
                    advice=error.hint.rstrip(".") or "make the network exportable",
                )
            except (OSError, TypeError) as error:
                return self.failed(
                    f"the network cannot be packaged: {type(error).__name__}: {error}",
                    advice="define the preprocessor's class in a module of its own",
                )
            return self._compare(subject, model.eval(), loaded, note=note)

    def _write(self, subject: Subject, model: nn.Module, folder: Path) -> package.Package:
        package.write_package(
            folder,
            task=subject.task,
            preprocessor=subject.preprocessor,
            model=model,
            sample=subject.train.head(8).copy(),
            facts={},
        )
        return package.Package(folder, type(subject.preprocessor))

    def _compare(
        self, subject: Subject, model: nn.Module, loaded: package.Package, *, note: str
    ) -> Finding:
        most = 0.0
        for each in _ways(subject):
            examples = subject.held_back if each.validation else subject.examples
            tensors = examples.take(torch.tensor(each.rows))
            expected = _expected(subject, model, tensors)
            wrong = out_of_range(expected, subject.task.kind)
            if wrong:
                return self.failed(
                    f"predictions are {wrong}, which a {subject.task.kind} task has not",
                    advice="mend the task's predict",
                )
            try:
                found = np.concatenate([_serve(loaded, frame) for frame in each.frames])
            except KeyError as error:
                return self.failed(
                    f"the packaged model cannot predict {each.said} (KeyError: {error})",
                    advice="read no label in transform, and no column that `columns` does not name",
                )
            apart = _apart(found, expected)
            most = max(most, apart)
            if not apart <= _TOLERANCE:
                return self._differs(loaded, each, tensors, apart)
        return self.passed(
            f"raw rows are predicted as their tensors are, whatever their order, index, number "
            f"and label: within {most:.1e} of the predictions' size{note}",
            measured=most,
            limit=_TOLERANCE,
        )

    def _differs(
        self, loaded: package.Package, which: _Way, tensors: Examples, apart: float
    ) -> Finding:
        measured = {"measured": apart, "limit": _TOLERANCE}
        frame = which.frames[0]
        if _apart(_serve(loaded, frame), _serve(loaded, frame)) > _TOLERANCE:
            return self.failed(
                "the packaged model predicts the same rows differently each time",
                advice="export the network in eval mode: dropout was left on",
                **measured,
            )
        trained = {name: array[: len(frame)].numpy() for name, array in tensors.arrays.items()}
        wrong = rows_apart(trained, loaded.preprocessor.transform(frame.copy()))
        because = f" ({wrong} as in training)" if wrong else ""
        return self.failed(
            f"the packaged model predicts {which.said} otherwise than the network does, by "
            f"{apart:.1%} of the predictions' size{because}",
            advice="do in the preprocessor's transform all that training does to a row, row by "
            "row, from what fit has learned alone",
            **measured,
        )


@dataclass(frozen=True)
class _Way:
    """A way to ask for predictions.

    Attributes:
        said: In words.
        rows: Which rows, in which order.
        frames: The same, as they are served: one call each.
        validation: Whether they are rows of the validation split.
    """

    said: str
    rows: list[int]
    frames: list[pd.DataFrame]
    validation: bool = False


def _ways(subject: Subject) -> list[_Way]:
    task, columns = subject.task, subject.preprocessor.columns
    labels = list(task.labels) if isinstance(task, MultilabelTask) else [task.label]
    if task.kind == "sequence":  # a language model reads what it predicts
        labels = [label for label in labels if label not in columns]
    raw, later = subject.train.head(_ROWS), subject.validation.head(_ROWS)
    rows, few = list(range(len(raw))), list(range(min(_ALONE, len(raw))))
    index = pd.Index([f"row {row}" for row in rows])
    return [
        _Way("rows of the train split", rows, [raw]),
        _Way("rows one at a time", few, [raw.iloc[[row]] for row in few]),
        _Way("rows in another order", rows[::-1], [raw.iloc[::-1]]),
        _Way("rows with another index", rows, [raw.set_axis(index)]),
        _Way("rows with columns in another order", rows, [raw[raw.columns[::-1]]]),
        _Way("rows without label", rows, [raw.drop(columns=labels, errors="ignore")]),
        _Way("rows of the validation split", list(range(len(later))), [later], validation=True),
    ]


def _serve(loaded: package.Package, frame: pd.DataFrame) -> Predictions:
    return np.asarray(loaded.predict(frame.copy()), dtype=np.float64)


@torch.no_grad()
def _expected(subject: Subject, model: nn.Module, examples: Examples, *, seed: int = 0) -> Any:
    """Return predictions of the network in eval mode; float64, first dimension N."""
    seed_everything(seed)
    return subject.task.predict(model(**examples.arrays)).double().numpy()


def _apart(found: Predictions, expected: Predictions) -> float:
    """Return the largest difference, as a share of the predictions' size."""
    if found.shape != expected.shape:
        return float("inf")
    if not expected.size:
        return 0.0
    size = max(float(np.abs(expected).mean()), float(expected.std()), 1e-12)
    apart = np.where(np.isnan(found) & np.isnan(expected), 0.0, np.abs(found - expected))
    return float(np.nan_to_num(apart, nan=np.inf).max()) / size
