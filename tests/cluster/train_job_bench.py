"""train_distributed as a TrainJob: the step's process, the cluster's double, pods as processes.

Pods and step share no disk: each has a home folder of its own, and all speak through S3.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from components.train_distributed.shared_job import newest_attempt
from infra.s3 import S3Store
from tests.cluster.kube_handles import PodHandle
from tests.cluster.kube_store import SECRETS
from tests.cluster.kubernetes_server import KubernetesServer, LocalProcesses
from tests.infra.loopback import BUCKET, S3Server
from tests.small_project.command import environment, make_project
from tests.small_project.splits import write_splits

RUN_KEY = "0123456789abcdef0123456789abcdef"
JOB = f"train-small-{RUN_KEY[:8]}-1"
_IMAGE = "registry/evertrain@sha256:" + "a" * 64
_PROGRAM = """
import sys
from components.train_distributed.step import run
class Metrics:
    path = sys.argv[4] + ".metrics"
    def log_metric(self, metric, value):
        pass
project, store, splits, training, *overrides = sys.argv[1:]
run(project, store, overrides, KEY, splits, training, Metrics())
""".replace("KEY", repr(RUN_KEY))


class Pods(LocalProcesses):
    """Each pod has a home folder of its own, empty at first."""

    def _environment(self, handle: PodHandle) -> dict[str, str]:
        found = super()._environment(handle)
        return found | {"EVERTRAIN_HOME": str(self.folder / handle.name / "home")}


class Bench:
    """A project, its splits in a store, and a cluster."""

    def __init__(self, folder: Path, server: KubernetesServer, s3: S3Server, prefix: str) -> None:
        self.folder, self.server, self._s3 = folder, server, s3
        self.project = make_project(folder / "project", 1)
        self.uri = f"s3://{BUCKET}/{prefix}"
        with self.credentials():
            self.store = S3Store(bucket=BUCKET, prefix=prefix)
            self.splits = write_splits(self.project, self.store)
        shutil.rmtree(self.project / ".evertrain", ignore_errors=True)
        self.kubeconfig = folder / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(server.kubeconfig()))
        secret = {n: base64.b64encode(v.encode()).decode() for n, v in s3.environment.items()}
        server.apply(SECRETS, {"metadata": {"name": "s3", "namespace": "default"}, "data": secret})

    @contextmanager
    def credentials(self) -> Iterator[None]:
        """The way to S3 in this process."""
        before = dict(os.environ)
        os.environ.update(self._s3.environment)
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)

    def settings(self, *more: str) -> list[str]:
        """Settings of a step whose nodes are a TrainJob."""
        secrets = {n: {"secret": "s3"} for n in self._s3.environment if "KEY" in n}
        return [
            "training.nodes=2", "training.log_every=100", "training.evaluate_every=100",
            "cluster.train_job.start=trainer", "cluster.train_job.poll=0.5",
            "cluster.pods.train_distributed.memory=1Gi", f"cluster.image={_IMAGE}",
            f"cluster.secrets={json.dumps(secrets)}", *more,
        ]  # fmt: skip

    def checkpoints(self) -> int:
        """How many there are."""
        return sum(
            info.key.endswith("/manifest.json")
            for info in self.store.list(f"checkpoints/{RUN_KEY}/")
        )

    def failure(self) -> Any:
        """Of the newest attempt."""
        attempt = newest_attempt(self.store, RUN_KEY)
        return None if attempt is None else attempt.failure()

    def made(self) -> int:
        """TrainJobs that were made, those included whose making nobody was told of."""
        return sum(
            request.method == "POST" and request.path.endswith("/trainjobs")
            and request.status in (201, 0) for request in self.server.requests
        )  # fmt: skip

    def step(self, run: str, *settings: str) -> Step:
        """Start the step in a process, as a new pod would: with an empty home."""
        return Step(self, run, self.settings(*settings))


class Step:
    """One start of the step."""

    def __init__(self, bench: Bench, run: str, overrides: list[str]) -> None:
        self._bench, self.run, self.lines = bench, run, list[str]()
        self.home = bench.folder / f"home-{run}"
        self.training = bench.folder / f"training-{run}.json"
        env = {
            **environment(), **bench._s3.environment, "EVERTRAIN_RUN_ID": run,
            "EVERTRAIN_HOME": str(self.home), "KUBECONFIG": str(bench.kubeconfig),
        }  # fmt: skip
        words = (bench.project, bench.uri, bench.splits, self.training, *overrides)
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *map(str, words)],
            cwd="/", env=env, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self.lines.append(line)

    @property
    def said(self) -> str:
        """What it printed."""
        return "".join(self.lines)

    def until(self, met: Callable[[], bool], *, seconds: float = 90) -> None:
        """Wait until something is so while the step runs."""
        end = time.monotonic() + seconds
        while not met():
            assert self.process.poll() is None, self.said
            assert time.monotonic() < end, self.said
            time.sleep(0.05)

    def signal(self, number: int) -> None:
        """Send the step's process alone a signal, as Kubernetes does."""
        self.process.send_signal(number)

    def end(self) -> dict[str, Any]:
        """Wait for the end; return the step's record."""
        code = self.process.wait(timeout=180)
        self._reader.join(10)
        record: dict[str, Any] = json.loads(
            self._bench.store.get(f"runs/{self.run}/train_distributed.json")
        )
        assert code == record["exit_code"], self.said
        return record

    def kill(self) -> None:
        """As when the machine goes down; nobody is told."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def bench(folder: Path, s3: S3Server, prefix: str) -> Iterator[Bench]:
    """A cluster whose pods are processes here."""
    with KubernetesServer(executor=Pods(folder / "pods")) as server:
        yield Bench(folder, server, s3, prefix)
