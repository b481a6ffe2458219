"""What the training will begin with, and the run's key, which it is part of."""

from __future__ import annotations

import tempfile
from pathlib import Path

from components.common.champion import PromotionLog, champion_entry
from components.common.layout import digest_of, put_object
from components.common.records import StepContext
from components.common.training_start import TrainingStart, kept_start
from infra.errors import ObjectMissing
from training_core.errors import ConfigurationError

_IN_STORE = "store://"


def key_and_start(context: StepContext, made_of: list[str]) -> tuple[str, TrainingStart | None]:
    """Return the run's key and what its training begins with; None: as initialised.

    The key is the hash of data, code, configuration and, only where `training.start.weights` asks
    for one, of the start: another champion makes another run.

    The champion may itself come of these very data, code and settings. Then a run now is that run,
    with the key and the start that it had: it has nothing new to learn, or, if it was killed after
    its promotion, comes to its end. Else each promotion would make the same data worth a training.

    Args:
        context: Of the step.
        made_of: Digests of data, code and configuration.

    Raises:
        ConfigurationError: There is no such file or object.
    """
    wanted = context.project.settings.training.start.weights
    if wanted == "none":
        return digest_of(made_of)[:32], None
    if wanted == "file":
        start = _file(context)
        return _key(made_of, start), start
    champion = champion_entry(PromotionLog(context.store).entries())
    if champion is None:
        start = TrainingStart(weights="champion")
        return _key(made_of, start), start
    before = kept_start(context.store, champion.run_key)
    if before is not None and _key(made_of, before) == champion.run_key:
        return champion.run_key, before
    start = TrainingStart(
        weights="champion",
        version=champion.version,
        package=champion.package,
        seen=champion.seen,
    )
    return _key(made_of, start), start


def _key(made_of: list[str], start: TrainingStart) -> str:
    return digest_of([*made_of, start.digest])[:32]


def _file(context: StepContext) -> TrainingStart:
    """Put the file into the object store, under its hash, where every node finds it."""
    named = context.project.settings.training.start.file
    if named.startswith(_IN_STORE):
        key = named.removeprefix(_IN_STORE)
        with tempfile.TemporaryDirectory(dir=_scratch(context)) as folder:
            copy = Path(folder, "start")
            try:
                context.store.get_file(key, copy)
            except ObjectMissing as error:
                raise ConfigurationError(
                    f"training.start.file: there is no {key} in {context.store.uri}",
                    hint="store://KEY is an object of the object store; a path is one without it",
                ) from error
            sha256 = put_object(context.store, copy)
    else:
        path = (context.project.folder / Path(named).expanduser()).resolve()
        if not path.is_file():
            raise ConfigurationError(
                f"training.start.file: there is no file {path}",
                hint="a path is seen from the project's folder",
            )
        sha256 = put_object(context.store, path)
    return TrainingStart(weights="file", file=named, sha256=sha256)


def _scratch(context: StepContext) -> Path:
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch
