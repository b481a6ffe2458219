"""Whether the weights that came here are those that may be promoted: judged, or certified.

The package must be the one that evaluate_model judged, file by file. The one exception is a refit,
by its certificate: it names the judged package, the evaluation that this package had and the
refitted package, which names the judged one in turn; certificate and evaluation are those that the
steps of this run have recorded. Whatever does not agree stops the run.
"""

from __future__ import annotations

import json
from pathlib import Path

from components.common.decision_figures import EvaluateFigures
from components.common.layout import digest_of, hashes_of, record_key
from components.common.records import StepContext, StepRecord
from components.common.refit_figures import DecidedFigures, RefitFigures
from infra.errors import ObjectMissing
from training_core.errors import StoppedByGate

_HINT = "run the same command again; evertrain runs PROJECT shows what each step did"


def taken_refit(
    context: StepContext, decided: DecidedFigures, package: Path
) -> RefitFigures | None:
    """Return the certificate of a package that was trained after the verdict; None: it was judged.

    Raises:
        StoppedByGate: The package is neither the judged one nor its certified refit.
    """
    refit, files = decided.refit, hashes_of(package)
    if refit is None or refit.outcome != "refitted":
        if files != decided.package:
            raise StoppedByGate(
                f"the package {_short(files)} is not the one that evaluate_model judged "
                f"({_short(decided.package)}): nothing is promoted",
                hint=_HINT,
            )
        return None
    for why in _faults(context, decided, refit, package, files):
        raise StoppedByGate(f"the refitted package may not be promoted: {why}", hint=_HINT)
    return refit


def _faults(
    context: StepContext,
    decided: DecidedFigures,
    refit: RefitFigures,
    package: Path,
    files: dict[str, str],
) -> list[str]:
    settings = context.project.settings.refit
    evaluation = EvaluateFigures.model_validate(decided.model_dump(exclude={"refit"}))
    recorded = _recorded(context, "evaluate_model")
    facts = json.loads((package / "package.json").read_text()).get("facts", {})
    bounded = refit.shift is not None and refit.shift.mean <= settings.shift
    wrong = {
        "refit.enabled is false": not settings.enabled,
        "the verdict is not promote": decided.verdict != "promote",
        f"its files are not those of its certificate ({_short(refit.refitted)})": (
            files != refit.refitted
        ),
        "its certificate is of another judged package": refit.judged != decided.package,
        "its certificate is of another evaluation": (
            refit.evaluation != digest_of(evaluation.model_dump(mode="json"))
        ),
        "evaluate_model of this run has recorded another evaluation": (
            recorded != refit.evaluation
        ),
        "it says that it is a refit of another package": (
            facts.get("refit_of") != decided.package.get("package.json")
        ),
        "it says that it has seen other rows": facts.get("seen") != refit.seen,
        "its predictions are not bounded": not bounded,
        "a gate of it did not pass": (
            not refit.gates or any(gate.outcome != "pass" for gate in refit.gates)
        ),
        "refit_model of this run has recorded another certificate": (
            _recorded(context, "refit_model") != digest_of(refit.model_dump(mode="json"))
        ),
    }
    return [words for words, true in wrong.items() if true]


def _recorded(context: StepContext, step: str) -> str:
    """Digest of what a step has recorded in this run; empty: nothing."""
    try:
        content = context.store.get(record_key(context.record.run, step))
    except ObjectMissing:
        return ""
    return digest_of(StepRecord.model_validate_json(content).figures)


def _short(files: dict[str, str]) -> str:
    return files.get("package.json", "none")[:12]
