"""The process that one run on this machine is.

    python -m pipelines.watch.local_run < asked.json     # stdout: the run's id, once it has one

It imports what a run needs before it reads, so that one which stands by starts its first step
within a second. The registry's aliases, for which MLflow has to be imported, are mended after the
run, not before; and whether the task can be run at all the watcher asks once, when it starts
(`--check`).
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings

from pydantic import BaseModel, ConfigDict

from components.common.layout import project_store
from components.common.project import Project, open_project
from infra.errors import OutsideError
from pipelines.watch.local_mark import OwnMark
from training_core.errors import EvertrainError


class Asked(BaseModel):
    """Which run it shall be; `data`, `overrides` and `force` as `evertrain run` has them.

    Attributes:
        log: File that receives what would go to stderr; empty: none does.
    """

    model_config = ConfigDict(extra="forbid")

    name: str
    project: str
    data: str = ""
    overrides: list[str] = []
    force: bool = False
    log: str = ""


class _BegunElsewhere(Exception):  # noqa: N818
    """Another process is the run of this name."""


def main() -> int:
    """Run what is asked for on stdin; return the exit code of `evertrain run`."""
    checking = "--check" in sys.argv[1:]
    if not checking:
        _import_what_a_run_needs()
    given = sys.stdin.read()
    if not given:
        return 0  # it stood by, and nobody needs it any more
    asked = Asked.model_validate_json(given)
    if asked.log:
        log = os.open(asked.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 2)
        os.close(log)
    os.environ["EVERTRAIN_STARTED_BY"] = f"evertrain watch, {asked.name}"
    try:
        project = open_project(asked.project, overrides=asked.overrides, data=asked.data)
        return _check(project) if checking else _run(project, asked)
    except (EvertrainError, OutsideError) as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


def _import_what_a_run_needs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp's own deprecations
        import kfp.local  # noqa: F401

        import pipelines.continuous_training
        import pipelines.local  # noqa: F401


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
    if not mark.is_taken:  # it never began
        raise OutsideError(record.reasons[0] if record.reasons else "another run is under way")
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
