"""Tell who asked for it how a run ended: once, within a time, and never at the run's cost.

The sentences are the report's own (`words.py`).

`runs/<run>/alerted.json` is created (only if absent) before anything is sent, and completed after.
So a run is told at most once, however many processes close it: an exit handler that is tried
again, a command that closes a killed run. The price is the other failure: a process that is killed
in the seconds between leaves `status: sending`, and nobody tries again, for it cannot be known what
had arrived. An alert that comes twice teaches people to pay no heed to alerts; the run itself, its
record and its report are there in either case.
"""

from __future__ import annotations

import math
import sys
from threading import Thread
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict

from components.common.alert_channels import open_channel
from components.common.alert_settings import AlertSettings
from components.common.layout import alerted_key, location
from components.common.project import Project
from components.common.records import StepRecord, read_records
from components.common.run_record import RunRecord
from components.report_run import words
from components.report_run.formats import short, title
from components.report_run.pictures import cluster_unit
from components.report_run.seen import Seen, read
from infra.alerts.alert import Alert, Channel, Difference, Outcome
from infra.alerts.sending import send_all
from infra.errors import OutsideError
from infra.store import ObjectStore
from training_core.errors import ConfigurationError

_MOST, _LONGEST = 10, 600  # reasons and differences; characters of one


class Told(BaseModel):
    """What became of an alert on one channel.

    Attributes:
        status: `not_asked`: the channel is for other outcomes; `sending`: its process was killed.
        reason: Why it failed.
    """

    model_config = ConfigDict(extra="forbid")

    status: Literal["sending", "sent", "failed", "not_asked"]
    reason: str = ""
    attempts: int = 0
    seconds: float = 0.0


class Alerted(BaseModel):
    """`alerted.json`: that a run was told of, and how that went."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/alerted/1"] = "evertrain/alerted/1"
    run: str
    outcome: str
    status: Literal["sending", "done"]
    channels: dict[str, Told]


def alert_each(project: Project, store: ObjectStore, runs: list[RunRecord]) -> None:
    """As `alert_once`, of several runs side by side: it takes no longer than of one."""
    threads = [Thread(target=alert_once, args=(project, store, run), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def alert_once(project: Project, store: ObjectStore, run: RunRecord) -> None:
    """Tell of a run, unless that was done or begun before; whatever goes wrong, only say so.

    Args:
        project: Its `alerts` say who is told of what.
        store: Holds the run's records.
        run: As it ended.
    """
    settings = project.settings.alerts
    if not settings.channels:
        return
    try:
        _alert_once(settings, store, run)
    except OutsideError as error:
        _say(f"of run {run.run} nobody is told: {error.what}")
    except Exception as error:  # noqa: BLE001 (an alert is never the run's undoing)
        _say(f"of run {run.run} nobody may have been told: {type(error).__name__}")


def _alert_once(settings: AlertSettings, store: ObjectStore, run: RunRecord) -> None:
    records = read_records(store, run.run)
    alert = alert_of(run, records, report=location(store, run.report))
    asked = [name for name, c in _named(settings) if alert.outcome in c.on]
    told = {n: Told(status="sending" if n in asked else "not_asked") for n in settings.names}
    status: Literal["sending", "done"] = "sending" if asked else "done"
    begun = Alerted(run=run.run, outcome=alert.outcome, status=status, channels=told)
    if not store.create(alerted_key(run.run), _written(begun)) or not asked:
        return
    told |= deliver(settings, alert, only=asked)
    for name in asked:
        if told[name].status == "failed":
            _say(f"{name!r} could not be told of run {run.run}: {told[name].reason}")
    ended = begun.model_copy(update={"status": "done", "channels": told})
    store.put(alerted_key(run.run), _written(ended))


def deliver(settings: AlertSettings, alert: Alert, *, only: list[str]) -> dict[str, Told]:
    """Send by the channels that are named; say what became of it."""
    timeout = settings.timeout
    told: dict[str, Told] = {}
    channels: list[Channel] = []
    for name, channel in _named(settings):
        if name in only:
            try:
                channels.append(open_channel(channel, timeout=timeout))
            except ConfigurationError as error:
                told[name] = Told(status="failed", reason=error.what)
    for channel, sending in zip(channels, send_all(channels, alert, timeout=timeout), strict=True):
        told[channel.name] = Told(
            status="sent" if sending.sent else "failed",
            reason=sending.reason,
            attempts=sending.attempts,
            seconds=sending.seconds,
        )
    return told


def alert_of(run: RunRecord, records: dict[str, StepRecord], *, report: str) -> Alert:
    """Say of a run what its report says, in the same words.

    Args:
        run: As it ended.
        records: What its steps left.
        report: Where the page is.
    """
    seen = read(records)
    ended = words.outcome(run, seen.promote_model)
    proposed = seen.promote_model is not None and seen.promote_model.outcome == "proposed"
    outcome = "proposed" if proposed and run.status == "finished" else ended.replace(" ", "_")
    evaluated = seen.evaluate_model
    own = evaluated.metrics.get("challenger", {}) if evaluated else {}
    value = own.get(evaluated.metric) if evaluated else None
    return Alert(
        project=run.project,
        run=run.run,
        outcome=cast(Outcome, outcome),
        headline=words.headline(run, ended),
        reasons=tuple(short(reason, _LONGEST) for reason in _reasons(run)[:_MOST]),
        hint=words.next_step(run, ended, evaluated),
        champion_before=run.champion_before,
        champion_after=run.champion_after,
        metric=title(evaluated.metric) if evaluated else "",
        value=value if value is not None and math.isfinite(value) else None,
        differences=_differences(seen),
        seconds=run.seconds,
        report=report,
    )


def _reasons(run: RunRecord) -> list[str]:
    return [words.main_reason(run), *run.reasons[1:]]


def _differences(seen: Seen) -> tuple[Difference, ...]:
    evaluated, unit = seen.evaluate_model, cluster_unit(seen.snapshot_data)
    if evaluated is None:
        return ()
    return tuple(
        Difference(
            against=c.against,
            difference=c.difference,
            low=c.low,
            high=c.high,
            words=words.difference(c, metric=evaluated.metric, unit=unit),
        )
        for c in evaluated.comparisons[:_MOST]
    )


def _named(settings: AlertSettings) -> list[tuple[str, Any]]:
    return list(zip(settings.names, settings.channels, strict=True))


def _written(alerted: Alerted) -> bytes:
    return alerted.model_dump_json(indent=1).encode()


def _say(text: str) -> None:
    print(f"alert: {text}", file=sys.stderr, flush=True)
