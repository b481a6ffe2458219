"""How long the planned run takes, what it costs, and whether another batch size is faster."""

from __future__ import annotations

from training_core.checks.contract import Check, Finding
from training_core.checks.dynamics.throughput import (
    Speed,
    device_of,
    evaluation_seconds,
    measure,
)
from training_core.checks.subject import Subject
from training_core.profiling.throughput import ENOUGH, knee

_SECONDS = 0.15  # a batch size; medians are then within some 10 %
_MUCH_SLOWER = 2.0
_MUCH_WAITING = 0.3
_LONG = 60.0  # seconds of a planned run from which on more speed is worth a word


class BatchSizeAndSpeed(Check):
    """Measures steps of several batch sizes on this machine. Speed never fails."""

    name = "batch_size_and_speed"
    looks_at = "the planned run fits the time and money it may take, at a batch size that is fast"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        speeds = [measure(subject, size, seconds=_SECONDS) for size in _sizes(subject)]
        best = max(speed.examples_per_second for speed in speeds)
        small = knee(speeds)
        planned = next(s for s in speeds if s.batch_size == subject.batch_size)
        seconds = self.planned_seconds(subject, planned)
        stopping = subject.training.stopping
        cost = seconds / 3600 * stopping.price_per_hour * subject.training.world_size
        limits = {
            "checks.hours": subject.settings.hours * 3600,
            "training.stopping.seconds": stopping.seconds,
            "training.stopping.budget": (
                stopping.budget / stopping.price_per_hour / subject.training.world_size * 3600
                if stopping.price_per_hour
                else 0.0
            ),
        }
        set_limits = {name: limit for name, limit in limits.items() if limit}
        waiting = planned.waiting / planned.seconds if planned.seconds else 0.0
        words = (
            f"{subject.steps} steps of {1000 * planned.seconds:.3g} ms take about "
            f"{_duration(seconds)}{_where(subject)}{_price(cost)}; the feed and the augmentation "
            f"take {min(1.0, waiting):.0%} of a step; a batch of {small.batch_size} is the "
            f"smallest with {ENOUGH:.0%} of the best {best:,.0f} examples a second"
        )
        said = {
            "measured": seconds,
            "limit": min(set_limits.values(), default=None),
            "table": [_row(speed) for speed in speeds],
        }
        for name, limit in set_limits.items():
            if seconds > limit:
                return self.warned(
                    f"{words}; {name} leaves {_duration(limit)}",
                    advice="take fewer epochs, more processes or a faster batch size, or raise "
                    + name,
                    **said,
                )
        if seconds > _LONG and waiting > _MUCH_WAITING:
            return self.warned(
                words,
                advice="make the augmentation cheaper, or move it into the preprocessor",
                **said,
            )
        if seconds > _LONG and best > _MUCH_SLOWER * planned.examples_per_second:
            return self.warned(
                f"{words}, {best / planned.examples_per_second:.1f} times as many as with the "
                f"planned {subject.batch_size}",
                advice=f"try training.batch_size {small.batch_size} and, with it, another learning "
                "rate",
                **said,
            )
        return self.passed(words, **said)

    @staticmethod
    def planned_seconds(subject: Subject, planned: Speed) -> float:
        """Return the wall time of the planned run: its steps and its evaluations.

        A step of more examples than the sample has is as much longer; processes share a step.
        """
        training, steps = subject.training, subject.steps
        share = training.batch_size / planned.batch_size / training.world_size
        every = training.evaluate_every or max(1, steps // 10)
        held = round(subject.planned_rows * len(subject.held_back) / max(1, len(subject.examples)))
        rows = training.evaluation_rows or held
        evaluations = -(-steps // every) * evaluation_seconds(subject, rows=rows)
        return steps * planned.seconds * share + evaluations / training.world_size


def _sizes(subject: Subject) -> list[int]:
    """The planned batch size, and its halves and doubles as far as the sample has as many rows."""
    planned, rows = subject.batch_size, len(subject.examples)
    around = (planned // 4, planned // 2, 2 * planned, 4 * planned, 8 * planned)
    return sorted({size for size in around if 2 <= size <= rows} | {planned})


def _row(speed: Speed) -> dict[str, str | float]:
    return {
        "batch size": speed.batch_size,
        "examples a second": speed.examples_per_second,
        "milliseconds a step": 1000 * speed.seconds,
        "share of feed and augmentation": min(1.0, speed.waiting / speed.seconds),
        "more memory, MiB": speed.bytes_more / 2**20,
    }


def _where(subject: Subject) -> str:
    device = device_of(subject).type
    if subject.training.device == "cuda" and device == "cpu":
        return " on this CPU, while a GPU is planned"
    return " on this GPU" if device == "cuda" else " on this CPU"


def _price(cost: float) -> str:
    return f" and cost {cost:.2f}" if cost else ""


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.3g} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
