"""The image itself: what is in it, what is not, and that it comes out the same again."""

from __future__ import annotations

import importlib.resources
import json
import os
import subprocess
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from referencing import Registry, Resource

from infra.image import base
from infra.image.build import SBOM, copy_out, describe
from infra.image.engine import ROOT, Docker
from tests.containers.mirror import Mirror

CONFINED = ("--rm", "--read-only", "--tmpfs", "/tmp", "--cap-drop=ALL", "--network=none")
_CHUNK = 1 << 22

# Written where the image runs, so that it is the image that answers.
INSIDE = """
import importlib.util, json, os, pathlib
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines()
              if ":\\t" in line)
def writable(folder):
    try:
        pathlib.Path(folder, "probe").write_text("x")
    except OSError:
        return False
    return True
folders = [f for f, _, _ in os.walk("/") if not f.startswith(("/proc", "/sys", "/dev"))]
programs = {p for f in ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/venv/bin")
            for p in (os.listdir(f) if os.path.isdir(f) else [])}
print(json.dumps({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()], "groups": os.getgroups(),
    "capabilities": {k: status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")},
    "no_new_privileges": status["NoNewPrivs"], "seccomp": status["Seccomp"],
    "writable": sorted(f for f in folders if writable(f)),
    "setuid": [p for f in folders for p in (os.path.join(f, n) for n in os.listdir(f))
               if os.path.isfile(p) and os.lstat(p).st_mode & 0o6000],
    "network": os.listdir("/sys/class/net"),
    "programs": sorted(programs),
    "modules": [m for m in ("pip", "ensurepip") if importlib.util.find_spec(m)],
    "uncompiled": [str(p) for p in pathlib.Path("/venv").rglob("components/**/*.py")
                   if not list((p.parent / "__pycache__").glob(p.stem + ".*.pyc"))],
}))
"""
BOM = """
import importlib.metadata, json, subprocess
names = {d.name: d.version for d in importlib.metadata.distributions()}
asked = ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\\n"]
lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
system = dict(line.split()[1:] for line in lines if line.startswith("installed "))
print(json.dumps({"python": names, "system": system}))
"""


@pytest.fixture(scope="module")
def inside(docker: Docker, image: str) -> Any:
    """What a process in the container finds when it looks around."""
    words = [*CONFINED, "--security-opt=no-new-privileges", image, "python3", "-c", INSIDE]
    return json.loads(docker.run("run", *words))


def test_the_line_at_the_head_of_the_dockerfile_works(docker: Docker, image: str) -> None:
    assert "--cap-drop=ALL evertrain:0.1.0 evertrain doctor" in (ROOT / "Dockerfile").read_text()
    said = docker.run("run", *CONFINED, image, "evertrain", "doctor", "--json")
    assert {finding["exit_code"] for finding in json.loads(said)["findings"]} == {0}


def test_it_runs_as_uid_10001_without_any_capability(inside: Any) -> None:
    assert inside["ids"] == [10001] * 4
    assert inside["groups"] in ([], [10001])
    assert set(inside["capabilities"].values()) == {"0" * 16}
    assert (inside["no_new_privileges"], inside["seccomp"]) == ("1", "2")
    assert inside["setuid"] == []


def test_nothing_can_be_written_but_what_is_mounted(inside: Any) -> None:
    assert inside["writable"] == ["/tmp"]
    assert inside["network"] == ["lo"]


def test_there_is_no_installer_and_no_compiler(inside: Any) -> None:
    found = set(inside["programs"])
    assert {"python3", "evertrain", "sh", "torchrun"} <= found
    installers = {p for p in found if p.startswith(("pip", "easy_install")) or p in ("uv", "conda")}
    compilers = {p for p in found if p in {"cc", "c++", "gcc", "g++", "clang", "ld", "as", "make"}}
    assert installers | compilers | (found & {"wget", "curl", "git", "ssh"}) == set()
    assert inside["modules"] == []


def test_bytecode_is_there_so_that_no_start_compiles(
    docker: Docker, image: str, inside: Any
) -> None:
    assert inside["uncompiled"] == []
    script = """
import importlib._bootstrap_external as b, json
made = []
before = b.SourceFileLoader.source_to_code
b.SourceFileLoader.source_to_code = lambda self, data, path, **k: (
    made.append(path), before(self, data, path, **k))[1]
import kfp, torch, components.evaluate_model.step
print(json.dumps(made))
"""
    said = docker.run("run", *CONFINED, image, "python3", "-c", script)
    assert json.loads(said.splitlines()[-1]) == []


def test_the_labels_say_what_it_is(docker: Docker, image: str) -> None:
    (found,) = json.loads(docker.run("image", "inspect", image))
    labels = found["Config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == "0.1.0"
    assert labels["evertrain.torch"] == "cpu"
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    assert labels["org.opencontainers.image.revision"].startswith(commit)
    assert found["Config"]["User"] == "10001:10001"
    assert (
        f"EVERTRAIN_COMMIT={labels['org.opencontainers.image.revision']}" in found["Config"]["Env"]
    )


def test_the_bill_of_materials_lists_every_distribution_with_its_version(
    docker: Docker, image: str, tmp_path: Path
) -> None:
    copy_out(docker, image, path=SBOM, to=tmp_path / "sbom.json")
    bill = json.loads((tmp_path / "sbom.json").read_text())
    there = json.loads(docker.run("run", *CONFINED, image, "python3", "-c", BOM))
    listed = {kind: {} for kind in ("pypi", "deb", "generic")}
    for component in bill["components"]:
        if "purl" in component:
            kind = component["purl"].partition("/")[0].removeprefix("pkg:")
            listed[kind][component["name"]] = component["version"]
    assert listed["pypi"] == there["python"]
    assert {"evertrain", "torch", "kfp", "mlflow"} <= set(listed["pypi"])
    assert listed["deb"] == there["system"]
    assert listed["generic"]["python"].startswith("3.11.")
    named = [
        c for c in bill["components"] if c["purl" if "purl" in c else "name"].startswith("pkg:pypi")
    ]
    assert sum("licenses" in c for c in named) > 0.9 * len(named)


def test_the_bill_of_materials_keeps_to_the_schema(
    docker: Docker, image: str, tmp_path: Path
) -> None:
    copy_out(docker, image, path=SBOM, to=tmp_path / "sbom.json")
    bill = json.loads((tmp_path / "sbom.json").read_text())
    folder = importlib.resources.files("cyclonedx.schema") / "_res"
    schema, *others = (
        json.loads((folder / f"{name}.SNAPSHOT.schema.json").read_text())
        for name in ("bom-1.6", "spdx", "jsf-0.82")
    )
    known = Registry()
    for name, other in zip(("spdx", "jsf-0.82"), others, strict=True):
        uri = f"http://cyclonedx.org/schema/{name}.SNAPSHOT.schema.json"
        known = known.with_resource(uri, Resource.from_contents(other))
    validator = Draft7Validator(schema, registry=known)
    assert [error.message for error in validator.iter_errors(bill)] == []
    assert not validator.is_valid({**bill, "specVersion": 1})


def test_the_image_is_not_larger_than_it_was(docker: Docker, image: str) -> None:
    assert describe(docker, image)["bytes"] < 1.75e9


def test_built_again_by_another_way_it_has_the_same_layers(
    docker: Docker, image: str, second_build: Future[tuple[str, Path]], package_mirror: Mirror
) -> None:
    again, _ = second_build.result()
    wheels = [path for path in package_mirror.asked if path.endswith(".whl")]
    assert len(wheels) > 100, "the second build did not come from the index"
    first, second = describe(docker, image), describe(docker, again)
    assert len(first["layers"]) == 5
    assert first["layers"] == second["layers"]


def test_what_the_build_was_trusted_with_is_in_no_layer_no_history_and_no_log(
    docker: Docker, second_build: Future[tuple[str, Path]], package_mirror: Mirror
) -> None:
    again, file = second_build.result()
    log = file.read_text()
    assert len(log) > 1000
    found, read = found_in(docker, again, package_mirror.secrets)
    assert found == set()
    assert read > describe(docker, again)["bytes"], "this was not the whole image"
    history = docker.run("history", "--no-trunc", again) + docker.run("image", "inspect", again)
    assert "mirror" not in history
    for secret in package_mirror.secrets:
        assert secret.decode() not in history
        assert secret.decode() not in log


def test_the_search_finds_a_secret_that_a_later_layer_removed(
    docker: Docker, image: str, tmp_path: Path
) -> None:
    secret = b"planted-" + os.urandom(8).hex().encode()
    lines = [f"FROM {base.NAME}", "COPY key /key", "RUN rm /key"]
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    (tmp_path / "key").write_bytes(secret)
    tag = "evertrain-under-test:planted"
    docker.run("build", "--tag", tag, "--network=none", tmp_path, more={"DOCKER_BUILDKIT": "1"})
    try:
        assert found_in(docker, tag, (secret, b"not-there-at-all"))[0] == {secret}
    finally:
        docker.run("image", "rm", tag)


def found_in(docker: Docker, tag: str, wanted: tuple[bytes, ...]) -> tuple[set[bytes], int]:
    """Which of these byte strings an image's layers hold, and how many bytes were searched.

    What is saved is what is stored: plain archives, one in another.
    """
    overlap, tail, found, read = max(map(len, wanted)), b"", set[bytes](), 0
    with subprocess.Popen(
        [docker.client, "save", tag],
        stdout=subprocess.PIPE,
        env={**os.environ, **docker.environment},
    ) as process:
        assert process.stdout is not None
        while piece := process.stdout.read(_CHUNK):
            read += len(piece)
            piece = tail + piece
            found |= {each for each in wanted if each in piece}
            tail = piece[-overlap:]
    assert process.returncode == 0
    return found, read
