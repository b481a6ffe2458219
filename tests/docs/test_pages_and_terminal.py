"""What a page shows is held against what was printed: numbers apart, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.documented import tutorial
from tests.docs.terminal import not_printed, typed

PRINTED = """shop, run 20261122T190100Z-8d44
│ snapshot_data     │     1.0 │ ✓ done    │
verdict:  promoted
reason:   0.1060 better (95% interval +0.0514 to +0.1784)
report:   /tmp/here/shop/runs/20261122T190100Z-8d44/report.html
"""


@pytest.mark.parametrize(
    ("shown", "missing"),
    [
        ("│ snapshot_data     │    12.3 │ ✓ done    │", False),
        ("│ snapshot_data     │    12.3 │ ✗ failed  │", True),
        ("verdict:  promoted", False),
        ("verdict:  hold", True),
        ("verdict:", True),
        ("reason:   0.2 better (95% interval -1.0 to +12)", False),
        ("report:   /home/ada/shop/runs/20200101T000000Z-abcd/report.html", False),
        ("report:   /home/eve/shop/runs/20200101T000000Z-abcd/report.html", True),
    ],
)
def test_a_line_may_differ_in_numbers_runs_and_folders_alone(shown: str, missing: bool) -> None:
    assert bool(not_printed((shown,), PRINTED, folder="/tmp/here")) is missing


def test_lines_come_in_the_order_of_the_page() -> None:
    assert not not_printed(("verdict:  promoted", "reason:   0 better (9% interval 1 to 2)"),
                           PRINTED, folder="/tmp/here")  # fmt: skip
    late = ("report:   /home/ada/shop/runs/20200101T000000Z-abcd/report.html", "verdict:  promoted")
    assert not_printed(late, PRINTED, folder="/tmp/here") == "verdict:  promoted"


def test_the_tutorial_shows_something_of_all_that_matters() -> None:
    steps = {step.command: step.shown for step in tutorial()}
    assert len(steps) >= 8
    silent = [command for command, shown in steps.items() if not shown]
    assert [command.split()[0] for command in silent] == ["echo"]


def test_a_command_is_typed_into_a_terminal_of_80_columns(tmp_path: Path) -> None:
    ended = typed("echo aside >&2; test -t 1 && exit 3", folder=tmp_path)
    assert (ended.code, ended.err) == (3, "aside\n")
    ended = typed("evertrain --help", folder=tmp_path)
    assert ended.code == 0
    assert max(len(line) for line in ended.out.splitlines()) <= 80
