"""What the training will begin with and learn from, and the run's key, which both are part of."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple, TypeVar

from components.common.champion import PromotionEntry, PromotionLog, champion_entry
from components.common.layout import digest_of, put_object
from components.common.records import StepContext
from components.common.training_start import (
    TrainingStart,
    TrainingTeacher,
    kept_start,
    kept_teacher,
)
from infra.errors import ObjectMissing
from training_core.errors import ConfigurationError

_IN_STORE = "store://"
_Kind = TypeVar("_Kind", TrainingStart, TrainingTeacher)


class Settled(NamedTuple):
    """None: settings ask for no such thing."""

    start: TrainingStart | None
    teacher: TrainingTeacher | None


def key_and_settled(context: StepContext, made_of: list[str]) -> tuple[str, Settled]:
    """Return the run's key, what its training begins with and whom it learns from.

    The key is the hash of data, code, configuration and, only where `training.start.weights` or
    `training.distillation.teacher` asks for one, of these: another champion makes another run.

    The champion may itself come of these very data, code and settings. Then a run now is that run,
    with the key and the start that it had: it has nothing new to learn, or, if it was killed after
    its promotion, comes to its end. Else each promotion would make the same data worth a training.

    Args:
        context: Of the step.
        made_of: Digests of data, code and configuration.

    Raises:
        ConfigurationError: There is no such file or object.
    """
    training = context.project.settings.training
    start, teacher = training.start, training.distillation
    asked = (start.weights, teacher.teacher)
    champion = None
    if "champion" in asked:
        champion = champion_entry(PromotionLog(context.store).entries())
    files = Settled(
        _file(context, TrainingStart, start.file, "training.start.file"),
        _file(context, TrainingTeacher, teacher.file, "training.distillation.file"),
    )
    if champion is not None:
        before = Settled(
            kept_start(context.store, champion.run_key) if asked[0] == "champion" else files[0],
            kept_teacher(context.store, champion.run_key) if asked[1] == "champion" else files[1],
        )
        if _key(made_of, before) == champion.run_key:
            return champion.run_key, before
    settled = Settled(
        _champion(TrainingStart, champion) if asked[0] == "champion" else files[0],
        _champion(TrainingTeacher, champion) if asked[1] == "champion" else files[1],
    )
    return _key(made_of, settled), settled


def _key(made_of: list[str], settled: Settled) -> str:
    return digest_of([*made_of, *(each.digest for each in settled if each is not None)])[:32]


def _champion(kind: type[_Kind], champion: PromotionEntry | None) -> _Kind:
    if champion is None:
        return kind(weights="champion")
    return kind(
        weights="champion", version=champion.version, package=champion.package, seen=champion.seen
    )


def _file(context: StepContext, kind: type[_Kind], named: str, setting: str) -> _Kind | None:
    """Put the file into the object store, under its hash, where every node finds it."""
    if not named:
        return None
    if named.startswith(_IN_STORE):
        key = named.removeprefix(_IN_STORE)
        with tempfile.TemporaryDirectory(dir=_scratch(context)) as folder:
            copy = Path(folder, "start")
            try:
                context.store.get_file(key, copy)
            except ObjectMissing as error:
                raise ConfigurationError(
                    f"{setting}: there is no {key} in {context.store.uri}",
                    hint="store://KEY is an object of the object store; a path is one without it",
                ) from error
            sha256 = put_object(context.store, copy)
    else:
        path = (context.project.folder / Path(named).expanduser()).resolve()
        if not path.is_file():
            raise ConfigurationError(
                f"{setting}: there is no file {path}",
                hint="a path is seen from the project's folder",
            )
        sha256 = put_object(context.store, path)
    return kind(weights="file", file=named, sha256=sha256)


def _scratch(context: StepContext) -> Path:
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch
