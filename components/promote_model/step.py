"""Promote: register the version, write the log entry, repair the aliases; in this order.

A crash between any two writes is mended by running the same again: the version is found by its run
key, the entry is recognised as this run's own, and the aliases follow the log.
"""

from __future__ import annotations

import getpass
import json
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from components.common.artifacts import read_json
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    repair_aliases,
)
from components.common.decision_figures import EvaluateFigures, PromoteFigures
from components.common.layout import finished_key, sha256_of, tracking_uri
from components.common.records import StepContext, step
from training_core.errors import StoppedByGate

if TYPE_CHECKING:
    from infra.registry import Registry

_REQUIREMENTS = ("torch", "pandas", "numpy", "mlflow")
TAG = "evertrain.run_key"


class Outputs(NamedTuple):
    outcome: str
    champion: str


def run(
    project: str, store: str, overrides: list[str], run_key: str, decision: str, model: str
) -> Outputs:
    """See `component.py`."""
    with step(
        "promote_model", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        verdict = EvaluateFigures.model_validate(read_json(decision))
        log = PromotionLog(context.store)
        entries = log.entries()
        last = entries[-1] if entries else None
        own = last if last and (last.action, last.run_key) == ("promote", run_key) else None
        before = champion_and_previous(entries[:-1] if own else entries)[0] or ""
        if verdict.verdict == "promote":
            if own is None:
                refuse_moved_champion(entries, verdict)
            registry = open_registry(context)
            entry = own or _promote(context, log, registry, verdict, Path(model))
            repair_aliases(log, registry, context.project.settings.name)
            figures = PromoteFigures(
                outcome="promoted",
                reason=f"version {entry.version} replaces champion {before}: {verdict.reasons[0]}"
                if before
                else f"version {entry.version} is the first champion, so floors and baselines "
                f"decided: {verdict.reasons[0]}",
                version=entry.version,
                entry=entry.number,
                champion_before=before,
                champion_after=entry.version,
            )
        else:
            if entries:
                repair_aliases(log, open_registry(context), context.project.settings.name)
            stays = f"champion {before} stays" if before else "there is still no champion"
            figures = PromoteFigures(
                outcome="held",
                reason=f"{stays}: {verdict.reasons[0]}",
                version="",
                entry=0,
                champion_before=before,
                champion_after=before,
            )
        context.say(figures)
        content = {"run": context.record.run, "outcome": figures.outcome}
        context.store.create(finished_key(run_key), json.dumps(content).encode())
        return Outputs(figures.outcome, figures.champion_after)


def open_registry(context: StepContext) -> Registry:
    """The project's model registry."""
    from infra.registry import Registry

    settings = context.project.settings
    return Registry(
        uri=tracking_uri(context.project), experiment=settings.tracking.experiment or settings.name
    )


def refuse_moved_champion(entries: list[PromotionEntry], verdict: EvaluateFigures) -> None:
    """Stop if the champion is not the one that was compared against.

    Raises:
        StoppedByGate: It moved since.
    """
    now = entries[-1].number if entries else 0
    if now != verdict.compared_entry:
        raise StoppedByGate(
            f"the champion moved since the comparison: promotion {now} came after "
            f"{verdict.compared_entry}",
            hint="run the same command again: it compares with the champion of now",
        )


def _promote(
    context: StepContext,
    log: PromotionLog,
    registry: Registry,
    verdict: EvaluateFigures,
    package: Path,
) -> PromotionEntry:
    """Register the package (once) and write the next entry of the log."""
    name, run_key = context.project.settings.name, context.record.run_key
    version = registry.find_version(name, tag=TAG, value=run_key)
    if version is None:
        version = _register(context, registry, verdict, package)
    files = {path.name: sha256_of(path) for path in sorted(package.iterdir()) if path.is_file()}
    facts = json.loads((package / "package.json").read_text())["facts"]
    entry = PromotionEntry(
        number=verdict.compared_entry + 1,
        action="promote",
        version=version,
        run=context.record.run,
        run_key=run_key,
        package=files,
        seen=facts["seen"],
        reason=verdict.reasons[0],
        who=f"evertrain run ({_user()})",
    )
    if not log.append(entry):
        raise StoppedByGate(
            f"another promotion took number {entry.number} at the same time",
            hint="run the same command again: it compares with the champion of now",
        )
    return entry


def _register(
    context: StepContext, registry: Registry, verdict: EvaluateFigures, package: Path
) -> str:
    from infra.tracking import Tracking

    settings = context.project.settings
    run_key = context.record.run_key
    tracking = Tracking(
        uri=tracking_uri(context.project), experiment=settings.tracking.experiment or settings.name
    )
    run = tracking.open_run(
        key=run_key,
        name=f"{settings.name} {run_key[:8]}",
        tags={"evertrain.run": context.record.run},
    )
    scores = verdict.metrics["challenger"].items()
    tracking.log_metrics(run, [(f"holdout_{name}", value, 0) for name, value in scores])
    version = registry.register(
        settings.name,
        run_id=run,
        package=package,
        serve_file=Path(__file__).with_name("serve.py"),
        code_files=[],
        tags={TAG: run_key, "evertrain.run": context.record.run},
        input_example=None,
        pip_requirements=[f"{p}=={package_version(p).partition('+')[0]}" for p in _REQUIREMENTS],
    )
    tracking.finish(run, "FINISHED")
    return version


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return "unknown user"
