"""The score of each row by each model: of the periods that judge, and of each date's holdout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from components.common.data_figures import SplitFigures
from components.common.decision_figures import EvaluateFigures
from components.common.metrics import mean_scores
from components.common.predictions import SEPARATOR, from_columns
from components.common.row_rules import cut
from components.common.rows import clusters_of, times_of
from components.common.tables import NUMBER, LocalObject, add_view, open_tables
from pipelines.backtest.arriving import files
from pipelines.backtest.notes import Note
from pipelines.backtest.replay import model_folder, records_of
from pipelines.backtest.schedule import Period
from pipelines.backtest.settings import Place

if TYPE_CHECKING:
    from training_core.task import Task

CLUSTER = "cluster"
# What a row has no value of its own of is judged by what has one.
_BY_ROW = {
    "auc": "log_loss", "average_precision": "log_loss", "f1": "log_loss",
    "calibration_error": "log_loss", "perplexity": "log_loss", "rmse": "squared_error",
    "r2": "squared_error", "quantile_loss_10": "absolute_error",
    "quantile_loss_90": "absolute_error",
}  # fmt: skip


@dataclass(frozen=True)
class Models:
    """The models of a backtest, each loaded once."""

    place: Place
    task: Task
    loaded: dict[str, Any]

    def scores(self, rows: pd.DataFrame, truth: Any, names: Sequence[str]) -> pd.DataFrame:
        """The judged metric of each row, a column a model; lower is better."""
        metric = judged_metric(self.place)
        found = {}
        for name in names:
            predicted = self._package(name).predict(rows)
            found[name] = mean_scores(truth, predicted, kind=self.task.kind)[metric]
        return pd.DataFrame(found)

    def _package(self, name: str) -> Any:
        if name not in self.loaded:
            from training_core.package import Package

            folder = model_folder(self.place, name)
            self.loaded[name] = Package(folder, type(self.task.preprocessor()))
        return self.loaded[name]


def judged_metric(place: Place) -> str:
    """The metric of a row that decides here: lower is better."""
    return row_metric(place.real.settings.decision.metric)


def row_metric(metric: str) -> str:
    """What is judged by in its stead where a row has no such value of its own."""
    return _BY_ROW.get(metric, metric)


def score_period(models: Models, period: Period, names: Sequence[str]) -> pd.DataFrame | None:
    """Return the scores of a period's rows by each model, from the file if they are there.

    A column a model, and one with each row's cluster; None where no labelled row is in the period.
    """
    place = models.place
    sources = [f for f in files(place) if period.name <= f.stem < f"{period.end:%Y-%m-%d}"]
    total = sum(pq.read_metadata(f).num_rows for f in sources)
    file = place.folder / "scores" / f"{period.span}.parquet"
    known = _read(file, rows=total)
    missing = [name for name in names if known is None or name not in known]
    if missing or known is None:
        rows = _kept(place, sources)
        if len(rows):
            column = place.real.settings.data.time_column
            assert column is not None
            rows = rows[times_of(rows, column) < period.end]
        truth = models.task.target(rows) if len(rows) else np.empty(0)
        if len(rows):
            from training_core.examples import without_label  # it imports torch

            labelled = ~without_label(truth, kind=models.task.kind)
            rows, truth = rows[labelled], truth[labelled]
        if not len(rows):
            return None
        found = models.scores(rows, truth, missing)
        if known is None:
            days = clusters_of(rows, place.project.settings)
            known = pd.DataFrame({CLUSTER: days.astype(str).to_numpy()})
        known = pd.concat([known, found], axis=1)
        _write(file, known, rows=total)
    return known[[CLUSTER, *names]]


def score_holdout(
    models: Models, date: str, note: Note, names: Sequence[str]
) -> pd.DataFrame | None:
    """Return the scores of a date's holdout by each model; None: its run did not get there.

    The rows are those that evaluate_model compared on, found again by their key.
    """
    place = models.place
    file = place.folder / "holdouts" / f"{date}.parquet"
    known = _read(file, rows=0)
    missing = [name for name in names if known is None or name not in known]
    if not missing and known is not None:
        return known
    records = records_of(place, note)
    if "evaluate_model" not in records or not records["evaluate_model"].figures:
        return None
    compared = EvaluateFigures.model_validate(records["evaluate_model"].figures)
    content = place.store.get(compared.predictions)
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".rows")
    scratch.write_bytes(content)
    key = place.real.settings.data.row_key
    held = pd.read_parquet(scratch)
    truths = [c for c in held if c == "truth" or str(c).startswith(f"truth{SEPARATOR}")]
    held = held[[*key, *truths]]
    scratch.unlink()
    part = SplitFigures.model_validate(records["split_data"].figures).parts["holdout"]
    sources = [f for f in files(place) if (place.data / f.name).exists() and f.stem < date]
    if place.real.settings.split.by == "time" and part.start:
        first = max((f.stem for f in sources if f.stem <= part.start[:10]), default="")
        sources = [f for f in sources if f.stem >= first]
    raw = pd.concat([pd.read_parquet(f) for f in sources], ignore_index=True)
    rows = held.merge(raw.drop_duplicates(key, keep="last"), on=key, how="inner")
    truth = from_columns(rows[truths])["truth"]
    if models.task.kind in ("multiclass", "sequence"):  # kept as real numbers, like all columns
        truth = truth.astype(np.int64)
    found = models.scores(rows, truth, missing)
    if known is None:
        days = clusters_of(rows, place.project.settings)
        known = pd.DataFrame({CLUSTER: days.astype(str).to_numpy()})
    known = pd.concat([known, found], axis=1)
    _write(file, known, rows=0)
    return known


def _kept(place: Place, sources: list[Path]) -> pd.DataFrame:
    """Rows of files, but for those that a row rule would put aside."""
    settings, kept = place.project.settings, []
    for file in sources:
        count = pq.read_metadata(file).num_rows
        frame = pd.read_parquet(file)
        if settings.validation.row_rules:
            with open_tables(
                settings.data, readable=[file.parent], scratch=place.home / "scratch"
            ) as connection:
                add_view(connection, "rows", [LocalObject(file.name, file, count)])
                cut(connection, "rows", settings.validation.row_rules)
                query = f"SELECT {NUMBER} FROM located_kept ORDER BY 1"
                numbers = [row[0] for row in connection.execute(query).fetchall()]
            frame = frame.iloc[numbers]
        kept.append(frame)
    return pd.concat(kept, ignore_index=True) if kept else pd.DataFrame()


def _read(file: Path, *, rows: int) -> pd.DataFrame | None:
    """Scores that were kept, unless they are of other rows."""
    if not file.exists():
        return None
    if pq.read_schema(file).metadata.get(b"of") != str(rows).encode():
        return None
    return pd.read_parquet(file)


def _write(file: Path, scores: pd.DataFrame, *, rows: int) -> None:
    import pyarrow as pa

    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(".unfinished")
    table = pa.Table.from_pandas(scores, preserve_index=False)
    metadata = {**(table.schema.metadata or {}), b"of": str(rows).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), unfinished, compression="zstd")
    unfinished.replace(file)
