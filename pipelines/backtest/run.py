"""A whole backtest: cut, replay, score, reckon, and write what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from components.common.advice import moves_of
from components.common.data_figures import ValidateFigures
from components.common.project import Project
from pipelines.backtest.arriving import cut_rows
from pipelines.backtest.notes import Note
from pipelines.backtest.page import write_page
from pipelines.backtest.policies import chosen_policies
from pipelines.backtest.reckoning import Replayed, reckon
from pipelines.backtest.replay import OnStep, records_of, replay
from pipelines.backtest.result import RESULT, BacktestResult
from pipelines.backtest.schedule import Period, parse_day, periods
from pipelines.backtest.scoring import Models, judged_metric, score_holdout, score_period
from pipelines.backtest.settings import Place, open_place
from pipelines.one_run import only_run
from training_core.errors import ConfigurationError

OnDate = Callable[[str, Note], None]


class Planned(NamedTuple):
    """What is to be done, checked before anything is."""

    place: Place
    schedule: list[Period]
    every: str
    policies: list[str]


@dataclass(frozen=True)
class _Scored:
    """Every date that is done, and code of how many versions did it."""

    replayed: list[Replayed]
    codes: int


def plan(
    project: Project, *, given: list[str], first: str, last: str, every: str, policies: list[str]
) -> Planned:
    """Check what was asked for.

    Raises:
        ConfigurationError: No such day, schedule or policy, or the project has no time column.
    """
    chosen = chosen_policies(policies)
    schedule = periods(parse_day(first, "--from"), parse_day(last, "--to"), every)
    place = open_place(project, given=given, first=first, every=every)
    return Planned(place, schedule, every, chosen)


def run_backtest(
    planned: Planned,
    *,
    on_step: OnStep = lambda date, step, event: None,
    on_date: OnDate = lambda date, note: None,
) -> BacktestResult:
    """Replay what is not replayed yet, and reckon; the page and result.json lie in the folder.

    Raises:
        ConfigurationError: No row is older than the first date, or no period could be scored.
        OutsideError: Another process has this backtest under way, or a run failed outside.
    """
    place, settings = planned.place, planned.place.real.settings
    with only_run(place.folder):
        cut_rows(place, planned.schedule, planned.every)
        scored = _score(planned, on_step, on_date)
        metric = judged_metric(place)
        reckoned = reckon(
            scored.replayed, policies=planned.policies, metric=metric, rule=settings.decision
        )
        if not reckoned.policies:
            raise ConfigurationError(
                "no period could be scored: " + "; ".join(reckoned.notes),
                hint=f"the runs are in {place.home / 'store' / 'runs'}: see their reports",
            )
        result = BacktestResult(
            project=settings.name,
            metric=metric,
            confidence=settings.decision.confidence,
            first=planned.schedule[0].name,
            last=f"{planned.schedule[-1].end - timedelta(days=1):%Y-%m-%d}",
            every=planned.every,
            periods=reckoned.periods,
            policies=reckoned.policies,
            gains=reckoned.gains,
            notes=[*_notes(planned, scored), *reckoned.notes],
        )
        (place.folder / RESULT).write_text(result.model_dump_json(indent=1))
        write_page(place.page, result)
    return result


def _score(planned: Planned, on_step: OnStep, on_date: OnDate) -> _Scored:
    place = planned.place
    models = Models(place, place.project.task(), {})
    replayed: list[Replayed] = []
    names: list[str] = []
    codes = set()
    done = replay(place, planned.schedule, on_step=on_step)
    for period, (date, note) in zip(planned.schedule, done, strict=True):
        codes.add(note.code)
        if note.model:
            names.append(date)
        records = records_of(place, note)
        seen = records.get("validate_data")
        figures = ValidateFigures.model_validate(seen.figures) if seen and seen.figures else None
        replayed.append(
            Replayed(
                period=period,
                outcome=note.outcome,
                reason=note.reason,
                model=note.model,
                seconds=note.seconds,
                models=list(names),
                scores=score_period(models, period, names) if names else None,
                holdout=score_holdout(models, date, note, names) if note.model else None,
                moved=moves_of(figures),
            )
        )
        on_date(date, note)
    return _Scored(replayed, len(codes))


def _notes(planned: Planned, scored: _Scored) -> list[str]:
    """What the schedule and the project make of the figures."""
    settings, notes = planned.place.real.settings, []
    metric = judged_metric(planned.place)
    if metric != settings.decision.metric:
        notes.append(
            f"judged by {metric}, for a row has no {settings.decision.metric} of its own; the "
            "pipeline's own decisions went by the latter"
        )
    if scored.codes > 1:
        notes.append(
            f"the dates were run by {scored.codes} versions of evertrain's code: remove "
            f"{planned.place.folder} to run them all by one"
        )
    return notes
