"""A bar on a terminal, plain lines otherwise, nothing from other ranks."""

from __future__ import annotations

import io
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest

from components.train_distributed.progress import Progress
from training_core.outcome import Point, Rollback

ROOT = Path(__file__).parents[2]
BACK = Rollback(step=60, to_step=40, reason="the loss is nan", lr_factor=0.5)


def shown(rank: int) -> str:
    stream = io.StringIO()
    progress = Progress.open(total_steps=100, rank=rank, stream=stream)
    progress.point(Point(20, 0.51234, 1e-3, 1.5, 41234.0))
    progress.evaluation(20, {"loss": 0.49, "brier": 0.2})
    progress.rollback(BACK)
    progress.point(Point(40, 0.4, 5e-4, 1.25, 40000.0, skipped_steps=2))
    progress.close()
    return stream.getvalue()


def test_without_a_terminal_there_is_one_plain_line_for_each_thing() -> None:
    assert shown(rank=0).splitlines() == [
        "step 20/100  loss 0.5123  lr 0.001  gradient 1.50  41,234 samples/s",
        "step 20  validation loss 0.4900",
        "step 60  training diverged: the loss is nan; going on from step 40 with learning rate "
        "× 0.5",
        "step 40/100  loss 0.4000  lr 0.0005  gradient 1.25  40,000 samples/s  2 skipped",
    ]


def test_other_ranks_show_nothing() -> None:
    assert shown(rank=1) == ""


SHOW = """
import sys
from components.train_distributed.progress import Progress
from training_core.outcome import Point
assert "rich" not in sys.modules
progress = Progress.open(total_steps=100, rank=0)
for step in (50, 100):
    progress.point(Point(step, 0.5, 1e-3, 1.5, 41234.0))
    progress.evaluation(step, {"loss": 0.49})
print("data")
progress.close()
"""


def on_a_terminal(**variables: str) -> tuple[str, str]:
    """Run SHOW with stderr on a terminal of 120 columns; return what it showed, and its stdout."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "120", "TERM": "xterm-256color", **variables}
    process = subprocess.Popen(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={name: value for name, value in environment.items() if value},
    )
    os.close(theirs)
    seen = b""
    try:
        while select.select([ours], [], [], 60)[0]:
            seen += os.read(ours, 65536)
    except OSError:  # the other end was closed
        pass
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, seen.decode()
    return seen.decode(), out


@pytest.mark.parametrize("colours", [True, False])
def test_on_a_terminal_there_is_a_bar_and_evaluations_stay_above_it(colours: bool) -> None:
    seen, out = on_a_terminal(NO_COLOR="" if colours else "1")
    assert out == "data\n"
    assert "100/100" in seen
    assert "loss 0.5000  lr 0.001  gradient 1.50  41,234 samples/s" in seen
    assert re.search(r"step 50  validation loss 0\.4900\r\n", seen)
    assert "\x1b[?25h" in seen  # the cursor is shown again
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", seen)) == colours


def test_a_dumb_terminal_gets_plain_lines() -> None:
    seen, _ = on_a_terminal(TERM="dumb")
    assert "\x1b" not in seen
    assert "step 50/100  loss 0.5000" in seen
