"""torchrun, without a traceback for each rank that ends: whoever started it says why in words.

    python -m components.train_distributed.agent [torchrun's options] PROGRAM

Everything else, its exit code included, is torchrun's.
"""

from __future__ import annotations

import sys

from torch.distributed import DistError
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.elastic.rendezvous import RendezvousError
from torch.distributed.run import parse_args, run


def main() -> int:
    """Run torchrun's agent; return its exit code."""
    try:
        run(parse_args(sys.argv[1:]))  # type: ignore[no-untyped-call]
    except (ChildFailedError, SignalException):
        return 1
    except (RendezvousError, DistError) as error:
        print(f"torchrun: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
