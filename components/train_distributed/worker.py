"""One rank under torchrun: `torchrun -m components.train_distributed.worker JOB.json`.

It leaves `JOB.json.done` (rank 0) or `JOB.json.failed` (the first rank that fails); torchrun's own
exit code says 1 for every end but the best.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from components.train_distributed.job import train
from infra.errors import OutsideError
from training_core.errors import EvertrainError


def main(job: Path) -> int:
    """Train as the job says; return the process's exit code."""
    try:
        result = train(**json.loads(job.read_text()))
    except BaseException as error:  # noqa: BLE001 (the launcher has to know)
        known = isinstance(error, (EvertrainError, OutsideError))
        if not known and not isinstance(error, KeyboardInterrupt):
            traceback.print_exc()
        failure = {
            "kind": type(error).__name__,
            "what": error.what if known else f"{type(error).__name__}: {error}",  # type: ignore[attr-defined]
            "hint": error.hint if known else "",  # type: ignore[attr-defined]
            "rank": os.environ.get("RANK", "0"),
        }
        with job.with_name(job.name + ".failed").open("a") as file:
            file.write(json.dumps(failure) + "\n")
        return 1
    if os.environ.get("RANK", "0") == "0":
        job.with_name(job.name + ".done").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
