"""What is prepared before training: the model, the feed, the validation sample, the length."""

from __future__ import annotations

import shutil
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from training_core.errors import ConfigurationError
from training_core.evaluation import Objective
from training_core.examples import Examples
from training_core.feeds.batches import Feed, Sharing
from training_core.feeds.chunks import RowFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.order import order, steps_in
from training_core.feeds.sampling import sampling_of
from training_core.optim.schedules import Schedule, make_schedule
from training_core.optim.update import Update
from training_core.parallel.blocks import blocks_of, recompute_in_backward
from training_core.parallel.strategy import Strategy
from training_core.precision import Precision
from training_core.settings import TrainingSettings
from training_core.telemetry.flops import flops_per_example


def prepare_model(
    model: nn.Module,
    task: Objective,
    sample: Examples,
    *,
    settings: TrainingSettings,
    strategy: Strategy,
    precision: Precision,
) -> tuple[nn.Module, float | None]:
    """Return the model to call in training, and its FLOPs if only now they could be counted."""
    if settings.start.adapts or settings.start.weights != "none":
        from training_core.transfer.shaping import shape

        shape(model, settings.start)
    flops = flops_beforehand(task, model, sample, settings)
    model = set_up_model(model, settings, strategy)
    settle_buckets(model, task, sample, precision=precision)
    return model, flops


def make_update(
    model: nn.Module, settings: TrainingSettings, *, strategy: Strategy, precision: Precision
) -> Update:
    """Return what turns gradients into new weights of a model that is set up."""
    parts = None  # as usual: all are trained alike
    if settings.start.lr_decay != 1 or settings.start.unfreeze:
        from training_core.transfer.stages import parts_of

        parts = parts_of(model, settings.start)
    return Update(
        model, settings.optimiser, strategy=strategy, scaler=precision.scaler, parts=parts
    )


def set_up_model(model: nn.Module, settings: TrainingSettings, strategy: Strategy) -> nn.Module:
    """Lay out, recompute, compile and place a model as the settings say.

    Returns the model to call in training; the names of its parameters do not change.

    Raises:
        ConfigurationError: There are no blocks to recompute, or nothing to compile with.
    """
    if settings.channels_last:
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    if settings.regularisation != type(settings.regularisation)():
        from training_core.regularisation.layers import regularise

        regularise(model, settings.regularisation, strategy)
    # a lookup by itself is nothing to recompute or to compile
    blocks = [each for each in blocks_of(model) if not isinstance(each, nn.Embedding)]
    if settings.activation_checkpointing:
        if not blocks:
            raise ConfigurationError(
                f"training.activation_checkpointing is set, but {type(model).__name__} has no "
                "repeated blocks",
                hint="put the model's repeated layers into an nn.ModuleList",
            )
        for block in blocks:
            recompute_in_backward(block)
    if settings.compile:
        if strategy.device.type == "cpu" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            raise ConfigurationError(
                "training.compile is set, but there is no C++ compiler to compile with on a CPU",
                hint="install g++, or leave training.compile out",
            )
        for module in blocks or [model]:
            # not module.compile(): that one compiles nothing of a class of torch.nn itself
            module.forward = torch.compile(module.forward)
    return strategy.prepare(model)


def settle_buckets(
    model: nn.Module, task: Objective, sample: Examples, *, precision: Precision
) -> None:
    """Have DDP lay out its buckets before training; all ranks together. Nothing else changes.

    After the first backward of a process DDP lays them out anew, in the order in which gradients
    became ready. More than two ranks are added up in an order that depends on the place in a
    bucket, so without this the first step of a process that goes on has other sums.

    Args:
        model: As prepared; nothing is done if it is not DDP's.
        task: For its loss.
        sample: At least one example.
        precision: Of training.
    """
    if not isinstance(model, DistributedDataParallel):
        return
    rows = torch.arange(8) % len(sample)  # more than one, for BatchNorm
    examples = sample.take(rows).to(next(model.parameters()).device)
    before = [buffer.clone() for buffer in model.buffers()]
    with torch.compiler.set_stance("force_eager"):  # another batch size is not worth compiling
        with precision.autocast():
            outputs = model(**examples.arrays)
        losses = task.loss(outputs.float(), examples.target)
        losses.backward(gradient=torch.zeros_like(losses))  # type: ignore[no-untyped-call]
    model.zero_grad()
    for buffer, value in zip(model.buffers(), before, strict=True):
        buffer.copy_(value)


def flops_beforehand(
    task: Objective, model: nn.Module, sample: Examples, settings: TrainingSettings
) -> float | None:
    """Count FLOPs where it can only be done before the model is set up; it takes a second."""
    changed = settings.compile or settings.activation_checkpointing
    changed = changed or settings.regularisation.batch_norm == "synchronised"
    if changed or settings.parallel.strategy == "fsdp":
        return flops_per_example(model, task, sample)
    return None


def feed_of(train: Examples | Feed, settings: TrainingSettings, device: torch.device) -> Feed:
    """Return a feed; ahead of the loop in a thread where copies to a GPU can overlap.

    Raises:
        ConfigurationError: It draws each row once, and the settings ask for something else.
    """
    feed: Feed = _in_memory(train, settings) if isinstance(train, Examples) else train
    rows = rows_of(feed)
    if settings.sampling.active and (rows is None or rows.sampling is None):
        raise ConfigurationError(
            f"training.sampling is set, and {type(feed).__name__} draws each row once an epoch",
            hint="give the trainer a MemoryFeed or a BlockFeed with sampling=sampling_of(...)",
        )
    if device.type == "cuda":
        from training_core.feeds.prefetch import Prefetched

        feed = Prefetched(feed)
    if settings.sampling.curriculum != "loss":
        return feed
    from training_core.feeds.epochs import EpochByEpoch

    return EpochByEpoch(feed)


def _in_memory(train: Examples, settings: TrainingSettings) -> MemoryFeed:
    if not settings.sampling.active:
        return MemoryFeed(train)
    sampling = sampling_of(
        settings.sampling,
        epochs=settings.epochs,
        target=train.target.numpy(),
        units=None if train.units is None else train.units.numpy(),
    )
    return MemoryFeed(train, sampling=sampling)


def rows_of(feed: Feed) -> RowFeed | None:
    """Return the feed of rows that others are around; None: there is none."""
    found: Any = feed
    while found is not None and not isinstance(found, RowFeed):
        found = getattr(found, "inner", None)
    return found


def sharing_of(settings: TrainingSettings, strategy: Strategy) -> Sharing:
    """Return how ranks share each step."""
    parts = strategy.parts or settings.accumulation * strategy.world_size
    return Sharing.of(
        batch_size=settings.batch_size,
        microbatches=parts // strategy.world_size,
        rank=strategy.rank,
        world_size=strategy.world_size,
        seed=settings.seed,
    )


def fixed_sample(validation: Examples, settings: TrainingSettings) -> Examples:
    """Return the rows that are evaluated on: the same in each evaluation of a training.

    Raises:
        ConfigurationError: There are none.
    """
    if not len(validation):
        raise ConfigurationError(
            "there are no validation examples",
            hint="training is stopped, rolled back and selected by them: give it some",
        )
    rows = settings.evaluation_rows
    if not 0 < rows < len(validation):
        return validation
    chosen = order(seed=settings.seed, epoch=0, count=len(validation))[:rows]
    return validation.take(chosen.sort().values)


def total_steps(settings: TrainingSettings, *, samples: int) -> int:
    """Return the optimiser steps of a whole training on `samples` examples."""
    steps = steps_in(
        samples=max(1, round(settings.epochs * samples)),
        count=samples,
        batch_size=settings.batch_size,
    )
    return min(steps, settings.stopping.max_steps or steps)


def schedule_of(settings: TrainingSettings, *, steps: int, epoch: int) -> Schedule:
    """Return the learning rate of a whole training: SWA has one of its own at its end.

    Args:
        settings: Of the training.
        steps: In all.
        epoch: Steps of one.
    """
    schedule = make_schedule(settings.schedule, settings.optimiser, steps=steps)
    averaging = settings.averaging
    if averaging.kind != "swa" or averaging.rate == "schedule":
        return schedule
    from training_core.averaging.rate import SwaSchedule, span

    first, every = span(averaging, steps=steps, epoch=epoch)
    return SwaSchedule(schedule, averaging, peak=settings.optimiser.lr, first=first, every=every)


def refuse_single_rows(model: nn.Module, sharing: Sharing, *, samples: int, steps: int) -> None:
    """Refuse a split whose last step would give BatchNorm a single row to normalise.

    Raises:
        ConfigurationError: It would; torch itself says so only at the end of the first epoch.
    """
    last = samples % sharing.batch_size or min(samples, sharing.batch_size)
    smallest = max(1, last // sharing.parts)
    comes = steps >= -(-samples // sharing.batch_size)
    flat = any(isinstance(module, nn.BatchNorm1d) for module in model.modules())  # others see more
    if comes and flat and smallest == 1:
        raise ConfigurationError(
            f"with {samples} samples and training.batch_size {sharing.batch_size}, the last step "
            f"of an epoch has {last} for {sharing.parts} microbatches: one of them has a single "
            "row, which BatchNorm cannot normalise",
            hint=f"set training.batch_size to {sharing.batch_size + 1}, or use fewer microbatches",
        )
