"""Steps as pods run them: each start a process of its own with an empty home, and nothing else kept
but what the object store, MLflow and Kubeflow's artifacts hold.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.small_project.command import environment

RUN = "20250101T000000Z-aaaa"
_HANDED_ON = ("run_key", "data_digest")

# Calls a step's component as KFP's executor does. With REPORTED, kills itself when the step's work
# is done and its record says so, just before that is written.
_PROGRAM = """
import importlib, inspect, json, os, signal, sys, typing
from pathlib import Path
from infra import s3
step, values, inputs, outputs, kill = json.loads(sys.argv[1])
class Artifact:
    def __init__(self, path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path, self.uri, self.metadata = path, path, {}
    def __getattr__(self, name):
        return lambda *words, **more: None
put = s3.S3Store.put
def watched(self, key, data):
    if kill and key.endswith(f"/{step}.json") and b'"status": "done"' in bytes(data):
        os.kill(os.getpid(), signal.SIGKILL)
    put(self, key, data)
s3.S3Store.put = watched
component = getattr(importlib.import_module(f"components.{step}.component"), step)
words = {}
for name in inspect.signature(component.python_func).parameters:
    if name in values:
        words[name] = values[name]
    elif name == "status":
        words[name] = type("Status", (), {"state": "SUCCEEDED"})()
    else:
        given = name in os.listdir(inputs)
        words[name] = Artifact(os.path.join(inputs if given else outputs, name))
given = component.python_func(**words)
if given is not None:
    Path(outputs, "given.json").write_text(json.dumps(given._asdict()))
"""


@dataclass
class Pods:
    """The pods of one run.

    Attributes:
        folder: For homes and artifacts.
        values: Parameters of the run, and what steps gave that others take.
        environment: Of every pod.
    """

    folder: Path
    values: dict[str, Any]
    environment: dict[str, str] = field(default_factory=dict)

    def start(self, step: str, *, kill: bool = False) -> tuple[int, Path, str]:
        """Run a step to its end; return its exit code, where its outputs are, and what it said.

        Outputs of one that ends well are those that later steps take.
        """
        name = f"{step}-{uuid.uuid4().hex[:8]}"
        outputs, artifacts = self.folder / "outputs" / name, self.folder / "artifacts"
        for each in (outputs, artifacts):
            each.mkdir(parents=True, exist_ok=True)
        words = json.dumps([step, self.values, str(artifacts), str(outputs), kill])
        home = {"EVERTRAIN_HOME": str(self.folder / "homes" / name), "EVERTRAIN_RUN_ID": RUN}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, words], capture_output=True, text=True,
            cwd="/", env={**environment(), **self.environment, **home}, timeout=280, check=False,
        )  # fmt: skip
        if done.returncode == 0:
            for each in outputs.iterdir():
                if each.name == "given.json":
                    given = json.loads(each.read_text())
                    self.values |= {n: given[n] for n in _HANDED_ON if n in given}
                elif each.name != "metrics":
                    copy = shutil.copytree if each.is_dir() else shutil.copyfile
                    copy(each, artifacts / each.name)
        return done.returncode, outputs, done.stderr

    def popen(self, step: str) -> subprocess.Popen[str]:
        """Start a step, to be signalled."""
        name = f"{step}-{uuid.uuid4().hex[:8]}"
        outputs = self.folder / "outputs" / name
        outputs.mkdir(parents=True)
        words = json.dumps([step, self.values, str(self.folder / "artifacts"), str(outputs), False])
        home = {"EVERTRAIN_HOME": str(self.folder / "homes" / name), "EVERTRAIN_RUN_ID": RUN}
        return subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", _PROGRAM, words], stderr=subprocess.PIPE,
            text=True, cwd="/", env={**os.environ, **environment(), **self.environment, **home},
        )  # fmt: skip


KILLED = -signal.SIGKILL
