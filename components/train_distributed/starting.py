"""The weights that a training begins with: the champion's, or a file's, put into its network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from components.common.champion_members import own_files
from components.common.champion_model import package_folder
from components.common.layout import fetch_object, put_object
from components.common.rows import holdout_times
from components.common.training_start import (
    TrainingStart,
    TrainingTeacher,
    kept_start,
    kept_teacher,
)
from components.common.unseen import why_seen
from infra.store import ObjectStore
from training_core.errors import ConfigurationError, StoppedByGate

if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor, nn

    from components.common.records import StepContext
    from training_core.settings import TrainingSettings
    from training_core.task import Preprocessor, Task


def settled_start(
    context: StepContext, run_key: str, splits: dict[str, Any]
) -> TrainingStart | None:
    """Return what snapshot_data has settled; None: the network is trained as initialised.

    Raises:
        ConfigurationError: It has settled nothing, and settings ask for a start.
        StoppedByGate: The champion has seen rows of this run's holdout: what begins with its
            weights could not be judged on them.
    """
    settings = context.project.settings
    if settings.training.start.weights == "none":
        return None
    start = kept_start(context.store, run_key)
    if start is None or start.weights != settings.training.start.weights:
        raise ConfigurationError(
            f"training.start.weights is {settings.training.start.weights}, and snapshot_data has "
            f"not settled which ones for the run key {run_key}",
            hint="run the whole pipeline with these settings: evertrain run PROJECT",
        )
    _refuse_seen(
        context, start, splits,
        who=f"champion {start.version}, which training would begin with,",
        hint="train it from scratch: --set training.start.weights=none",
    )  # fmt: skip
    return start


def settled_teacher(
    context: StepContext, run_key: str, splits: dict[str, Any]
) -> TrainingTeacher | None:
    """Return whom snapshot_data has settled to learn from; None: nobody is asked for.

    Raises:
        ConfigurationError: It has settled nobody, and settings ask for a teacher.
        StoppedByGate: The champion has seen rows of this run's holdout: what it says of the train
            split may come from them.
    """
    wanted = context.project.settings.training.distillation.teacher
    if wanted == "none":
        return None
    teacher = kept_teacher(context.store, run_key)
    if teacher is None or teacher.weights != wanted:
        raise ConfigurationError(
            f"training.distillation.teacher is {wanted}, and snapshot_data has not settled which "
            f"one for the run key {run_key}",
            hint="run the whole pipeline with these settings: evertrain run PROJECT",
        )
    _refuse_seen(
        context, teacher, splits,
        who=f"champion {teacher.version}, which training would learn from,",
        hint="train without it: --set training.distillation.teacher=none",
    )  # fmt: skip
    return teacher


def _refuse_seen(
    context: StepContext, settled: TrainingStart, splits: dict[str, Any], *, who: str, hint: str
) -> None:
    if not settled.seen:
        return
    rows = holdout_times(context, splits)
    why = why_seen(settled.seen, rows, splits["seen"], context.project.settings, who=who)
    if why is not None:
        raise StoppedByGate(f"the new model could not be judged: {why}", hint=hint)


def begin(
    model: nn.Module,
    preprocessor: Preprocessor,
    task: Task,
    *,
    start: TrainingStart | None,
    settings: TrainingSettings,
    store: ObjectStore,
    cache: Path,
) -> str:
    """Put the weights of a start into a network that was just initialised; say what came of it.

    Rows of embeddings follow their categories, where the preprocessor is a TabularPreprocessor. The
    scales of numbers are the new train split's: training adapts to what they have moved by.

    Raises:
        ConfigurationError: They do not fit.
        OutsideError: They cannot be read.
        TrainingFailed: The champion's package cannot be loaded.
    """
    if start is None:
        return ""
    from training_core.transfer.weights import start_from, start_without

    if start.weights == "champion" and not start.version:
        start_without(model)
        return start.words
    more = ""
    if start.weights == "champion":
        weights, more = _champion(model, preprocessor, task, start, settings, store, cache)
    else:
        from training_core.transfer.safetensors import read_safetensors

        weights = read_safetensors(fetch_object(store, start.sha256, cache))
    started = start_from(model, settings.start, weights)
    words = [f"{start.words}: {len(started.carried)} tensors carried over"]
    if started.replaced:
        words.append(f"{len(started.replaced)} as initialised")
    if started.unused:
        words.append(f"{len(started.unused)} of the start not used")
    return ", ".join(words) + more


def keep_base(model: nn.Module, store: ObjectStore, cache: Path) -> str:
    """Keep what a LoRA training begins with, which its checkpoints leave out; return its hash."""
    from training_core.transfer.safetensors import write_safetensors

    cache.mkdir(parents=True, exist_ok=True)
    file = cache / f"base-{id(model)}.safetensors"
    try:
        write_safetensors(file, model.state_dict())
        return put_object(store, file)
    finally:
        file.unlink(missing_ok=True)


def _champion(
    model: nn.Module,
    preprocessor: Preprocessor,
    task: Task,
    start: TrainingStart,
    settings: TrainingSettings,
    store: ObjectStore,
    cache: Path,
) -> tuple[dict[str, Tensor], str]:
    """Return the champion's weights by name, and what became of its categories in words."""
    from training_core.package import Package
    from training_core.tabular import TabularPreprocessor
    from training_core.transfer.vocabulary import by_vocabulary

    files, _ = own_files(store, start.package, start.seen, cache)  # of an ensemble one member
    package = Package(package_folder(store, files, cache), type(task.preprocessor()))
    state = package.network.state_dict()
    weights = {
        name.removeprefix("model."): value
        for name, value in state.items()
        if name.startswith("model.")
    }
    before = package.preprocessor
    if not (
        isinstance(before, TabularPreprocessor) and isinstance(preprocessor, TabularPreprocessor)
    ):
        return weights, ""
    found = by_vocabulary(
        model, weights, before=before, now=preprocessor, replace=settings.start.replace
    )
    words = f"; of its categories {found.known} known, {found.new} new, {found.gone} gone"
    return found.weights, words
