"""Whether a file that was generated is as clean as our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.small_project.command import REPOSITORY


def lint(file: Path) -> str:
    """What ruff says of a file by this repository's rules, its form included."""
    said = ""
    for words in (["check"], ["format", "--diff"]):
        rules = ["--config", REPOSITORY / "pyproject.toml"]
        ruff = [sys.executable, "-m", "ruff", *words, *rules, file]
        ended = subprocess.run(ruff, capture_output=True, text=True, check=False)
        said += "" if ended.returncode == 0 else ended.stdout + ended.stderr
    return said
