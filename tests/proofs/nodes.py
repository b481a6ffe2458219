"""Two hosts train one model, and lose each other; what comes of it must be as if they had not.

    python -m tests.proofs.nodes          # 16 trainings
    python -m tests.proofs.nodes 4

The hosts are network namespaces with addresses of their own, or, where those may not be made, two
agents on loopback. Trainings take turns: DDP, FSDP, canonical microbatches, and those with one node
or two, as many as there are. Each is hurt three times: a host dies (the one where nodes meet, or
the other), or vanishes without a word; its torchrun dies, or its rank; it is drained, or its cable
is pulled; half of the times while a checkpoint is being written. A host that has gone is started
again, as Kubernetes does.

The last line of stdout is one JSON object: `trials` trainings that came to their end after `kills`,
`inside_writes` of which left a checkpoint without its manifest; `promised` had to end with the
weights, the curve and the evaluations of an undisturbed one, bit for bit, and `identical` did;
`samples_lost` and `samples_repeated` count samples that an epoch of what counts lacks or holds
twice; `seconds` is the mean of a disturbed training, `undisturbed_seconds` of one that was left
alone.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from components.common.layout import put_object
from components.common.project import open_project
from components.train_distributed.results import made_of
from components.train_distributed.shared_job import JobOfNodes, SharedJob
from infra.folder import FolderStore
from tests.proofs.hosts import Host, open_hosts
from tests.proofs.nodes_outcome import BATCH, EPOCHS, SAMPLES, final_of, lost_and_repeated
from tests.proofs.noting_task import SEEN, rows
from tests.proofs.reporting import tell
from tests.small_project.command import environment

_BLOWS = 3
_PATIENCE = 300.0  # seconds that a training may take, hurt or not
_PACKAGE = "components.train_distributed"


@dataclass(frozen=True)
class Kind:
    """A way to train on two hosts.

    Attributes:
        least: Nodes that train while the other is gone.
        promised: Whether it ends bit for bit as an undisturbed one.
    """

    name: str
    settings: tuple[str, ...] = ()
    least: int = 2
    promised: bool = True


KINDS = (
    Kind("ddp"),
    Kind("fsdp", ("training.parallel.strategy=fsdp",)),
    Kind("topology", ("training.deterministic=topology",)),
    Kind("elastic topology", ("training.deterministic=topology",), least=1),
    Kind("elastic ddp", least=1, promised=False),
)
WAYS = ("host", "vanished", "torchrun", "rank", "cable", "drained")


class Pair:
    """Two hosts, a project, and what became of its trainings."""

    def __init__(self, folder: Path, hosts: list[Host], *, seed: int = 0) -> None:
        self.folder, self.hosts, self.random = folder, hosts, random.Random(seed)
        self.store = FolderStore(folder / "store")
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "task.py").write_text(
            "from tests.proofs.noting_task import NotingTask as NotingTask\n"
        )
        settings = {
            "name": "nodes",
            "task": {"path": "task:NotingTask"},
            "data": {"source": "data", "row_key": ["row"]},
            "split": {"by": "hash", "holdout": 0.2, "validation": 0.2},
            "decision": {"cluster": "row"},
            "training": {
                "nodes": 2, "epochs": EPOCHS, "batch_size": BATCH, "device": "cpu", "threads": 1,
                "log_every": 5, "evaluate_every": 16, "checkpoints": {"every": 8},
            },
        }  # fmt: skip
        (self.project / "evertrain.yaml").write_text(yaml.safe_dump(settings))
        parts = {}
        for seed_of_part, (part, count) in enumerate((("train", SAMPLES), ("validation", 200))):
            file = folder / f"{part}.parquet"
            rows(count, seed_of_part).to_parquet(file, index=False)
            parts[part] = {"sha256": put_object(self.store, file), "rows": count}
        self.splits = {"parts": parts}
        self.references: dict[str, dict[str, Any]] = {}
        self.figures: dict[str, float] = dict.fromkeys(
            ("trials", "kills", "inside_writes", "promised", "identical", "samples_lost",
             "samples_repeated"), 0
        )  # fmt: skip
        self.seconds: dict[bool, list[float]] = {True: [], False: []}

    def trial(
        self, number: int, kind: Kind, *, blows: int = _BLOWS, ways: Sequence[str] = WAYS
    ) -> None:
        """Train once, hurt on the way."""
        key, began = f"trial-{number}", time.monotonic()
        done = self._train(key, kind, blows=blows, ways=ways)
        seconds = time.monotonic() - began
        final = final_of(self.store, key)
        lost, repeated = lost_and_repeated(self.folder / "seen" / key)
        self.figures["trials"] += 1
        self.figures["samples_lost"] += lost
        self.figures["samples_repeated"] += repeated
        self.seconds[True].append(seconds)
        words = ""
        if kind.promised:
            same = final == self._reference(kind)
            self.figures["promised"] += 1
            self.figures["identical"] += same
            words = ", identical" if same else ", NOT IDENTICAL"
        print(
            f"training {number} ({kind.name}), hurt: {', '.join(done) or 'not'}: lost {lost}, "
            f"repeated {repeated}{words}, {seconds:.0f} s",
            file=sys.stderr, flush=True,
        )  # fmt: skip

    # ---- one training --------------------------------------------------------------------------

    def _train(self, key: str, kind: Kind, *, blows: int, ways: Sequence[str]) -> list[str]:
        """Bring a training to its end, started again like pods; return what was done to it."""
        (self.folder / "seen" / key).mkdir(parents=True)
        shared = self._share(key, kind)
        nodes = {host: self._start(host, shared) for host in self.hosts}
        done: list[str] = []
        struck_at = 0
        until = time.monotonic() + _PATIENCE
        while any(process.poll() != 0 for process in nodes.values()):
            if time.monotonic() > until or shared.failure() is not None:
                raise AssertionError(f"{key} ({kind.name}) does not end:\n{self._logs(key)}")
            newest = self._newest(key)
            if len(done) < blows and newest > struck_at and self.hosts[0].processes("worker"):
                struck_at = newest
                done.append(self._strike(key, self.random.choice(ways)))
            for host, process in nodes.items():
                if process.poll() not in (None, 0):
                    # a kubelet's back-off; where one node is enough, a machine has to be found
                    time.sleep(self.random.uniform(0, 1 if kind.least == 2 else 15))
                    nodes[host] = self._start(host, shared)
            time.sleep(0.05)
        return done

    def _share(self, key: str, kind: Kind) -> SharedJob:
        overrides = [f"training.seed={len(kind.name)}", *kind.settings]
        opened = open_project(self.project, overrides=overrides)
        shared = SharedJob.numbered(self.store, key, 1)
        job = {
            "project": str(self.project), "store": self.store.uri, "overrides": overrides,
            "run_key": key, "splits": self.splits,
        }  # fmt: skip
        shared.create(
            JobOfNodes(
                training=job, made_of=made_of(opened, self.splits), run="20250101T000000Z-0000",
                identity=key, nodes=2, least=kind.least, processes=1, port=29500, interface="",
                meeting=120, last_call=3, restarts=8, stop_grace=15, orphaned=3600,
            )
        )  # fmt: skip
        return shared

    def _start(self, host: Host, shared: SharedJob) -> subprocess.Popen[bytes]:
        key = shared.read().run_key
        env = {
            **environment(), SEEN: str(self.folder / "seen" / key),
            "EVERTRAIN_HOME": str(self.folder / f"home-{host.number}"),
        }  # fmt: skip
        command = [
            sys.executable, "-m", f"{_PACKAGE}.node", shared.store.uri, shared.key,
            "--node", str(host.number), "--host", self.hosts[0].address,
        ]  # fmt: skip
        with (self.folder / f"{key}-{host.number}.log").open("ab") as log:
            return host.start(command, env, log)

    # ---- what is done to it --------------------------------------------------------------------

    def _strike(self, key: str, way: str) -> str:
        inside, host = self.random.random() < 0.5, self.random.choice(self.hosts)
        until = time.monotonic() + 5
        while inside and time.monotonic() < until and not self._unfinished(key):
            time.sleep(0.0005)
        if not inside:
            time.sleep(self.random.uniform(0, 1))
        if way == "cable":
            host.unplug(self.random.uniform(0.5, 3))
            return f"cable of {host.number}"
        if way == "drained":  # the machine is wanted for something else: SIGTERM, and time to save
            host.kill(f"{_PACKAGE}.node", signal.SIGTERM)
            return f"host {host.number} drained"
        words = {
            "host": "",
            "torchrun": "train_distributed.agent",
            "rank": "train_distributed.worker",
        }
        if way == "vanished":
            killed = host.vanish()
        else:
            killed = host.die() if way == "host" else host.kill(words[way])
        self.figures["kills"] += bool(killed)
        self.figures["inside_writes"] += bool(killed and self._unfinished(key))
        return f"{way} of {host.number}{' inside a write' if inside else ''}"

    # ---- what came of it -----------------------------------------------------------------------

    def _reference(self, kind: Kind) -> dict[str, Any]:
        """What an undisturbed training of two nodes ends with."""
        if kind.name not in self.references:
            key, began = f"undisturbed-{kind.name.replace(' ', '-')}", time.monotonic()
            self._train(key, kind, blows=0, ways=())
            self.seconds[False].append(time.monotonic() - began)
            self.references[kind.name] = final_of(self.store, key)
        return self.references[kind.name]

    def _newest(self, key: str) -> int:
        """The step of the newest checkpoint."""
        found = (self.folder / "store" / "checkpoints" / key).glob("*/manifest.json")
        return max((int(file.parent.name) for file in found), default=0)

    def _unfinished(self, key: str) -> list[Path]:
        """Folders of checkpoints that hold something, but no manifest yet."""
        return [
            place
            for place in (self.folder / "store" / "checkpoints" / key).glob("*")
            if place.is_dir() and not (place / "manifest.json").exists() and any(place.iterdir())
        ]

    def _logs(self, key: str) -> str:
        return "\n".join(
            f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}"
            for file in sorted(self.folder.glob(f"{key}-*.log"))
        )


def prove(trials: int, folder: Path, *, seed: int = 0) -> dict[str, float]:
    """Train `trials` times; return the figures."""
    with open_hosts(2) as hosts:
        spaces = bool(hosts[0].namespace)
        kind_of_hosts = "two network namespaces" if spaces else "loopback: no namespaces here"
        print(f"hosts: {kind_of_hosts}", file=sys.stderr, flush=True)
        pair = Pair(folder, hosts, seed=seed)
        for number in range(trials):
            pair.trial(number, KINDS[number % len(KINDS)])
    mean = {hurt: sum(each) / max(1, len(each)) for hurt, each in pair.seconds.items()}
    return {
        **pair.figures,
        "seconds": round(mean[True], 1),
        "undisturbed_seconds": round(mean[False], 1),
        "namespaces": int(spaces),
    }


def holds(figures: dict[str, float]) -> bool:
    """Whether the promises were kept."""
    return (
        figures["identical"] == figures["promised"]
        and not figures["samples_lost"]
        and not figures["samples_repeated"]
    )


def main() -> int:
    """Print the figures; 0 if the promises were kept."""
    parser = argparse.ArgumentParser(description="Hurt two hosts and prove that nothing is lost.")
    parser.add_argument("number", nargs="?", type=int, default=16, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="nodes-", ignore_cleanup_errors=True) as folder:
        figures = prove(arguments.number, Path(folder), seed=arguments.seed)
    tell("nodes", figures)
    return 0 if holds(figures) else 1


if __name__ == "__main__":
    sys.exit(main())
