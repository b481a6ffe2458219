"""One rank under torchrun: `torchrun -m components.train_distributed.worker JOB.json`.

It leaves `JOB.json.done` (rank 0) or a line in `JOB.json.failed` (each rank that fails); torchrun's
own exit code says 1 for every end but the best.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from components.common.watchdog import end_with_launcher
from components.train_distributed.failures import Failure
from components.train_distributed.job import train


def main(job: Path) -> int:
    """Train as the job says; return the process's exit code."""
    end_with_launcher()
    try:
        result = train(**json.loads(job.read_text()))
    except BaseException as error:  # noqa: BLE001 (the launcher has to know)
        failure = Failure.of(error)
        if not failure.known:
            traceback.print_exc()
        with job.with_name(job.name + ".failed").open("a") as file:
            file.write(json.dumps(failure.to_dict()) + "\n")
        return 1
    if os.environ.get("RANK", "0") == "0":
        job.with_name(job.name + ".done").write_text(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
