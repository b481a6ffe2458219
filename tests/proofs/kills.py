"""Kill trainings at random moments; what goes on must end as if nothing had happened.

    python -m tests.proofs.kills          # 200 kills
    python -m tests.proofs.kills 20

Half of the trainings keep their number of processes; the others change it at every start, 1, 2, 4,
1, …, every other one of them with `deterministic: topology`. Half of the kills wait for a
checkpoint that is being written. One rank or all of them get a SIGKILL.

The last line of stdout is one JSON object: `runs` trainings finished after `kills` kills,
`inside_writes` of which left a checkpoint without its manifest; `promised` runs had to end with the
weights of an undisturbed run, bit for bit, and with its curve, and `identical` did; `samples_lost`
and `samples_repeated` count samples that an epoch of what counts in the end lacks or holds twice.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

from tests.proofs.reporting import tell
from tests.proofs.storm import EPOCHS, SAMPLES, Attempt, run, steps_seen

_KILLS_A_RUN = 10
_PATIENCE = 120.0  # seconds that an undisturbed attempt may take
_GRACE = 10.0  # seconds for those that a kill has spared; like torchrun, but that gives them 30
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.proofs.storm"])  # torch is imported once, not by each rank


class Storm:
    """Trainings in a folder, and what became of them."""

    def __init__(self, folder: Path, *, seed: int = 0) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.references: dict[tuple[str, int], dict[str, Any]] = {}
        self.figures = dict.fromkeys(
            ("runs", "kills", "inside_writes", "promised", "identical", "samples_lost",
             "samples_repeated"), 0
        )  # fmt: skip

    def training(self, number: int, *, kills: int) -> None:
        """Train once, killed up to `kills` times on the way."""
        folder = self.folder / f"run-{number}"
        folder.mkdir()
        changing, topology = number % 2 == 1, number % 4 == 1
        deterministic = "topology" if topology else "ranks"
        fixed = (1, 2, 4)[number // 2 % 3]
        ranks: Iterator[int] = cycle((1, 2, 4)) if changing else repeat(fixed)
        began, attempt = time.monotonic(), 0
        while not (folder / "final.json").exists():
            world_size = next(ranks)
            limit = self._moment() if attempt < kills else None
            self._attempt(folder, attempt, world_size, deterministic, limit)
            attempt += 1
            if attempt > kills + 5:
                words = max(folder.glob("words-*"), key=lambda file: file.stat().st_mtime)
                raise AssertionError(f"{folder} does not come to its end:\n{words.read_text()}")
        final = json.loads((folder / "final.json").read_text())
        self.figures["runs"] += 1
        lost, repeated = self._samples(folder)
        self.figures["samples_lost"] += lost
        self.figures["samples_repeated"] += repeated
        words = ""
        if topology or not changing:
            same = final == self._reference(deterministic, 1 if changing else world_size)
            self.figures["promised"] += 1
            self.figures["identical"] += same
            words = ", identical" if same else ", NOT IDENTICAL"
        print(
            f"run {number}: {attempt} attempts on {'1, 2, 4, …' if changing else world_size} "
            f"processes ({deterministic}): lost {lost}, repeated {repeated}{words}, "
            f"{time.monotonic() - began:.0f} s",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    def _moment(self) -> tuple[bool, float]:
        """When to kill: (wait for a checkpoint that is being written, seconds)."""
        inside = self.random.random() < 0.5
        return inside, self.random.uniform(0, 0.02 if inside else 1.0)

    def _attempt(
        self, folder: Path, number: int, world_size: int, deterministic: str,
        limit: tuple[bool, float] | None,
    ) -> None:  # fmt: skip
        """Start all ranks; let them end, or kill one or all of them."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        processes = [
            _CONTEXT.Process(
                target=run, args=(Attempt(folder, number, r, world_size, port, deterministic),)
            )
            for r in range(world_size)
        ]
        for process in processes:
            process.start()
        until = time.monotonic() + _PATIENCE
        try:
            if limit is not None and self._strike(folder, processes, *limit, until):
                until = time.monotonic() + _GRACE  # one may wait for the dead to come and begin
            for process in processes:
                process.join(max(0.0, until - time.monotonic()))
        finally:
            for process in processes:
                process.kill()
                process.join()

    def _strike(
        self, folder: Path, processes: list[Any], inside: bool, seconds: float, until: float
    ) -> bool:
        """Kill; return whether anybody was alive to be killed."""
        if inside:
            while time.monotonic() < until and not _unfinished(folder):
                if not any(p.is_alive() for p in processes):
                    return False
                time.sleep(0.0005)
        time.sleep(seconds)
        one = self.random.random() < 0.5
        victims = [self.random.choice(processes)] if one else processes
        alive = [p for p in victims if p.is_alive()]
        for process in alive:
            process.kill()
        if alive:
            for process in alive:
                process.join()
            self.figures["kills"] += 1
            self.figures["inside_writes"] += bool(_unfinished(folder))
        return bool(alive)

    def _reference(self, deterministic: str, world_size: int) -> dict[str, Any]:
        """What an undisturbed run ends with."""
        key = (deterministic, world_size)
        if key not in self.references:
            folder = self.folder / f"undisturbed-{deterministic}-{world_size}"
            folder.mkdir()
            self._attempt(folder, 0, world_size, deterministic, None)
            self.references[key] = json.loads((folder / "final.json").read_text())
        return self.references[key]

    def _samples(self, folder: Path) -> tuple[int, int]:
        """Count samples lost and repeated over the epochs, in the steps that count in the end.

        An attempt begins at its checkpoint: what earlier attempts did from that step on has gone
        with them.
        """
        counted: dict[int, list[int]] = {}
        files = sorted(folder.glob("seen-*"))
        for attempt in sorted({file.name.split("-")[1] for file in files}):
            notes = [n for file in files if f"-{attempt}-" in file.name for n in steps_seen(file)]
            first = min((step for step, _ in notes), default=None)
            if first is not None:
                counted = {step: rows for step, rows in counted.items() if step < first}
            for step, rows in notes:
                counted.setdefault(step, []).extend(rows)
        a_step = -(-SAMPLES // 32)
        lost = repeated = 0
        for epoch in range(EPOCHS):
            steps = range(epoch * a_step, (epoch + 1) * a_step)
            seen = Counter(row for step in steps for row in counted.get(step, []))
            lost += SAMPLES - len(seen)
            repeated += sum(count - 1 for count in seen.values())
        return lost, repeated


def _unfinished(folder: Path) -> list[Path]:
    """Folders of checkpoints that hold something, but no manifest yet."""
    return [
        place
        for place in (folder / "store" / "run").glob("*")
        if place.is_dir() and not (place / "manifest.json").exists() and any(place.iterdir())
    ]


def prove(kills: int, folder: Path) -> dict[str, int]:
    """Train until `kills` kills have been survived; return the figures."""
    storm, number = Storm(folder), 0
    while (left := kills - storm.figures["kills"]) > 0:
        storm.training(number, kills=min(left, _KILLS_A_RUN))
        number += 1
    return storm.figures


def holds(figures: dict[str, int]) -> bool:
    """Whether the promises were kept."""
    return (
        figures["identical"] == figures["promised"]
        and not figures["samples_lost"]
        and not figures["samples_repeated"]
    )


def main() -> int:
    """Print the figures; 0 if the promises were kept."""
    parser = argparse.ArgumentParser(description="Kill trainings and prove that nothing is lost.")
    parser.add_argument("number", nargs="?", type=int, default=200, metavar="N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kills-", ignore_cleanup_errors=True) as folder:
        figures = prove(arguments.number, Path(folder))
    tell("kills", figures)
    return 0 if holds(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
