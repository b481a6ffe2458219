"""The small project in a folder of its own, and the command line as another process runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.small_project.make_data import write_months

REPOSITORY = Path(__file__).parents[2]
FILES = ("evertrain.yaml", "task.py", "expectations.json")
_OURS = ("EVERTRAIN_", "MLFLOW_", "AWS_")


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout, which must be one JSON object and nothing else."""
        return json.loads(self.out)


def make_project(folder: Path, *months: int) -> Path:
    """Copy the small project to a folder, with these months of data; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(Path(__file__).with_name(name), folder / name)
    write_months(folder / "data", *months)
    return folder


def environment() -> dict[str, str]:
    """What a command sees: nothing of ours that the machine happens to set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return kept | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}


def command(*words: str | Path) -> list[str]:
    """`evertrain WORDS`."""
    return [sys.executable, "-m", "pipelines.cli", *map(str, words)]


def evertrain(
    *words: str | Path, timeout: float = 280, more: dict[str, str] | None = None
) -> Ended:
    """Run `evertrain WORDS` to its end, from a folder that has nothing to do with it."""
    done = subprocess.run(
        command(*words), capture_output=True, text=True, timeout=timeout, cwd="/",
        env=environment() | (more or {}), check=False,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr)
