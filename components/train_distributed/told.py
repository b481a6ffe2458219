"""The evaluations of a trial, told to the search that started it: a line of JSON each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path


class Told:
    """Adds to a file what one rank evaluates.

    Args:
        file: Of the trial; what an earlier process told stays.
        every: Steps between evaluations. Their number follows from the step, so that a trial that
            goes on from a checkpoint tells the same.
    """

    def __init__(self, file: Path, *, every: int) -> None:
        self._file, self._every = file, every

    def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell an evaluation."""
        rung = math.ceil(step / self._every)
        line = json.dumps({"step": step, "rung": rung, "metrics": dict(metrics)})
        with self._file.open("a") as file:
            file.write(line + "\n")
