"""The packaged model: weights and graph (pt2), the fitted preprocessor, and what they were made of.

    package.json        sha256 of each file, columns, facts about the training
    network.pt2         torch.export of network and prediction, any number of rows
    preprocessor.json   state of the fitted preprocessor, plain data
    preprocessor.py     a copy of the preprocessor's source, for serving without this project

Loading executes nothing that came with the package: pt2 is a graph of operators, the preprocessor's
state is JSON, and its class comes from the installed code, not from the copy.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from training_core.errors import TrainingFailed
from training_core.joined import JOINED, JoinedPreprocessor
from training_core.task import Preprocessor, Task

_ROWS = 8192
FORMAT = "evertrain/package/1"
FILES = ("network.pt2", "preprocessor.json", "preprocessor.py")  # whose hash is in package.json


class _Serving(nn.Module):
    """From arrays to predictions in one graph."""

    def __init__(self, task: Task, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.task = task

    def forward(self, arrays: dict[str, Tensor]) -> Tensor:
        return self.task.predict(self.model(**arrays))


def write_package(
    folder: Path,
    *,
    task: Task,
    preprocessor: Preprocessor,
    model: nn.Module,
    sample: pd.DataFrame,
    facts: dict[str, Any],
) -> dict[str, str]:
    """Write a package and prove that it predicts what the model predicts.

    Args:
        folder: Made if it is not there.
        task: Turns outputs into predictions.
        preprocessor: Fitted.
        model: Trained; left in eval mode on the CPU.
        sample: Two raw rows or more; the graph is traced with them.
        facts: JSON-able; kept in `package.json` under `facts`.

    Returns:
        sha256 by file name, `package.json` included.

    Raises:
        TrainingFailed: The model cannot be exported, or the package predicts something else.
    """
    model = model.cpu().eval()
    arrays = {n: torch.from_numpy(a) for n, a in preprocessor.transform(sample).items()}
    export(_Serving(task, model), arrays, folder)
    source = Path(inspect.getfile(type(preprocessor))).read_text()
    sealed = seal(folder, task=task, preprocessor=preprocessor, source=source, facts=facts)
    with torch.no_grad():
        expected = task.predict(model(**arrays)).numpy()
    found = Package(folder, type(preprocessor)).predict(sample)
    if not np.allclose(expected, found, rtol=1e-4, atol=1e-5):
        raise TrainingFailed(
            "the packaged model predicts something else than the trained one "
            f"(largest difference {np.abs(expected - found).max():.2g})",
            hint="does the model's forward depend on anything but its inputs and weights?",
        )
    return sealed


def export(network: nn.Module, arrays: dict[str, Tensor], folder: Path) -> None:
    """Write `network.pt2`: a graph from arrays of any number of rows to predictions.

    Args:
        network: In eval mode, on the CPU.
        arrays: Of two rows or more, to trace it with.
        folder: Made if it is not there.

    Raises:
        TrainingFailed: It cannot be exported.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shapes = ({name: {0: torch.export.Dim.DYNAMIC} for name in arrays},)
    logging.getLogger("torch.export").setLevel(logging.ERROR)
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own deprecations while tracing
            program = torch.export.export(network, (arrays,), dynamic_shapes=shapes)
            torch.export.save(program, folder / "network.pt2")
    except Exception as error:
        raise TrainingFailed(
            f"the model cannot be exported: {type(error).__name__}: {str(error).splitlines()[0]}",
            hint="torch.export needs a forward without Python branches on tensor values; "
            "see the torch.export documentation",
        ) from error


def seal(
    folder: Path, *, task: Task, preprocessor: Preprocessor, source: str, facts: dict[str, Any]
) -> dict[str, str]:
    """Write what goes with an exported network, the manifest last; return the files' sha256."""
    state = json.dumps(preprocessor.state_dict(), indent=1)
    (folder / "preprocessor.json").write_text(state)
    (folder / "preprocessor.py").write_text(source)
    files = {name: _sha256(folder / name) for name in FILES}
    manifest = {
        "format": FORMAT,
        "kind": task.kind,
        "label": task.label,
        "classes": classes_of(task),
        "columns": preprocessor.columns,
        "preprocessor": type(preprocessor).__name__,
        "files": files,
        "facts": facts,
    }
    (folder / "package.json").write_text(json.dumps(manifest, indent=1))
    return {**files, "package.json": _sha256(folder / "package.json")}


def classes_of(task: Task) -> list[str]:
    """Return the names of a task's classes or labels, in the order of its predictions, if any."""
    named = getattr(task, "classes", ()) or getattr(task, "labels", ())
    return [str(each) for each in named]


def answers_as(manifest: dict[str, Any], task: Task) -> str:
    """Return why a package does not answer the question that a task asks; empty: it does.

    A package that is older than its list of classes is taken to have the task's.
    """
    if manifest.get("kind") != task.kind:
        return f"it is for a {manifest.get('kind')} task, and this is a {task.kind} one"
    if manifest.get("label") != task.label:
        return f"it predicts {manifest.get('label')!r}, and the label is {task.label!r}"
    classes, own = manifest.get("classes"), classes_of(task)
    if classes is not None and classes != own:
        told = [", ".join(names) or "not named" for names in (classes, own)]
        return f"its classes are {told[0]}, and the task's {told[1]}"
    return ""


class Package:
    """A packaged model, loaded afresh.

    Args:
        folder: As written by `write_package`.
        preprocessor_class: From the installed code.

    Raises:
        TrainingFailed: A file is missing, damaged, or of another format.
    """

    def __init__(self, folder: Path, preprocessor_class: type[Preprocessor]) -> None:
        self.folder = folder
        try:
            self.manifest: dict[str, Any] = json.loads((folder / "package.json").read_text())
            if self.manifest.get("format") != FORMAT:
                raise ValueError(f"its format is {self.manifest.get('format')!r}")
            for name in FILES:
                if _sha256(folder / name) != self.manifest["files"][name]:
                    raise ValueError(f"{name} is not the file that was packaged")
            state = json.loads((folder / "preprocessor.json").read_text())
            self.preprocessor: Preprocessor
            if state.get("format") == JOINED:
                self.preprocessor = JoinedPreprocessor.from_state_dict(state, preprocessor_class)
            else:
                self.preprocessor = preprocessor_class.from_state_dict(state)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.network = torch.export.load(folder / "network.pt2").module()
        except Exception as error:  # damage shows as almost any exception
            raise TrainingFailed(
                f"the model package in {folder} cannot be used: {error}",
                hint="it is damaged or of another version; the registry holds the others",
            ) from error

    @property
    def columns(self) -> list[str]:
        """Raw columns it reads, each once: a preprocessor may use one for two inputs."""
        columns: list[str] = self.manifest["columns"]
        return list(dict.fromkeys(columns))

    @torch.no_grad()
    def predict(self, frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Score N raw rows; float64 [N], or [N, …] as the kind of task has it; of none: [0]."""
        pieces: list[npt.NDArray[np.float64]] = []
        for start in range(0, len(frame), _ROWS):
            arrays = self.preprocessor.transform(frame.iloc[start : start + _ROWS])
            tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
            pieces.append(self.network(tensors).double().numpy())
        return np.concatenate(pieces) if pieces else np.zeros(0)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
