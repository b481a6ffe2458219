"""What to try, from what a profile found: settings of evertrain.yaml where there is one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from training_core.parallel.blocks import blocks_of
from training_core.profiling.apportioning import AUGMENTATION, CALLING, FEED
from training_core.profiling.memory import free_bytes
from training_core.profiling.operations import Limit, kind_of
from training_core.profiling.planned import Planned
from training_core.profiling.result import Profile

_WORTH = 0.05  # share of a step from which on something is worth a word
_MEMORY = 0.7  # of the device's, from which on it is short


@dataclass(frozen=True)
class Change:
    """A setting to change.

    Attributes:
        setting: Its key in evertrain.yaml.
        value: To set.
        why: What it should do, in words.
        care: What else it changes; empty: nothing.
    """

    setting: str
    value: Any
    why: str
    care: str = ""

    def __str__(self) -> str:
        value = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.setting}={value}"


@dataclass(frozen=True)
class Bar:
    """One of the longest parts of a step, and what may make it shorter.

    Attributes:
        name: What the time is spent on.
        seconds: Of a step.
        share: Of the step.
        words: What to try.
        changes: The same as settings, as far as there are some.
    """

    name: str
    seconds: float
    share: float
    words: str
    changes: list[Change]


def bars(planned: Planned, found: Profile, *, most: int = 3) -> list[Bar]:
    """Return the longest parts of a step, with what to try for each."""
    longest = [
        (name, seconds) for name, seconds in found.bars.items() if seconds > _WORTH * found.seconds
    ][:most]
    return [
        Bar(name, seconds, seconds / found.seconds, *_advice(name, planned, found))
        for name, seconds in longest
    ]


def changes(planned: Planned, found: Profile) -> list[Change]:
    """Return all settings that are worth a try, the most promising first, each once."""
    every = [change for bar in bars(planned, found) for change in bar.changes]
    every += _for_memory(planned, found)
    unique: dict[str, Change] = {}
    for change in every:
        unique.setdefault(str(change), change)
    return list(unique.values())


def _advice(name: str, planned: Planned, found: Profile) -> tuple[str, list[Change]]:
    if name in (FEED, AUGMENTATION):
        return _for_input(name, planned, found)
    if name == CALLING:
        return _for_calling(planned, found)
    return _for_operations(name, planned, found)


def _for_input(name: str, planned: Planned, found: Profile) -> tuple[str, list[Change]]:
    lines = [h.place for h in found.hot if h.phase in ("input", "augmentation")]
    where = f": {lines[0]} takes most" if lines else ""
    if name == AUGMENTATION:
        return (
            f"the network waits for Task.augment{where}; do it to the whole batch at once, or "
            "move what does not depend on chance into the preprocessor",
            [],
        )
    if planned.settings.data == "disk":
        memory = Change(
            "training.data", "memory", "no block has to be read and mixed", "the memory it takes"
        )
        return f"the network waits for the feed{where}; keep the split in memory", [memory]
    return f"the network waits for the feed{where}", []


def _for_calling(planned: Planned, found: Profile) -> tuple[str, list[Change]]:
    settings, found_changes = planned.settings, []
    for factor in (2, 4):
        size = settings.batch_size * factor
        if size <= planned.train_rows // 4:
            found_changes.append(
                Change(
                    "training.batch_size",
                    size,
                    "the same calls for more examples",
                    "the training itself: fewer steps an epoch; look at evertrain batch-size, "
                    "and sweep the rate again with evertrain lr",
                )
            )
    if not settings.compile and _can_compile(planned):
        found_changes.append(
            Change(
                "training.compile",
                True,
                "several operations become one",
                "the seconds that it takes at the start",
            )
        )
    found_changes += _fewer_threads(planned, found)
    waits = f"; {found.syncs[0].place} makes the host wait or writes" if found.syncs else ""
    lines = [h.place for h in found.hot if h.phase not in ("input", "augmentation")]
    python = f"; of the project's lines {lines[0]} takes most" if lines else ""
    return (
        f"operations are called that are done sooner than called{waits}{python}; give each call "
        "more to do, or make fewer",
        found_changes,
    )


def _for_operations(name: str, planned: Planned, found: Profile) -> tuple[str, list[Change]]:
    settings, cores, made = planned.settings, os.cpu_count() or 1, list[Change]()
    gpu = planned.device.type == "cuda"
    if not gpu and found.machine.threads < cores:
        made.append(
            Change(
                "training.threads",
                cores,
                "every core computes",
                "other processes, which may need the cores",
            )
        )
    if not gpu:
        made += _fewer_threads(planned, found)
    if found.machine.precision == "fp32" and (gpu or _has_bf16()):
        made.append(
            Change(
                "training.precision",
                "bf16",
                "half the bytes, faster products",
                "that about three digits are left",
            )
        )
    products = name in ("matrix products", "convolutions", "optimiser")
    if not settings.compile and not products and _can_compile(planned):
        why, care = "one pass over memory for several", "the seconds that it takes at the start"
        made.append(Change("training.compile", True, why, care))
    if not settings.channels_last and _convolves(planned.model()):
        made.append(Change("training.channels_last", True, "the layout that kernels prefer"))
    if limit_of(name, found) == "memory":
        return "bytes are moved, little is computed with them; move fewer, or fuse", made
    return "the machine computes; make it compute less, or faster", made


def limit_of(kind: str, found: Profile) -> str:
    """What limits a kind of operations most: compute or memory."""
    limits: tuple[Limit, ...] = ("compute", "memory")
    shares = {
        limit: sum(
            seconds * found.work[name].share(limit)
            for name, seconds in found.traced.operations.items()
            if name in found.work and kind_of(name) == kind
        )
        for limit in limits
    }
    return max(limits, key=lambda limit: shares[limit])


def _fewer_threads(planned: Planned, found: Profile) -> list[Change]:
    if planned.device.type == "cuda" or found.machine.threads == 1:
        return []
    return [Change("training.threads", 1, "threads need not wait for each other")]


def _for_memory(planned: Planned, found: Profile) -> list[Change]:
    short = found.memory.activations > _MEMORY * free_bytes(planned.device) > 0
    if planned.settings.activation_checkpointing or not short or not blocks_of(planned.model()):
        return []
    return [
        Change(
            "training.activation_checkpointing",
            True,
            "activations are computed again instead of kept",
            "a slower step",
        )
    ]


def _convolves(model: nn.Module) -> bool:
    return any(isinstance(module, nn.Conv2d) for module in model.modules())


def _can_compile(planned: Planned) -> bool:
    compilers = any(map(shutil.which, ("c++", "g++", "clang++")))
    return planned.device.type == "cuda" or compilers


def _has_bf16() -> bool:
    """Whether the CPU multiplies bf16 in hardware."""
    flags = (torch.cpu._is_avx512_bf16_supported, torch.cpu._is_amx_tile_supported)
    return any(flag() for flag in flags)
