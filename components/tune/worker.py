"""A process that trains one trial after the other: `python -m components.tune.worker FD`.

Jobs come as lines of JSON on stdin; how each ended goes as a line to the file descriptor. Libraries
are imported once. It ends with its stdin, and with the search that started it.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from typing import Any

from components.common.project import open_project
from components.common.watchdog import end_with_parent
from components.train_distributed.failures import Failure
from components.train_distributed.stop import NOTICE


def main(answers: int) -> None:
    """Do what is asked until nothing more comes."""
    end_with_parent()
    with os.fdopen(answers, "w") as file:
        for line in sys.stdin:
            file.write(json.dumps(_done(json.loads(line))) + "\n")
            file.flush()


def _done(job: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    os.environ[NOTICE] = job["stop"]
    try:
        result = _trained(job["training"])
        return {"result": result, "seconds": time.monotonic() - began}
    except BaseException as error:  # noqa: BLE001 (the search has to know)
        failure = Failure.of(error)
        if not failure.known:
            traceback.print_exc()
        return {"failure": failure.to_dict(), "seconds": time.monotonic() - began}


def _trained(training: dict[str, Any]) -> dict[str, Any]:
    """Train as train_distributed does; a training that came to its end is not repeated."""
    from components.common.layout import home, project_store
    from components.common.records import threads_of
    from components.train_distributed.job import train
    from components.train_distributed.results import drop_result, kept_result, made_of
    from components.train_distributed.torchrun import start_torchrun

    opened = open_project(training["project"], overrides=training["overrides"])
    objects = project_store(opened, training["store"])
    wanted = made_of(opened, training["splits"])
    kept = kept_result(objects, training["run_key"], made_of=wanted)
    if kept is not None:
        return kept
    drop_result(objects, training["run_key"])
    settings = opened.settings.training
    if settings.processes == 1:
        return train(**training)
    ended = start_torchrun(
        training,
        processes=settings.processes,
        folder=home(opened) / "scratch",
        env={**os.environ, "OMP_NUM_THREADS": str(threads_of(settings))},
    )
    if ended.result is not None:
        return ended.result
    raise ended.exception()


if __name__ == "__main__":
    main(int(sys.argv[1]))
