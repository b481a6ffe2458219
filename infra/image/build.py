"""Build the image; say what came of it as one JSON object, the last line of stdout.

    make image                                  CPU
    make image VARIANT=cuda                     NVIDIA GPUs
    make image PUSH=registry.example.org/evertrain
                                                push it: the digest is what pipelines name

Needs no more than Python 3.11 with pip, and an engine or the right to start one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from infra.errors import OutsideError
from infra.image import base
from infra.image.engine import ROOT, Docker, engine, say
from infra.image.wheels import as_image, wheels

SBOM = "usr/share/evertrain/sbom.cdx.json"
_BUILT = ROOT / "build" / "image"
LOG = _BUILT / "build.log"


def prepare(docker: Docker, *, torch: str = "cpu", image: str = "") -> str:
    """Get all that a build needs of the world outside, at once; return where the base came from.

    Raises:
        OutsideError: It is not to be had.
    """
    with ThreadPoolExecutor(1) as pool:
        fetched = pool.submit(wheels, torch=torch)
        origin = "named" if image else base.provide(docker)
        fetched.result()
    return origin


def build(
    docker: Docker,
    *,
    tag: str,
    torch: str = "cpu",
    image: str = base.NAME,
    log: Path = LOG,
    more: list[str] | None = None,
) -> str:
    """Build the image without a network; return its id.

    Args:
        docker: The engine.
        tag: Name and tag to give it.
        torch: `cpu` or `cuda`.
        image: To build from.
        log: What the build prints.
        more: Words for `docker build`; given, no wheels are brought and none of these is added.

    Raises:
        OutsideError: It failed.
    """
    version, revision = _version(), _revision()
    words = ["build", "--progress=plain", "--tag", tag, "--build-arg", f"TORCH={torch}"]
    words += ["--build-arg", f"BASE_IMAGE={image}"]
    words += ["--build-arg", f"VERSION={version}", "--build-arg", f"REVISION={revision}"]
    if more is None:
        more = ["--network=none", "--build-arg", f"WHEELS={as_image(docker, wheels(torch=torch))}"]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        done = subprocess.run(
            [docker.client, *words, *more, str(ROOT)], stdout=file, stderr=file, check=False,
            env={**os.environ, **docker.environment, "DOCKER_BUILDKIT": "1"},
        )  # fmt: skip
    if done.returncode:
        tail = "\n".join(log.read_text().splitlines()[-15:])
        raise OutsideError(f"docker build failed:\n{tail}", hint=f"all of it is in {log}")
    return docker.run("image", "inspect", "--format", "{{.Id}}", tag).strip()


def push(docker: Docker, *, tag: str, repository: str) -> str:
    """Push an image to a registry; return its name there by digest."""
    name = f"{repository}:{tag.rpartition(':')[2]}"
    docker.run("tag", tag, name)
    docker.run("push", "--quiet", name)
    digests = json.loads(docker.run("image", "inspect", "--format", "{{json .RepoDigests}}", name))
    return str(next(each for each in digests if each.startswith(f"{repository}@")))


def describe(docker: Docker, tag: str) -> dict[str, Any]:
    """Id, size in bytes (uncompressed) and layers of an image."""
    (found,) = json.loads(docker.run("image", "inspect", tag))
    return {
        "image": tag, "id": found["Id"], "bytes": found["Size"], "layers": found["RootFS"]["Layers"]
    }  # fmt: skip


def copy_out(docker: Docker, tag: str, *, path: str, to: Path) -> None:
    """Copy a file out of an image; nothing of it is run."""
    container = docker.run("create", "--network=none", tag, "-").strip()
    try:
        docker.run("cp", f"{container}:/{path}", to)
    finally:
        docker.run("rm", container)


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"])


def _revision() -> str:
    """The commit, and whether it is all; empty: this is no repository."""
    words = [
        "git",
        "-C",
        str(ROOT),
        "describe",
        "--always",
        "--abbrev=40",
        "--dirty",
        "--exclude=*",
    ]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the image.")
    parser.add_argument("--tag", default=f"evertrain:{_version()}")
    parser.add_argument("--torch", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--base", default="", help=f"image to build from instead of {base.NAME}")
    parser.add_argument("--push", default="", metavar="REPOSITORY", help="registry/name")
    given = parser.parse_args()
    began = time.monotonic()
    try:
        with engine() as docker:
            origin = prepare(docker, torch=given.torch, image=given.base)
            say(f"building {given.tag} (torch for {given.torch}, base: {origin})")
            build(docker, tag=given.tag, torch=given.torch, image=given.base or base.NAME)
            bill = _BUILT / "sbom.cdx.json"
            copy_out(docker, given.tag, path=SBOM, to=bill)
            said = {**describe(docker, given.tag), "base": origin, "sbom": str(bill), "digest": ""}
            if given.push:
                said["digest"] = push(docker, tag=given.tag, repository=given.push)
    except OutsideError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(json.dumps({**said, "seconds": round(time.monotonic() - began, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
