"""The proof of planted bugs in its short form: some of each kind, and a file of one's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.planted_bugs.catalogue import PAGE
from tests.proofs.bugs import SHORT, prove

pytestmark = pytest.mark.slow


def test_planted_bugs_are_caught_and_healthy_tasks_pass(capsys: pytest.CaptureFixture[str]) -> None:
    figures = prove(seeds=1, names=SHORT, only_named=True)
    said = capsys.readouterr().err
    assert (figures["bugs"], figures["caught"]) == (8, 8), said
    assert (figures["healthy"], figures["false_alarms"]) == (4, 0), said


def test_the_pages_own_bugs_are_caught(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "Theme(" in block)
    (tmp_path / "my_bugs.py").write_text(code)
    figures = prove(file=str(tmp_path / "my_bugs.py"), only_named=True)
    assert (figures["bugs"], figures["caught"]) == (3, 3), capsys.readouterr().err


def test_what_no_check_finds_is_missed_and_a_failing_task_is_a_false_alarm(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bug that changes nothing, and a task whose loss has the wrong sign."""
    (tmp_path / "none.py").write_text(
        "from tests.planted_bugs import healthy_tiny\n"
        "from tests.planted_bugs.contract import Healthy\n"
        "from tests.planted_bugs.planting import Theme\n"
        "THEME = Theme('none')\n"
        "@THEME.built(healthy_tiny.HEALTHY, 'Nothing.', found_by=['loss_function'])\n"
        "def nothing(model): pass\n"
        "class Wrong(healthy_tiny.Illness):\n"
        "    def loss(self, outputs, target): return -super().loss(outputs, target)\n"
        "BAD = Healthy(name='bad', task=Wrong, rows=healthy_tiny.rows,\n"
        "              training=healthy_tiny.HEALTHY.training)\n"
    )
    figures = prove(seeds=1, file=str(tmp_path / "none.py"))
    said = capsys.readouterr().err
    assert (figures["bugs"], figures["caught"]) == (1, 0), said
    assert (figures["healthy"], figures["false_alarms"]) == (1, 1), said
    assert "MISSED: " in said
    assert "FALSE ALARM: " in said
