"""Shows a training as it goes: a bar on a terminal, one plain line an interval otherwise.

    progress = Progress.open(total_steps=..., rank=strategy.rank)
    progress.point(point)
    progress.evaluation(step, metrics)
    progress.close()

It talks on stderr, and without colours where NO_COLOR is set.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from training_core.outcome import Point, Rollback

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


class Progress:
    """What shows a training; this one shows nothing."""

    @staticmethod
    def open(*, total_steps: int, rank: int, stream: TextIO | None = None) -> Progress:
        """Return what fits the stream (default stderr); ranks other than 0 show nothing."""
        stream = stream or sys.stderr
        if rank != 0:
            return Progress()
        if stream.isatty() and os.environ.get("TERM") != "dumb":
            return Bar(total_steps, stream)
        return Lines(total_steps, stream)

    def point(self, point: Point) -> None:
        """Show a log interval."""

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show an evaluation."""

    def rollback(self, rollback: Rollback) -> None:
        """Show that training went back to an earlier checkpoint."""

    def close(self) -> None:
        """Leave the terminal as it was; nothing is shown after this."""


class Lines(Progress):
    """One plain line for each thing."""

    def __init__(self, total_steps: int, stream: TextIO) -> None:
        self._total, self._stream = total_steps, stream

    def point(self, point: Point) -> None:
        self._say(f"step {point.step}/{self._total}  {figures(point)}")

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        self._say(f"step {step}  {scores(metrics)}")

    def rollback(self, rollback: Rollback) -> None:
        self._say(went_back(rollback))

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class Bar(Progress):
    """A bar that fills, with the newest figures beside it; what stays is printed above."""

    def __init__(self, total_steps: int, stream: TextIO) -> None:
        self._total, self._stream = total_steps, stream
        self._progress: RichProgress | None = None

    def point(self, point: Point) -> None:
        progress = self._shown()
        progress.update(progress.task_ids[0], completed=point.step, figures=figures(point))

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        self._above(f"step {step}  {scores(metrics)}")

    def rollback(self, rollback: Rollback) -> None:
        self._above(went_back(rollback))

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _above(self, line: str) -> None:
        self._shown().console.print(line, markup=False, highlight=False)

    def _shown(self) -> RichProgress:
        """Rich is imported, and the bar appears, with the first thing to show."""
        if self._progress is None:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as RichProgress

            self._progress = RichProgress(
                BarColumn(bar_width=20),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.fields[figures]}", markup=False),
                console=Console(file=self._stream),
                redirect_stdout=False,  # stdout is data
                refresh_per_second=4,
            )
            self._progress.add_task("training", total=self._total, figures="")
            self._progress.start()
        return self._progress


def figures(point: Point) -> str:
    """A log interval's figures in a few words."""
    words = [
        f"loss {point.loss:.4f}",
        f"lr {point.lr:.2g}",
        f"gradient {point.gradient_norm:.2f}",
        f"{point.samples_per_second:,.0f} samples/s",
    ]
    if point.skipped_steps:
        words.append(f"{point.skipped_steps} skipped")
    return "  ".join(words)


def scores(metrics: Mapping[str, float]) -> str:
    """An evaluation's loss in a few words."""
    return f"validation loss {metrics['loss']:.4f}"


def went_back(rollback: Rollback) -> str:
    """A rollback in one sentence."""
    return (
        f"step {rollback.step}  training diverged: {rollback.reason}; going on from step "
        f"{rollback.to_step} with learning rate × {rollback.lr_factor:g}"
    )
