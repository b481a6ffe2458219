"""Let contenders fight for a lease, kill some of them, and see that it never has two holders.

    python -m tests.proofs.lease_fights         # two hundred fights
    python -m tests.proofs.lease_fights 1000

In each fight two to eight contenders, threads and processes, want one lease several times each; it
lives five seconds, the shortest there is. Fights take turns on a folder and on S3. Some contenders
are killed (SIGKILL, or at an operation at the store, before or after it). Some are paused for
longer than the lease lives (SIGSTOP, at any moment, or just before or after a look at the clock,
before they write). Wall clocks are wrong by up to a year, own clocks run up to two percent fast or
slow. The store is slow, gets stuck, loses replies, refuses, and makes writes seconds after it was
given up on.

Three witnesses, none of whom is the lease: what contenders wrote down whenever they believed to
hold it, by a clock that all processes share; a resource that takes no write with a lower token than
it has seen; and an observer that reads the object.

The last line of stdout is one JSON object. `two_holders` counts pairs of holders whose times touch;
`stale_writes` writes that were taken although a later holder was at work; `tokens_repeated` tokens
that two holders had; `late` looks that found a lease held although its time was over, and
`longest_held` how many seconds without a sign of life one was held at most.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from infra.errors import OutsideError
from infra.folder import FolderStore
from infra.lease import Lease, boot_seconds
from infra.s3 import S3Store
from infra.store import ObjectStore
from tests.infra.loopback import BUCKET, S3Server
from tests.infra.seaweed import s3_running
from tests.proofs.lease_contenders import (
    SECONDS,
    Contender,
    End,
    Weather,
    skew_wall_clock,
)
from tests.proofs.lease_oracle import BAD, Figures, judged
from tests.proofs.reporting import tell

_AT_ONCE = 20  # fights; most of the time they wait
_LONGEST = 75  # seconds, of a fight
ENDS: tuple[End, ...] = ("lives",) * 5 + ("killed", "crashes", "stopped", "stops_itself")


def fights(
    count: int,
    folder: Path,
    *,
    s3: S3Server | None,
    at_once: int = _AT_ONCE,
    seed: int = 0,
    patience: float = 25.0,
    ends: Sequence[End] = ENDS,
) -> Figures:
    """Hold `count` fights; return the figures.

    Args:
        count: How many.
        folder: For stores and notes.
        s3: A server; None: folders only.
        at_once: How many are under way at a time.
        seed: Of the first fight; they count up.
        patience: Seconds that a contender tries.
        ends: What becomes of contenders; one is drawn for each.
    """
    figures: Counter[str] = Counter()
    longest = 0.0
    running: dict[int, Path] = {}
    left = list(range(seed, seed + count))
    while left or running:
        while left and len(running) < at_once:
            number = left.pop(0)
            place = folder / f"fight-{number}"
            place.mkdir()
            running[forked(lambda n=number, p=place: _fight(n, p, s3, patience, ends))] = place  # type: ignore[misc]
        place = running.pop(_next_of(running))
        found = judged(place)
        longest = max(longest, found.pop("longest_held"))
        figures.update(found)
        figures["fights"] += 1
        if any(found[name] for name in BAD):
            words = {name: found[name] for name in BAD if found[name]}
            print(f"{place.name}: {words}", file=sys.stderr, flush=True)
        if int(figures["fights"]) % 50 == 0:
            print(f"{figures['fights']}/{count}  {dict(figures)}", file=sys.stderr, flush=True)
    return {**dict(sorted(figures.items())), "longest_held": longest}


def _next_of(running: dict[int, Path]) -> int:
    """Wait for one of these processes; others of this process are not ours to wait for."""
    while True:
        for pid in running:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return pid
        time.sleep(0.02)


def forked(work: Callable[[], None]) -> int:
    """Do something in a process of its own, which has all that is imported here."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        code = 0
    except BaseException:  # noqa: BLE001 (the parent's business is not this process's)
        traceback.print_exc()
    finally:
        os._exit(code)


def _fight(
    number: int, place: Path, s3: S3Server | None, patience: float, ends: Sequence[End]
) -> None:
    """Hold one fight, in a process of its own; leave what was seen in files."""
    chance = random.Random(number)
    open_store = _stores(number, place, s3)
    contenders = [
        replace(_contender(n, place, chance), patience=patience, end=chance.choice(ends))
        for n in range(chance.randint(2, 8))
    ]
    alone = [c.end in ("killed", "stopped", "stops_itself") for c in contenders]
    alone = [each or chance.random() < 0.4 for each in alone]
    processes = {
        forked(lambda c=c: _as_process(c, open_store)): c  # type: ignore[misc]
        for c, is_process in zip(contenders, alone, strict=True)
        if is_process
    }
    ended = threading.Event()
    threads = [threading.Thread(target=_observe, args=(open_store(), place, ended), daemon=True)]
    threads += [
        threading.Thread(target=c.run, args=(open_store,), daemon=True)
        for c, is_process in zip(contenders, alone, strict=True)
        if not is_process
    ]
    for thread in threads:
        thread.start()
    _disturb(processes, chance, place)
    for thread in threads[1:]:
        thread.join(_LONGEST)
    time.sleep(SECONDS + 0.5)  # the dead must be free by then
    ended.set()
    threads[0].join(10)
    facts = {"contenders": len(contenders), "processes": len(processes)}
    facts |= {"on_s3": isinstance(open_store(), S3Store)}
    facts |= {"crashed": sum(c.end == "crashes" for c in contenders)}
    (place / "facts").write_text(json.dumps(facts))


def _contender(number: int, place: Path, chance: random.Random) -> Contender:
    weathers = [Weather()] * 3 + [
        Weather(slow=0.2),
        Weather(stuck=0.05),
        Weather(lost=0.2, refused=0.1),
        Weather(late=0.15, slow=0.05),
    ]
    return Contender(
        f"c{number}",
        chance.getrandbits(32),
        place,
        rounds=chance.randint(1, 3),
        weather=chance.choice(weathers),
        skew=chance.choice([0, 0, 3600, -3600, 3.15e7, -3.15e7]),
        rate=chance.uniform(0.98, 1.02),
    )


def _as_process(contender: Contender, open_store: Callable[[], ObjectStore]) -> None:
    skew_wall_clock(contender.skew)
    contender.run(open_store)


def _disturb(processes: dict[int, Contender], chance: random.Random, place: Path) -> None:
    """Kill and pause processes at random moments; wake those that sleep after the lease's time."""
    began = time.monotonic()
    plans: list[tuple[float, int, int]] = []
    for pid, contender in processes.items():
        at = chance.uniform(0.05, 6)
        if contender.end == "killed":
            plans.append((at, pid, signal.SIGKILL))
        if contender.end == "stopped":
            plans += [(at, pid, signal.SIGSTOP)]
            plans += [(at + SECONDS + chance.uniform(0, 2), pid, signal.SIGCONT)]
    plans.sort()
    asleep: dict[int, float] = {}
    left = dict(processes)
    done: Counter[str] = Counter()
    while left and time.monotonic() - began < _LONGEST:
        now = time.monotonic()
        while plans and now - began >= plans[0][0]:
            _, pid, number = plans.pop(0)
            if pid in left:
                done[signal.Signals(number).name] += 1
                os.kill(pid, number)
        for pid, contender in list(left.items()):
            ended, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if ended and os.WIFSTOPPED(status):
                if contender.end == "stops_itself":
                    asleep[pid] = now + SECONDS + chance.uniform(0, 2)
                    done["stops"] += 1
            elif ended:
                del left[pid]
        for pid, at in list(asleep.items()):
            if now >= at and pid in left:
                del asleep[pid]
                os.kill(pid, signal.SIGCONT)
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    done["hung"] = len(left)
    (place / "disturbed").write_text(json.dumps(done))


def _observe(store: ObjectStore, place: Path, ended: threading.Event) -> None:
    """Look at the lease, again and again; write down what was seen and when."""
    lease = Lease(store)
    with (place / "looks").open("w") as file:
        while not ended.wait(0.2):
            began = boot_seconds()
            try:
                seen = lease.look()
            except OutsideError:
                continue
            if seen is not None:
                look = [began, boot_seconds(), seen.version, seen.record.held, seen.free]
                file.write(json.dumps(look) + "\n")
                file.flush()


def _stores(number: int, place: Path, s3: S3Server | None) -> Callable[[], ObjectStore]:
    if s3 is None or number % 2 == 0:
        return lambda: FolderStore(place / "store")
    prefix = uuid.uuid4().hex
    for name, value in s3.environment.items():
        os.environ[name] = value  # of this fight's process
    return lambda: S3Store(bucket=BUCKET, prefix=prefix)


@contextmanager
def _server(folder: Path) -> Iterator[S3Server]:
    (folder / "weed").mkdir()
    with s3_running(folder / "weed") as server:
        yield server


def main() -> int:
    """Print the figures; 0 if there were never two holders and every dead one was free in time."""
    parser = argparse.ArgumentParser(description="Fight for a lease, with kills and pauses.")
    parser.add_argument("number", nargs="?", type=int, default=200, metavar="N")
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lease-fights-")))
        s3 = stack.enter_context(_server(folder))
        figures = fights(arguments.count or arguments.number, folder, s3=s3)
    tell("lease_fights", figures)
    return int(any(figures[name] for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
