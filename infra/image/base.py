"""The image to build from where no registry is in reach: Debian's Python 3.11, by debootstrap.

It takes the name that the Dockerfile asks for, so that `FROM python:3.11-slim` finds it, and a
label says what it is. The folder of files is kept in `build/base`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from infra.errors import OutsideError
from infra.image.engine import ROOT, Docker, say

NAME = "python:3.11-slim"
_KEPT = ROOT / "build" / "base"
_PULL = 300  # seconds
_PACKAGES = "python3,python3-venv,python3-pip,ca-certificates"
# Of the machine that it was made on, or of no use.
_LEFT_OUT = (
    "./etc/resolv.conf", "./etc/hostname", "./etc/apt/apt.conf.d/*proxy*", "./var/cache/apt/*",
    "./var/lib/apt/lists/*", "./var/log/*", "./dev/*", "./proc/*", "./sys/*",
)  # fmt: skip


def provide(docker: Docker) -> str:
    """See to it that the base image is there; say how: `present`, `pulled` or `debootstrap`.

    Raises:
        OutsideError: No registry is in reach, and debootstrap is missing or failed.
    """
    if docker.has(NAME):
        return "present"
    if _pulled(docker):
        return "pulled"
    kept = _KEPT / "rootfs.tar"
    if not kept.exists():
        say(f"no registry is in reach: making {NAME} by debootstrap")
        _make(kept)
    docker.run("import", "--change", "LABEL evertrain.base=debootstrap", kept, NAME)
    return "debootstrap"


def _pulled(docker: Docker) -> bool:
    try:
        done = subprocess.run(
            [docker.client, "pull", "--quiet", NAME], check=False, capture_output=True,
            timeout=_PULL, env={**os.environ, **docker.environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _make(kept: Path) -> None:
    if os.getuid() != 0 or shutil.which("debootstrap") is None:
        raise OutsideError(
            f"no registry has {NAME} here, and debootstrap, which could make it, is not installed "
            "or needs root",
            hint="make engine, as root on Debian; or name another image: make image BASE=IMAGE",
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as place:
        root, half = Path(place) / "rootfs", Path(place) / "rootfs.tar"
        words = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", "bookworm", root]
        mirror = os.environ.get("DEBIAN_MIRROR", "")
        _run([*map(str, words), *([mirror] if mirror else [])])
        left_out = [f"--exclude={pattern}" for pattern in _LEFT_OUT]
        _run(["tar", "--numeric-owner", *left_out, "-C", str(root), "-cf", str(half), "."])
        half.rename(kept)


def _run(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-5:])
        raise OutsideError(f"{words[0]} failed:\n{tail}", hint="is Debian's mirror in reach?")
