"""The process that one run on this machine is.

    python -m pipelines.watch.local_run < asked.json     # stdout: the run's id, once it has one

Imports are few: two seconds after it was started its first step runs. So the registry's aliases,
for which MLflow has to be imported, are mended after the run, not before; and whether the task can
be run at all the watcher asks once, when it starts (`--check`).
"""

from __future__ import annotations

import os
import sys
import traceback

from pydantic import BaseModel, ConfigDict

from components.common.layout import project_store
from components.common.project import Project, open_project
from infra.errors import OutsideError
from pipelines.watch.local_mark import OwnMark
from training_core.errors import EvertrainError


class Asked(BaseModel):
    """Which run it shall be; `data`, `overrides` and `force` as `evertrain run` has them."""

    model_config = ConfigDict(extra="forbid")

    name: str
    project: str
    data: str = ""
    overrides: list[str] = []
    force: bool = False


class _BegunElsewhere(Exception):  # noqa: N818
    """Another process is the run of this name."""


def main() -> int:
    """Run what is asked for on stdin; return the exit code of `evertrain run`."""
    asked = Asked.model_validate_json(sys.stdin.read())
    try:
        project = open_project(asked.project, overrides=asked.overrides, data=asked.data)
        if "--check" in sys.argv[1:]:
            return _check(project)
        return _run(project, asked)
    except (EvertrainError, OutsideError) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _check(project: Project) -> int:
    from components.common.runnable import runnable_task

    runnable_task(project)
    return 0


def _run(project: Project, asked: Asked) -> int:
    from pipelines.local import run_locally

    mark = OwnMark(project_store(project), asked.name)

    def begin(run: str) -> None:
        there = mark.take(run)
        print(there, flush=True)
        os.dup2(2, 1)  # the watcher reads no further, and may be gone before this ends
        if there != run:
            raise _BegunElsewhere

    try:
        record = run_locally(
            project, data=asked.data, overrides=asked.overrides, force=asked.force, on_begin=begin
        )
    except _BegunElsewhere:
        return 0
    except (EvertrainError, OutsideError) as error:
        mark.end(error.exit_code, error.what)
        raise
    except KeyboardInterrupt:
        mark.end(130, "interrupted")
        return 130
    except Exception as error:  # noqa: BLE001 (every end is said)
        traceback.print_exc()
        mark.end(1, f"{type(error).__name__}: {error}")
        return 1
    mark.end(record.exit_code)
    _mend(project)
    return record.exit_code


def _mend(project: Project) -> None:
    """Make the registry's aliases follow the log, should this run, or one before, have crashed."""
    from pipelines.models import Models

    try:
        Models(project).repair()
    except (EvertrainError, OutsideError) as error:
        print(f"the registry's aliases were not looked at: {error.what}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
