"""Fit each baseline on the train split; score validation, and the holdout row by row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.figures import BaselineFigures
from components.common.records import step
from components.common.rows import read_part, write_frame
from components.common.scores import mean_scores
from components.common.settings import ProjectSettings
from training_core.task import Preprocessor, Task

Predictions = dict[str, npt.NDArray[np.float64]]  # part -> probability of each row


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    baselines: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "train_baseline", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        task = context.project.task()
        manifest = read_json(splits)
        train = read_part(context, manifest, "train")
        scored = {part: read_part(context, manifest, part) for part in ("validation", "holdout")}
        predictions = fit_baselines(task, context.project.settings, train, scored)
        truth = task.target(scored["validation"])
        validation = {
            name: mean_scores(truth, parts["validation"]) for name, parts in predictions.items()
        }
        holdout = pd.DataFrame({name: parts["holdout"] for name, parts in predictions.items()})
        scratch = context.home / "scratch" / f"{run_key}-baselines"
        write_json(
            baselines,
            {
                "format": "evertrain/baselines/1",
                "holdout_predictions": write_frame(context.store, holdout, scratch),
            },
        )
        context.say(BaselineFigures(validation=validation))
        log_metrics(
            metrics, {f"{name}_log_loss": values["log_loss"] for name, values in validation.items()}
        )


def fit_baselines(
    task: Task,
    settings: ProjectSettings,
    train: pd.DataFrame,
    scored: dict[str, pd.DataFrame],
) -> dict[str, Predictions]:
    """Return each baseline's predictions for each frame of `scored`, by name."""
    preprocessor = task.preprocessor().fit(train)
    target = task.target(train)
    prior = float(target.mean())
    found: dict[str, Predictions] = {
        "prior": {part: np.full(len(rows), prior) for part, rows in scored.items()},
        "input_independent": _input_independent(task, settings, preprocessor, train, scored),
    }
    if settings.baselines.table:
        found["table"] = _table(settings, target, train, scored)
    if settings.baselines.logistic:
        found["logistic"] = _logistic(preprocessor, target, train, scored)
    return found


def _input_independent(
    task: Task,
    settings: ProjectSettings,
    preprocessor: Preprocessor,
    train: pd.DataFrame,
    scored: dict[str, pd.DataFrame],
) -> Predictions:
    """The network itself, trained on inputs that say nothing."""
    import torch

    from training_core.checks.short_training import input_independent, without_information
    from training_core.evaluation import outputs_of
    from training_core.examples import Examples

    torch.manual_seed(settings.training.seed)
    blind = input_independent(
        task,
        task.build_model(preprocessor),
        Examples.from_frame(task, preprocessor, train),
        steps=settings.baselines.input_independent_steps,
        training=settings.training,
    )
    found = {}
    for part, rows in scored.items():
        examples = without_information(Examples.from_frame(task, preprocessor, rows))
        outputs = outputs_of(blind, examples, device=torch.device("cpu"))
        found[part] = task.predict(outputs).double().numpy()
    return found


def _table(
    settings: ProjectSettings,
    target: npt.NDArray[np.float32],
    train: pd.DataFrame,
    scored: dict[str, pd.DataFrame],
) -> Predictions:
    """A rate for each cell of a few columns, drawn towards the prior where rows are few."""
    columns, weight = settings.baselines.table, settings.baselines.table_smoothing
    prior = float(target.mean())
    cells = train[columns].assign(y=target).groupby(columns, dropna=False)["y"].agg(["sum", "size"])
    rate = ((cells["sum"] + weight * prior) / (cells["size"] + weight)).rename("rate").reset_index()
    return {
        part: rows[columns]
        .merge(rate, on=columns, how="left")["rate"]
        .fillna(prior)
        .to_numpy(dtype=np.float64)
        for part, rows in scored.items()
    }


def _logistic(
    preprocessor: Preprocessor,
    target: npt.NDArray[np.float32],
    train: pd.DataFrame,
    scored: dict[str, pd.DataFrame],
) -> Predictions:
    """Logistic regression on the network's own features, categories one-hot."""
    from scipy.sparse import csr_matrix, hstack
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    def parts_of(rows: pd.DataFrame) -> tuple[list[npt.NDArray[np.int64]], list[csr_matrix]]:
        arrays = preprocessor.transform(rows).values()
        flat = [a.reshape(len(rows), -1) for a in arrays if a.size]  # no categories: no columns
        whole = [a for a in flat if np.issubdtype(a.dtype, np.integer)]
        return whole, [csr_matrix(a) for a in flat if not np.issubdtype(a.dtype, np.integer)]

    encoder = OneHotEncoder(handle_unknown="ignore")
    whole, numbers = parts_of(train)
    one_hot = [encoder.fit_transform(np.hstack(whole))] if whole else []
    model = LogisticRegression(max_iter=300, tol=1e-3)
    model.fit(hstack([*one_hot, *numbers]).tocsr(), target)
    found = {}
    for part, rows in scored.items():
        whole, numbers = parts_of(rows)
        one_hot = [encoder.transform(np.hstack(whole))] if whole else []
        found[part] = model.predict_proba(hstack([*one_hot, *numbers]).tocsr())[:, 1]
    return found
