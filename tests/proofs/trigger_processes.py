"""Real watchers on real servers: processes that are killed with SIGKILL while data comes.

Each sequence has two or three `evertrain watch` processes, a bucket of its own (SeaweedFS that is
listed, or ministack, which notifies an SQS queue), and a double of Kubeflow over HTTP that loses
replies, breaks connections and answers 503. What is judged: each run's name was started once, the
last version of the data has its run, and in the end nothing waits.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.s3_reading import etag
from tests.cluster.faults import Call, Fault, answer, lost_reply, reset
from tests.cluster.kfp_server import KfpServer
from tests.infra.loopback import BUCKET, S3Server
from tests.infra.ministack import Ministack
from tests.proofs.watch_oracle import Verdict, name_of
from tests.proofs.watch_sequences import State
from tests.small_project.command import FILES, REPOSITORY, environment

STORM = 25.0  # seconds in which data comes and watchers are killed
PATIENCE = 420.0  # seconds for all to be well after that: a claim that was left is taken after 120
_NAME = "small"  # of the project
_SETTINGS = {
    "watch.quiet": 1, "watch.poll": 1, "watch.look_every": 60, "watch.retries": 8,
    "watch.retry_after": 1,
}  # fmt: skip


@dataclass
class Place:
    """Where a sequence's data and store are.

    Attributes:
        environment: By which the watchers find them.
        queue: URL; empty: the data is listed.
    """

    client: Any
    bucket: str
    prefix: str
    environment: dict[str, str]
    queue: str = ""

    @property
    def data(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}data"

    @property
    def store(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}store"


def listed_place(server: S3Server) -> Place:
    """A prefix of SeaweedFS' bucket."""
    import boto3.session
    from botocore.config import Config

    env = server.environment
    session = boto3.session.Session(
        env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1"
    )
    config = Config(retries={"mode": "standard", "total_max_attempts": 6})
    client = session.client("s3", endpoint_url=server.endpoint, config=config)
    return Place(client, BUCKET, f"{uuid.uuid4().hex}/", env)


def notified_place(server: Ministack) -> Place:
    """A bucket of ministack that notifies a queue."""
    bucket = f"data-{uuid.uuid4().hex}"
    queue = server.notified_bucket(bucket, visibility=5)
    return Place(server.client("s3"), bucket, "", server.environment, queue)


@dataclass
class Sequence:
    """One sequence, and what came of it."""

    folder: Path
    place: Place
    chance: random.Random
    states: list[State] = field(default_factory=lambda: [{}])
    kills: int = 0
    runs: int = 0
    _watchers: list[_Process] = field(default_factory=list)

    def happen(self) -> Verdict:
        """Let it happen, and judge it."""
        project = self._project()
        with KfpServer() as server:
            upload_pipeline(server, self.folder)
            server.faults.script = self._fault
            command, env = self._command(project, server), self._environment()
            count = self.chance.choice([2, 2, 3])
            self._watchers = [_Process(command, env, self.folder / str(n)) for n in range(count)]
            calm, over = threading.Event(), threading.Event()
            keeper = threading.Thread(target=self._keep, args=(calm, over))
            keeper.start()
            try:
                self._upload()
                calm.set()
                server.faults.clear()
                is_well = self._wait(server)
            finally:
                over.set()
                keeper.join()
                for watcher in self._watchers:
                    watcher.stop()
            self.runs = len(server.runs)
            return self._judge(server, calm=is_well)

    def _judge(self, server: KfpServer, *, calm: bool) -> Verdict:
        names = [str(run.name) for run in server.runs.values()]
        known = {name_of(state, _NAME) for state in self.states}
        verdict = Verdict(versions=len(self.states), due=1)
        for name, count in Counter(names).items():
            if count > 1:
                verdict.doubled.append(f"{name} was started {count} times")
            verdict.torn += _base(name) not in known
        final = name_of(self.states[-1], _NAME)
        if final not in names:
            verdict.missed.append(f"{final}, the newest, has no run among {names}")
        elif not calm:
            verdict.missed.append(f"{final} has a run, but something still waits")
        return verdict

    def _wait(self, server: KfpServer) -> bool:
        """Wait until the newest data has its run, and nothing waits any more."""
        until = time.monotonic() + PATIENCE
        final = name_of(self.states[-1], _NAME)
        while time.monotonic() < until:
            if any(_base(str(run.name)) == final for run in list(server.runs.values())):
                cursor = self._cursor()
                if not cursor.get("order") and not cursor.get("pending"):
                    return True
            time.sleep(0.5)
        return False

    def _cursor(self) -> dict[str, Any]:
        key = f"{self.place.prefix}store/watch/cursor.json"
        reply = self.place.client.get_object(Bucket=self.place.bucket, Key=key)
        found: dict[str, Any] = json.loads(reply["Body"].read())
        return found

    def _upload(self) -> None:
        """Objects come in bursts, some are overwritten, some deleted, some are no data."""
        chance, number = self.chance, 0
        until = time.monotonic() + STORM
        while time.monotonic() < until:
            for _ in range(chance.choice([1, 1, 2, 5])):
                known = [key for key in self.states[-1] if key]
                draw = chance.random()
                if known and draw < 0.1:
                    self._change(chance.choice(known), None)
                elif known and draw < 0.25:
                    self._change(chance.choice(known), chance.randbytes(8))
                else:
                    suffix = "part" if draw < 0.3 else "parquet"
                    self._change(f"day {number:03}.{suffix}", chance.randbytes(8))
                number += 1
            time.sleep(chance.choice([0.05, 0.3, 2.5, 6.0]))
        self._change("the last.parquet", chance.randbytes(8))

    def _change(self, key: str, content: bytes | None) -> None:
        place = self.place
        where = {"Bucket": place.bucket, "Key": f"{place.prefix}data/{key}"}
        state = dict(self.states[-1])
        if content is None:
            place.client.delete_object(**where)
            state.pop(key)
        else:
            reply = place.client.put_object(**where, Body=content)
            state[key] = (len(content), etag(reply))
        if key.endswith(".parquet"):
            self.states.append(state)

    def _keep(self, calm: threading.Event, over: threading.Event) -> None:
        """Kill watchers now and then until it is calm; start again whoever is dead."""
        chance = random.Random(self.chance.random())
        next_kill = time.monotonic() + chance.uniform(0.5, 5)
        while not over.wait(0.2):
            if time.monotonic() > next_kill and not calm.is_set():
                next_kill = time.monotonic() + chance.uniform(0.5, 5)
                self._kill(chance.choice(self._watchers))
            for watcher in self._watchers:
                watcher.revive()

    def _kill(self, watcher: _Process) -> None:
        watcher.kill()
        self.kills += 1

    def _fault(self, call: Call) -> Fault | None:
        draw = random.random()
        starting = call.method == "POST" and call.path.endswith("/runs")
        if starting and draw < 0.2:  # whoever asks dies before it hears whether it worked
            for watcher in self._watchers:
                self._kill(watcher)
        if starting and draw < 0.4:
            return _one_of(lost_reply(), reset())
        if draw < 0.03:
            return _one_of(answer(503), reset())
        return None

    def _project(self) -> Path:
        project = self.folder / "project"
        project.mkdir(parents=True)
        for name in FILES:
            source = REPOSITORY / "tests" / "small_project" / name
            (project / name).write_bytes(source.read_bytes())
        return project

    def _command(self, project: Path, server: KfpServer) -> list[str]:
        words = [sys.executable, "-m", "pipelines.cli", "watch", str(project), "--json"]
        words += ["--host", server.url, "--data", self.place.data]
        values = {**_SETTINGS, "store": self.place.store, "watch.queue": self.place.queue or '""'}
        for key, value in values.items():
            words += ["--set", f"{key}={value}"]
        return words

    def _environment(self) -> dict[str, str]:
        return environment() | self.place.environment | {"HOME": str(self.folder)}


class _Process:
    """A watcher that comes back."""

    def __init__(self, command: list[str], env: dict[str, str], log: Path) -> None:
        self._command, self._env, self._log = command, env, log
        self._process = self._started()

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)

    def revive(self) -> None:
        """Start it again, if it is dead."""
        if self._process.poll() is not None:
            self._process = self._started()

    def stop(self) -> None:
        """SIGTERM, and see it go."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._command, stdout=log, stderr=log, env=self._env, cwd="/",
                start_new_session=True,
            )  # fmt: skip


def upload_pipeline(server: KfpServer, folder: Path) -> None:
    """Make the project's pipeline known to Kubeflow, as `evertrain deploy` does."""
    from infra.kubeflow import Kubeflow
    from pipelines.compiling import compile_pipeline

    package = folder / "pipeline.yaml"
    compile_pipeline(package)
    kubeflow = Kubeflow.connect(host=server.url)
    pipeline = kubeflow.pipelines.create("small", description="")
    kubeflow.pipelines.upload(package, pipeline=pipeline, name="one", description="")


def _one_of(*faults: Fault) -> Fault:
    return random.choice(faults)


def _base(name: str) -> str:
    """The name of a run's first attempt."""
    return "-".join(name.split("-")[:2])
