"""A project that can be deployed, and the command against a server's double, in this process."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from components.common.project import Project
from pipelines.cli import main
from pipelines.deploy import deploying
from pipelines.deploy.package import Package, build_package
from tests.cluster.kfp_entities import Recurring
from tests.cluster.kfp_server import KfpServer
from tests.small_project.command import FILES, Ended

SMALL = Path(__file__).parents[1] / "small_project"
DIGEST = "sha256:" + "ab" * 32
NIGHTLY = {"name": "nightly", "cron": "0 0 2 * * *"}
WEEKLY = {"name": "weekly", "cron": "0 0 4 * * 0", "force": True, "settings": ["training.epochs=5"]}
DEPLOYABLE: dict[str, Any] = {
    "store": "s3://bucket/store",
    "tracking": {"uri": "http://mlflow:5000"},
    "cluster": {"image": f"registry.example.org/small@{DIGEST}"},
    "schedules": [NIGHTLY, WEEKLY],
}


_VARIABLES = (
    "EVERTRAIN_STORE", "MLFLOW_TRACKING_URI", "AWS_ENDPOINT_URL", "AWS_PROFILE", "SSL_CERT_FILE",
    "EVERTRAIN_KUBEFLOW_TOKEN", "EVERTRAIN_KUBEFLOW_COOKIES", "KF_PIPELINES_SA_TOKEN_PATH",
    "HTTP_PROXY", "http_proxy",
)  # fmt: skip
_COMPILED: dict[str, Package] = {}
_KEPT = tempfile.mkdtemp(prefix="compiled-")
atexit.register(shutil.rmtree, _KEPT, ignore_errors=True)


class Case:
    """A project and a Kubeflow.

    What was compiled from the same settings once is not compiled again: it takes most of a deploy.
    """

    def __init__(self, folder: Path, server: KfpServer) -> None:
        self.folder, self.server = folder, server
        folder.mkdir(parents=True)
        for name in FILES:
            shutil.copyfile(SMALL / name, folder / name)
        self.settings = yaml.safe_load((folder / "evertrain.yaml").read_text())
        self.settings["data"]["source"] = "s3://bucket/data"
        self.write(DEPLOYABLE)

    def write(self, changes: dict[str, Any]) -> None:
        """Change sections of evertrain.yaml; those that are None go."""
        self.settings |= changes
        kept = {name: value for name, value in self.settings.items() if value is not None}
        (self.folder / "evertrain.yaml").write_text(yaml.safe_dump(kept))

    def deploy(self, *words: str, yes: bool = True) -> Ended:
        """`evertrain deploy` in this process; what it would ask is answered yes."""
        agreed = ["--yes"] if yes else []
        with mock.patch.object(deploying, "build_package", self._compiled):
            return evertrain_here(
                "deploy", str(self.folder), "--host", self.server.url, *agreed, *words
            )

    def _compiled(self, project: Project, folder: Path) -> Package:
        of_the_pods = {**self.settings, "schedules": None, "folder": self.folder.name}
        key = json.dumps(of_the_pods, sort_keys=True)
        if key not in _COMPILED:
            kept = Path(tempfile.mkdtemp(dir=_KEPT))
            _COMPILED[key] = build_package(project, kept)
        return _COMPILED[key]

    def plan(self) -> dict[str, str]:
        """What a deploy would do, by what and name."""
        ended = self.deploy("--dry-run", "--json")
        assert ended.code == 0, ended.err
        return {f"{line['what']} {line['name']}": line["do"] for line in ended.json["plan"]}

    def to_do(self) -> dict[str, str]:
        """The same, without what stays."""
        return {what: do for what, do in self.plan().items() if do not in ("keep", "leave")}

    @property
    def schedules(self) -> dict[str, list[Recurring]]:
        """The server's schedules by name."""
        found: dict[str, list[Recurring]] = {}
        for each in self.server.recurring_runs.values():
            found.setdefault(each.name, []).append(each)
        return found

    def one(self, name: str) -> Recurring:
        """The one schedule of this name."""
        (found,) = self.schedules[f"small-{name}"]
        return found

    @property
    def versions(self) -> list[str]:
        """Names of the versions, the newest last."""
        (pipeline,) = self.server.pipelines.values()
        return [each.name for each in sorted(pipeline.versions.values(), key=lambda v: v.order)]

    def changing_calls(self) -> list[tuple[str, str]]:
        """The requests that change something, so far."""
        return [(r.method, r.path) for r in self.server.requests if r.method != "GET"]


def new_case(folder: Path, server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    """A project below a folder, where no variable of this machine says anything else."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return Case(folder / "project", server)


def impatient(case: Case, **access: Any) -> None:
    """Do not wait as long for a server as people do."""
    access = {"patience": 0.6, "timeout": 0.8, **access}
    case.write({"cluster": {**DEPLOYABLE["cluster"], "access": access}})


def evertrain_here(*words: str) -> Ended:
    """Run the command line in this process: it starts in no time."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["evertrain", *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())
