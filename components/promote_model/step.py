"""Promote or propose: register the version, write the log entry, repair the aliases; in this order.

A crash between any two writes is mended by running the same again: the version is found by its run
key, the entry is recognised as this run's own, and the aliases follow the log.
"""

from __future__ import annotations

import json
from importlib.metadata import version as package_version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import ValidationError

from components.common.aliases import repair_aliases
from components.common.artifacts import read_json
from components.common.champion import (
    PromotionEntry,
    PromotionLog,
    champion_and_previous,
    decision_on,
    state_of,
)
from components.common.champion_model import package_folder
from components.common.decision_figures import EvaluateFigures, PromoteFigures, SelectFigures
from components.common.ensemble_figures import EnsembleFigures
from components.common.layout import card_key, finished_key, hashes_of, key_record, tracking_uri
from components.common.promotion import TAG, enter, own_entry, tag_of, user_name
from components.common.records import StepContext, StepRecord, step
from components.common.refit_figures import DecidedFigures, RefitFigures
from components.promote_model.weights import taken_refit
from infra.errors import ObjectMissing

if TYPE_CHECKING:
    from infra.registry import Registry

_REQUIREMENTS = ("torch", "pandas", "numpy", "mlflow")


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
        verdict = DecidedFigures.model_validate(read_json(decision))
        log = PromotionLog(context.store)
        name = context.project.settings.name
        # a run that was decided before is a forced one; otherwise it may have been killed
        again = context.store.info(finished_key(run_key)) is None
        compared = verdict.compared_entry
        own = own_entry(log.entries(), run_key, compared) if again else None
        if verdict.verdict == "promote" or own is not None:
            registry = open_registry(context)
            entry = own or new_entry(
                context, verdict, Path(model), taken_refit(context, verdict, Path(model))
            )
            entry = enter(
                log,
                registry,
                name,
                entry,
                register=lambda: _register(context, registry, verdict, Path(model), entry),
                anew=not again,
                confirm=context.holding.confirm,
            )
            figures = entered(log.entries(), entry)
            package = Path(model)
            if hashes_of(package) != entry.package:  # a killed run's entry, of its refit
                package = package_folder(context.store, entry.package, context.cache)
            figures.card = describe(context, registry, verdict, package, entry.version)
        else:
            entries = log.entries()
            if entries:
                repair_aliases(log, open_registry(context), name)
            figures = held(champion_and_previous(entries)[0] or "", verdict.reasons[0])
        context.say(figures)
        content = {"run": context.record.run, "outcome": figures.outcome}
        context.store.create(finished_key(run_key), json.dumps(content).encode())
        return Outputs(figures.outcome, figures.champion_after)


def entered(entries: list[PromotionEntry], entry: PromotionEntry) -> PromoteFigures:
    """What came of a run's own entry; of a proposal that was decided meanwhile, the decision."""
    before = champion_and_previous(entries[: entry.number - 1])[0] or ""
    after = champion_and_previous(entries)[0] or ""
    state = state_of(entries, entry) if entry.action == "propose" else "approved"
    if state == "approved":
        outcome: Literal["promoted", "proposed"] = "promoted"
        words = (
            f"version {entry.version} replaces champion {before}: {entry.reason}"
            if before
            else f"version {entry.version} is the first champion, so floors and baselines "
            f"decided: {entry.reason}"
        )
    elif state == "open":
        outcome = "proposed"
        aim = f"to replace champion {before}" if before else "as the first champion"
        words = (
            f"version {entry.version} is proposed {aim}, and waits for a person "
            f"(evertrain approve PROJECT --version {entry.version}): {entry.reason}"
        )
    else:
        decision = decision_on(entries, entry)
        why = f" by {decision.who}: {decision.reason}" if decision else ""
        return held(after, f"version {entry.version} was proposed, and was {state}{why}")
    return PromoteFigures(
        outcome=outcome,
        reason=words,
        version=entry.version,
        entry=entry.number,
        champion_before=before,
        champion_after=after,
    )


def held(champion: str, reason: str) -> PromoteFigures:
    """The champion stays."""
    stays = f"champion {champion} stays" if champion else "there is still no champion"
    return PromoteFigures(
        outcome="held",
        reason=f"{stays}: {reason}",
        version="",
        entry=0,
        champion_before=champion,
        champion_after=champion,
    )


def describe(
    context: StepContext, registry: Registry, verdict: DecidedFigures, package: Path, version: str
) -> str:
    """Keep the version's model card beside the run, show it in the registry, return its key."""
    from components.promote_model.card import card

    settings, record, refit = context.project.settings, context.record, verdict.refit
    certified = refit if refit and refit.refitted == hashes_of(package) else None
    text = card(
        verdict,
        project=settings,
        version=version,
        run=record.run,
        run_key=record.run_key,
        package_manifest=json.loads((package / "package.json").read_text()),
        refit=certified,
        ensemble=_ensemble(context),
    )
    key = card_key(record.run)
    context.store.put(key, text.encode())
    registry.describe(settings.name, version, text, whole=f"{context.store.uri}/{key}")
    return key


def _ensemble(context: StepContext) -> EnsembleFigures | None:
    """What select_checkpoint has recorded of the candidate, if it is an ensemble."""
    try:
        key = key_record(context.record.run_key, "select_checkpoint")
        record = StepRecord.model_validate_json(context.store.get(key))
        return SelectFigures.model_validate(record.figures).ensemble
    except (ObjectMissing, ValidationError):
        return None


def open_registry(context: StepContext) -> Registry:
    """The project's model registry."""
    from infra.registry import Registry

    settings = context.project.settings
    return Registry(
        uri=tracking_uri(context.project), experiment=settings.tracking.experiment or settings.name
    )


def new_entry(
    context: StepContext, verdict: DecidedFigures, package: Path, refit: RefitFigures | None
) -> PromotionEntry:
    """What the verdict asks for: a promotion, or a proposal where a person decides."""
    facts = json.loads((package / "package.json").read_text())["facts"]
    approval = context.project.settings.decision.approval
    return PromotionEntry(
        number=0,
        action="propose" if approval else "promote",
        version="",
        run=context.record.run,
        run_key=context.record.run_key,
        package=hashes_of(package),
        seen=facts["seen"],
        reason="; ".join([verdict.reasons[0], *refit_words(context, verdict)]),
        who=f"evertrain run ({user_name()})",
        rehearsal=refit.rehearsal if refit else verdict.rehearsal,
        compared=verdict.compared_entry,
        fence=context.holding.token,
        refit_of=refit.judged if refit else {},
    )


def refit_words(context: StepContext, verdict: DecidedFigures) -> list[str]:
    """What became of the refit, in a sentence, where one was asked for."""
    if verdict.refit is not None:
        return [verdict.refit.reason]
    if context.project.settings.refit.enabled:
        return ["not trained again on all rows: the compiled pipeline has no step refit_model"]
    return []


def _register(
    context: StepContext,
    registry: Registry,
    verdict: EvaluateFigures,
    package: Path,
    entry: PromotionEntry,
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
        tags={
            TAG: tag_of(entry),
            "evertrain.run": context.record.run,
            **({"evertrain.refit_of": entry.refit_of["package.json"]} if entry.refit_of else {}),
        },
        input_example=None,
        pip_requirements=[f"{p}=={package_version(p).partition('+')[0]}" for p in _REQUIREMENTS],
    )
    tracking.finish(run, "FINISHED")
    return version
