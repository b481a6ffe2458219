"""Let events come in every way they can, and see that each version of the data gets one run.

    python -m tests.proofs.triggers         # five hundred sequences
    python -m tests.proofs.triggers 20

In each sequence objects come, are overwritten and deleted at random while one to three watchers
look: by a queue that delivers twice, late, in any order, or not at all, or by listing. Watchers are
killed at any of their calls, before or after it had its effect, and come back; stores, queue and
Kubeflow are away for a while, lose replies, and start what was asked for long after they were given
up on; runs fail; others start runs too; wall clocks are minutes apart. The code is the watcher's
own, from the queue's messages to the start of a run; only time, servers and faults are simulated
(`watch_world.py`), so an hour passes in a second. One sequence in fifty is of real processes on
real servers, killed with SIGKILL (`trigger_processes.py`).

The oracle (`watch_oracle.py`) knows what truly happened, and none of the code.

The last line of stdout is one JSON object. `missed`: versions of the data, or due times, that
should have had a run and had none; a sequence whose newest data has none in the end is one.
`doubled`: runs of one version too many, a second attempt at what had not failed among them, and
runs that a watcher started while another of theirs was under way. `two_holders` is of
`lease_fights.py`, as many fights as there are sequences, at most 200.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.infra.loopback import S3Server
from tests.infra.ministack import Ministack, ministack_running
from tests.infra.seaweed import s3_running
from tests.proofs.lease_fights import fights
from tests.proofs.reporting import tell
from tests.proofs.trigger_processes import Sequence, compiled, listed_place, notified_place
from tests.proofs.watch_oracle import Verdict, judge
from tests.proofs.watch_sequences import simulate

_MOST_FIGHTS = 200
_REAL_EVERY = 50
_AT_ONCE = 4  # real sequences: most of the time they wait
_NAMES = ("sequences", "real", "versions", "due", "runs", "crashes", "torn", "missed", "doubled")


class Servers(NamedTuple):
    """What real sequences need."""

    s3: S3Server
    ministack: Ministack


def prove(
    count: int, folder: Path, *, servers: Servers | None = None, seed: int = 0
) -> dict[str, int]:
    """Let `count` sequences happen; return the figures.

    Args:
        count: How many.
        folder: For what real ones leave.
        servers: For real ones; None: all are simulated.
        seed: Of the first; they count up.
    """
    figures = Counter(dict.fromkeys(_NAMES, 0))
    numbers = range(seed, seed + count)
    real = [n for n in numbers if servers is not None and n % _REAL_EVERY == _REAL_EVERY - 1]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        under_way = []
        if servers is not None and real:
            package = compiled(folder)  # once: kfp's compiler is not for threads
            for number in real:
                sequence = _real_one(number, folder / str(number), servers, package)
                under_way.append((number, sequence, pool.submit(sequence.happen)))
        for number in numbers:
            if number not in real:
                happened = simulate(random.Random(number))
                own = [r for r in happened.kubeflow.runs if r.name.startswith("simulated-")]
                _add(figures, number, judge(happened), runs=len(own), crashes=happened.deaths)
            if (number + 1) % 50 == 0:
                print(f"{number + 1}/{count}  {dict(figures)}", file=sys.stderr, flush=True)
        for number, sequence, ending in under_way:
            _add(figures, number, ending.result(), runs=sequence.runs, crashes=sequence.kills)
            figures["real"] += 1
    return dict(figures)


def _real_one(number: int, folder: Path, servers: Servers, package: Path) -> Sequence:
    """A sequence of real processes, by turns with a bucket that is listed and one that notifies."""
    is_notified = number // _REAL_EVERY % 2 == 1
    place = notified_place(servers.ministack) if is_notified else listed_place(servers.s3)
    return Sequence(folder, place, package, random.Random(number))


def _add(figures: Counter[str], number: int, verdict: Verdict, *, runs: int, crashes: int) -> None:
    doubled = [*verdict.doubled, *verdict.overlapping]
    figures.update(
        sequences=1, versions=verdict.versions, due=verdict.due, runs=runs, crashes=crashes,
        torn=verdict.torn, missed=len(verdict.missed), doubled=len(doubled),
    )  # fmt: skip
    for words in [*verdict.missed, *doubled]:
        print(f"sequence {number}: {words}", file=sys.stderr, flush=True)


def main() -> int:
    """Print the figures; 0 if nothing was missed or doubled, and no lease had two holders."""
    parser = argparse.ArgumentParser(description="Random events, and one run a version.")
    parser.add_argument("number", nargs="?", type=int, default=500, metavar="N")
    parser.add_argument("--count", type=int, help="the same as N")
    parser.add_argument("--seed", type=int, default=0, help="of the first sequence")
    arguments = parser.parse_args()
    count = arguments.count or arguments.number
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="triggers-")))
        (folder / "weed").mkdir()
        s3 = stack.enter_context(s3_running(folder / "weed"))
        (folder / "fights").mkdir()
        fought = fights(min(count, _MOST_FIGHTS), folder / "fights", s3=s3)  # forks: before threads
        servers = Servers(s3, stack.enter_context(ministack_running(folder)))
        figures = prove(count, folder, servers=servers, seed=arguments.seed)
    figures["two_holders"] = int(fought["two_holders"])
    tell("triggers", figures)
    return int(any(figures[name] for name in ("missed", "doubled", "two_holders")))


if __name__ == "__main__":
    sys.exit(main())
