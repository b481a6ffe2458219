"""`evertrain --help` answers at once: the command line reads nothing heavy until it must."""

from __future__ import annotations

import subprocess
import sys

from tests.small_project.command import environment

HEAVY = "boto3 duckdb great_expectations jinja2 kfp mlflow numpy optuna pandas pyarrow torch"


def test_the_command_line_imports_nothing_heavy() -> None:
    program = (
        f"import sys, pipelines.cli; print(*sorted(set('{HEAVY}'.split()) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True,
        check=True, env=environment(),
    )  # fmt: skip
    assert done.stdout.split() == []
