"""Steps that are watched: what each operation works, what makes the host wait, what is kept."""

from __future__ import annotations

from training_core.profiling.calibration import Machine
from training_core.profiling.memory import Kept, Memory, memory_of
from training_core.profiling.operations import Counter, Work
from training_core.profiling.planned import Planned, take_steps
from training_core.profiling.result import Sync
from training_core.profiling.syncs import Syncs

_WARM_UP = 1
_STEPS = 3


def watch(planned: Planned, machine: Machine) -> tuple[dict[str, Work], list[Sync]]:
    """Return the work of a step by operation, and what makes the host wait or writes."""
    counter, syncs = Counter(machine), Syncs()
    trainer = planned.trainer(steps=_WARM_UP + _STEPS)

    def after(step: int) -> None:
        if step == _WARM_UP:
            syncs.operation = counter.add
            syncs.found.clear()
        elif step == _WARM_UP + _STEPS:
            syncs.operation = None

    with syncs.watching():
        take_steps(trainer, _WARM_UP + _STEPS, after=after)
    found = [
        Sync(kind, place, times / _STEPS) for (kind, place), times in syncs.found.most_common()
    ]
    return counter.per_step(_STEPS), found


def weigh(planned: Planned) -> Memory:
    """Return what a step holds in memory."""
    trainer = planned.trainer(steps=_STEPS)
    kept, most = Kept(trainer), 0

    def after(step: int) -> None:
        nonlocal most
        most = max(most, kept.bytes)
        kept.restart()

    with kept.watching():
        take_steps(trainer, _STEPS, after=after)
    parts = trainer.sharing.parts
    return memory_of(trainer, activations=most // parts)
