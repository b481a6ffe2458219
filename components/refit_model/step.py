"""After a promote: train once more on all rows, and say which of the two models is promoted.

Whatever goes wrong here, the judged model is promoted and the reason is said: a refit may never
cost a promotion. promote_model takes the refitted package by the certificate alone that this step
leaves, and checks it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from components.common.artifacts import read_json, write_json
from components.common.champion_model import package_folder
from components.common.decision_figures import EvaluateFigures
from components.common.layout import digest_of, fetch_object, hashes_of, object_key, put_object
from components.common.records import StepContext, step
from components.common.refit_figures import DecidedFigures, RefitFigures
from components.refit_model.kept import (
    MOST_DEATHS,
    Kept,
    begun,
    clean,
    keep,
    not_counted,
    read_kept,
)
from infra.errors import LeaseLost, ObjectDamaged, ObjectMissing, OutsideError
from training_core.errors import EvertrainError, StoppedByGate


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    training: str,
    judged: str,
    verdict: str,
    model: str,
    decision: str,
) -> None:
    """See `component.py`."""
    with step(
        "refit_model", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        evaluated = EvaluateFigures.model_validate(read_json(verdict))
        files = hashes_of(Path(judged))
        if files != evaluated.package:
            raise StoppedByGate(
                "the package that came here is not the one that evaluate_model judged: "
                f"{_short(files)}, and judged was {_short(evaluated.package)}",
                hint="run the same command again: what is cached may be damaged",
            )
        figures = _decided(context, evaluated, read_json(splits), read_json(training), Path(judged))
        figures.evaluation = digest_of(evaluated.model_dump(mode="json"))
        chosen = Path(judged)
        if figures.outcome == "refitted":
            chosen = package_folder(context.store, figures.refitted, context.cache)
        shutil.copytree(chosen, model, dirs_exist_ok=True)
        context.say(figures)
        decided = DecidedFigures(**evaluated.model_dump(), refit=figures)
        write_json(decision, decided.model_dump(mode="json"))
        print(f"refit_model: {figures.reason}", file=sys.stderr, flush=True)


def _decided(
    context: StepContext,
    evaluated: EvaluateFigures,
    splits: dict[str, Any],
    trained: dict[str, Any],
    judged: Path,
) -> RefitFigures:
    """Return what came of it, now or in an earlier attempt of this run."""
    if evaluated.verdict != "promote":
        words = f"the verdict is {evaluated.verdict}: there is nothing to train again"
        return RefitFigures(outcome="none", reason=words, judged=evaluated.package)
    run_key = context.record.run_key
    key = "refit-" + _digest(context, evaluated, splits)
    kept = read_kept(context.store, run_key, key=key)
    if kept.figures is not None and _there(context, kept.figures):
        return kept.figures
    kept = begun(context.store, run_key, kept)
    began = time.monotonic()
    try:
        if kept.begun > MOST_DEATHS:
            figures = _not_taken(evaluated, f"its process died {MOST_DEATHS} times at one place")
        else:
            figures = _attempted(context, evaluated, splits, trained, judged, key=key)
    except KeyboardInterrupt:
        with suppress(OutsideError):  # the interruption is what has to be said
            not_counted(context.store, run_key, kept)
        raise
    except LeaseLost:
        raise
    except Exception as error:  # noqa: BLE001 (whatever it is, the judged model is promoted)
        context.holding.confirm()  # unless another run has the lease by now
        if not isinstance(error, (EvertrainError, OutsideError)):
            traceback.print_exc()
        figures = _not_taken(evaluated, _words(error))
    figures.seconds = round(time.monotonic() - began, 3)
    done = Kept(key=key, figures=figures)
    keep(context.store, run_key, done)
    clean(context.store, done)
    return figures


def _attempted(
    context: StepContext,
    evaluated: EvaluateFigures,
    splits: dict[str, Any],
    trained: dict[str, Any],
    judged: Path,
    *,
    key: str,
) -> RefitFigures:
    """Train, package and compare."""
    from components.refit_model.certifying import certificate
    from components.refit_model.training import refit
    from training_core.package import Package

    task = context.project.task()
    before = Package(judged, type(task.preprocessor()))
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="refitted-", dir=scratch) as made:
        folder = Path(made, "package")
        refitted = refit(
            context, task, splits, trained, key=key, judged=evaluated.package,
            facts=before.manifest["facts"], folder=folder,
        )  # fmt: skip
        for name, sha256 in refitted.files.items():
            stored = put_object(context.store, folder / name)
            assert stored == sha256, name
        return certificate(context, task, evaluated, splits, before, folder, refitted)


def _digest(context: StepContext, evaluated: EvaluateFigures, splits: dict[str, Any]) -> str:
    """Hash of what is refitted, on what, how, and by which bounds it is taken."""
    made_of = {
        "run_key": context.record.run_key,
        "judged": evaluated.package,
        "parts": {name: part["sha256"] for name, part in splits["parts"].items()},
        "refit": context.project.settings.refit.model_dump(mode="json"),
        "training": context.project.settings.training.model_dump(mode="json"),
        "decision": context.project.settings.decision.model_dump(mode="json"),
    }
    return digest_of(made_of)[:32]


def _there(context: StepContext, figures: RefitFigures) -> bool:
    """Whether what was decided can still be promoted."""
    if figures.outcome != "refitted":
        return True
    needed = (*figures.refitted.values(), figures.rehearsal)
    if any(context.store.info(object_key(sha256)) is None for sha256 in needed):
        return False
    try:
        for sha256 in needed:
            fetch_object(context.store, sha256, context.cache)
    except (ObjectDamaged, ObjectMissing):
        return False
    return True


def _not_taken(evaluated: EvaluateFigures, why: str) -> RefitFigures:
    reason = f"the judged model is promoted, for the refit failed: {why}"
    return RefitFigures(outcome="judged", reason=reason, judged=evaluated.package)


def _words(error: Exception) -> str:
    told = error.what if isinstance(error, (EvertrainError, OutsideError)) else str(error)
    known = isinstance(error, (EvertrainError, OutsideError))
    return " ".join((told if known else f"{type(error).__name__}: {told}").split())[:600]


def _short(files: dict[str, str]) -> str:
    return files.get("package.json", "no package")[:12]
