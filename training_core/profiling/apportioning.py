"""Divides a step's time among what it is spent on, and among what limits it.

What operations take is measured under the profiler, which slows down the host far more than what it
calls. So computing and moving are taken from there, waiting for data and the whole step from the
clocks, and what is left is the calling: Python, dispatch, launches. On a CPU the least of
each call, and CPU time of one thread, stand for it: other processes disturb them least.
"""

from __future__ import annotations

from training_core.profiling.operations import Work, kind_of
from training_core.profiling.timing import Timed
from training_core.profiling.trace import Traced

FEED, AUGMENTATION, CALLING = "feed", "augmentation", "Python and calls"


def apportion(
    timed: Timed, work: dict[str, Work], traced: Traced, *, on_gpu: bool
) -> tuple[dict[str, float], dict[str, float]]:
    """Return a step's seconds by bar, longest first, and its shares by limit."""
    waits = {
        FEED: timed.phases["input"] + timed.phases["copy"],
        AUGMENTATION: timed.phases["augmentation"],
    }
    useful = {
        name: seconds * (1 - work[name].share("overhead"))
        for name, seconds in traced.operations.items()
        if name in work
    }
    busy = sum(useful.values())
    if on_gpu:  # the host prepares data while the device works: what shows is what is left idle
        whole_wait = sum(waits.values())
        shown = min(1.0, max(0.0, timed.seconds - busy) / whole_wait) if whole_wait else 0.0
        waits = {name: seconds * shown for name, seconds in waits.items()}
    left = max(0.0, timed.seconds - sum(waits.values()))
    whole = left if on_gpu else timed.quick
    scale = left / max(whole, busy) if busy else 0.0
    bars = {name: seconds for name, seconds in waits.items() if seconds > 0}
    limits = dict.fromkeys(("input", "compute", "memory", "overhead"), 0.0)
    for name, seconds in useful.items():
        kind, computing = kind_of(name), work[name].share("compute")
        moving = work[name].share("memory")
        bars[kind] = bars.get(kind, 0.0) + scale * seconds
        limits["compute"] += scale * seconds * computing / ((computing + moving) or 1.0)
        limits["memory"] += scale * seconds * moving / ((computing + moving) or 1.0)
    limits["input"] = sum(waits.values())
    limits["overhead"] = bars[CALLING] = max(0.0, left - scale * busy)
    ordered = dict(sorted(bars.items(), key=lambda bar: -bar[1]))
    return ordered, {name: seconds / timed.seconds for name, seconds in limits.items()}
