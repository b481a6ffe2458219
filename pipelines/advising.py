"""What an advice rests on: drift of the newest data, the champion's newest labels, backtests."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import datetime

import pandas as pd

from components.common.advice import Advice, Kept, advise, moves_of
from components.common.cache import Cache
from components.common.champion import PromotionEntry, PromotionLog, champion_entry
from components.common.champion_model import load_entry
from components.common.data_figures import SplitFigures, ValidateFigures
from components.common.decision_figures import EvaluateFigures
from components.common.decision_settings import DecisionSettings
from components.common.layout import home, project_store
from components.common.local import fetch_objects
from components.common.metrics import mean_scores
from components.common.predictions import some_from_columns
from components.common.project import Project
from components.common.records import read_records
from components.common.rows import clusters_of, times_of
from components.common.sources import open_source
from components.common.tables import add_view, columns_of, open_tables, quoted, text
from components.common.values import utc
from components.snapshot_data.taking import take_snapshot
from infra.errors import OutsideError
from infra.store import ObjectStore
from pipelines.backtest.reckoning import MONTH, interval_of
from pipelines.backtest.result import read_results, waiting_in
from pipelines.backtest.scoring import row_metric
from pipelines.backtest.settings import backtests
from pipelines.examining import examine_newest
from pipelines.runs import run_names
from training_core.errors import EvertrainError

_MOST_ROWS = 200_000  # the newest labelled ones that the champion is scored on


@dataclass(frozen=True)
class Came:
    """What came after the data of the champion.

    Attributes:
        rows: The rows, labelled or not; the newest if they are very many.
        newest: Time of the last one.
        held: Keys and times of the rows around the champion's holdout.
    """

    rows: pd.DataFrame
    newest: datetime
    held: pd.DataFrame


def advice_for(project: Project, *, worth: float | None = None, validate: bool = False) -> Advice:
    """Advise on a project as it is now.

    What cannot be found out is said among the unknown, whatever the reason.

    Args:
        project: The project.
        worth: The smallest gain that is worth a training; None: the retraining noise.
        validate: Validate the newest data, and go by what has moved there; else by what the last
            run after the champion's found.
    """
    store, rule = project_store(project), project.settings.decision
    champion = champion_entry(PromotionLog(store).entries())
    least = worth if worth is not None else noise_of(store, champion, rule)
    if champion is None:
        return Advice(
            advice="retrain", retrain=True, gain=None, worth=least,
            reasons=["there is no champion yet"], unknown=[],
        )  # fmt: skip
    metric = row_metric(rule.metric)
    kept, months, failed = None, 0.0, []
    try:
        split = _split_of(store, champion)
        if split is not None and project.settings.data.time_column is not None:
            came = what_came(project, split)
            if came is not None:
                months = (came.newest - _end(split)).total_seconds() / 86_400 / MONTH
                kept = kept_by(project, store, champion, came, metric)
    except (EvertrainError, OutsideError, ValueError, KeyError) as error:
        words = error.what if isinstance(error, EvertrainError | OutsideError) else repr(error)
        failed.append(f"the champion could not be scored on the newest labels: {words}")
    moved = None
    try:
        seen = examine_newest(project, store) if validate else newest_validated(store, champion)
        moved = moves_of(seen)
    except (EvertrainError, OutsideError) as error:
        failed.append(f"the newest data could not be validated: {error.what}")
    found = advise(
        moved=moved,
        kept=kept,
        waiting=waiting_in(read_results(backtests(project)), metric, months),
        worth=least,
        confidence=rule.confidence,
    )
    return found.model_copy(update={"unknown": [*failed, *found.unknown]})


def noise_of(store: ObjectStore, champion: PromotionEntry | None, rule: DecisionSettings) -> float:
    """The retraining noise: as the settings say, else as the champion's run measured it; else 0."""
    if rule.retraining_noise is not None or champion is None:
        return rule.retraining_noise or 0.0
    record = read_records(store, champion.run).get("evaluate_model")
    if record is None or not record.figures:
        return 0.0
    noise = EvaluateFigures.model_validate(record.figures).noise
    return noise.deviation if noise is not None else 0.0


def newest_validated(store: ObjectStore, champion: PromotionEntry) -> ValidateFigures | None:
    """What validate_data last said of data newer than the champion's; None: nothing."""
    for run in reversed(run_names(store)):
        if run <= champion.run:
            return None
        record = read_records(store, run).get("validate_data")
        if record is not None and record.figures and record.run_key != champion.run_key:
            return ValidateFigures.model_validate(record.figures)
    return None


def what_came(project: Project, split: SplitFigures) -> Came | None:
    """Read the rows of the source that are newer than all that the champion's run had."""
    settings, folder = project.settings.data, home(project) / "cache"
    cache, column = Cache(folder), project.settings.data.time_column
    assert column is not None
    source = open_source(project.data_source)
    manifest = take_snapshot(source, settings=settings, before=None, cache=cache).manifest
    objects = fetch_objects(manifest, settings, cache)
    until, start = _end(split), split.parts["holdout"].start
    with open_tables(settings, readable=[folder], scratch=home(project) / "scratch") as connection:
        add_view(connection, "rows", objects)
        time = utc(column, columns_of(connection, "rows"))
        later = f"{time} > TIMESTAMPTZ {text(until.isoformat())}"
        rows = connection.execute(
            f"SELECT * FROM rows WHERE {later} ORDER BY {time} DESC LIMIT {_MOST_ROWS}"
        ).to_arrow_table()
        columns = ", ".join(quoted(name) for name in dict.fromkeys([*settings.row_key, column]))
        held = connection.execute(
            f"SELECT {columns} FROM rows WHERE NOT {later} AND {time} >= TIMESTAMPTZ {text(start)}"
        ).to_arrow_table()
    if not rows.num_rows:
        return None
    frame = rows.to_pandas()
    return Came(frame, times_of(frame, column).max().to_pydatetime(), held.to_pandas())


def kept_by(
    project: Project, store: ObjectStore, champion: PromotionEntry, came: Came, metric: str
) -> Kept | None:
    """Hold the champion's metric on later labels against that on the holdout it was judged on.

    None: none of the rows is labelled, or nobody knows what it was promoted on.
    """
    from training_core.examples import without_label  # it imports torch: a second and a half

    record = read_records(store, champion.run).get("evaluate_model")
    if record is None or not record.figures:
        return None
    task, settings = project.task(), project.settings
    truth = task.target(came.rows)
    known = ~without_label(truth, kind=task.kind)
    rows, truth = came.rows[known], truth[known]
    if not len(rows):
        return None
    predicted = load_entry(store, champion, task, home(project) / "cache").predict(rows)
    figures = EvaluateFigures.model_validate(record.figures)
    judged = pd.read_parquet(io.BytesIO(store.get(figures.predictions)))
    key = settings.data.row_key
    judged = judged.merge(came.held.drop_duplicates(key, keep="last"), on=key)
    if not len(judged):
        return None
    then = some_from_columns(judged, ["truth", "challenger"])
    promised = mean_scores(then["truth"].astype(truth.dtype), then["challenger"], kind=task.kind)[
        metric
    ]
    days = clusters_of(rows, settings)
    return Kept(
        metric=metric,
        promised=interval_of(promised, clusters_of(judged, settings), settings.decision),
        now=interval_of(
            mean_scores(truth, predicted, kind=task.kind)[metric], days, settings.decision
        ),
        rows=len(rows),
        clusters=int(days.nunique()),
    )


def _split_of(store: ObjectStore, champion: PromotionEntry) -> SplitFigures | None:
    record = read_records(store, champion.run).get("split_data")
    if record is None or not record.figures:
        return None
    return SplitFigures.model_validate(record.figures)


def _end(split: SplitFigures) -> datetime:
    """The newest labelled row that the champion's run had, in any part."""
    return max(datetime.fromisoformat(part.end) for part in split.parts.values())
