"""The locked packages as a folder of wheels, fetched by this machine's pip with its configuration.

The build then needs no network and no credentials: what pip knows (mirrors, certificates, a
password) stays here. The folder is kept in `build/wheels`, one for each lock.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from infra.errors import OutsideError
from infra.image.engine import ROOT, Docker, say

COMPLETE = "complete"  # packages.sh asks no index where this file is
_KEPT = ROOT / "build" / "wheels"


def wheels(*, torch: str) -> Path:
    """Return a folder with a wheel of everything that the image installs.

    Args:
        torch: `cpu` or `cuda`.

    Raises:
        OutsideError: pip could not get them all.
    """
    wanted, lock = _wanted(torch), ROOT / "constraints.txt"
    digest = hashlib.sha256("\n".join([*wanted, lock.read_text()]).encode()).hexdigest()[:16]
    kept = _KEPT / digest
    if (kept / COMPLETE).exists():
        return kept
    say("fetching the wheels")
    half = kept.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "wheel"]
    command += ["--quiet", "--wheel-dir", str(half), "--constraint", str(lock), *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
        raise OutsideError(
            "pip could not fetch the wheels:\n" + "\n".join(lines[-8:]),
            hint="is the package index in reach? Does it have torch's CPU wheel?",
        )
    (half / COMPLETE).touch()
    half.rename(kept)
    return kept


def as_image(docker: Docker, folder: Path) -> str:
    """Make the folder an image, which the build mounts; return its name."""
    name = f"evertrain-wheels:{folder.name}"
    if not docker.has(name):
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            archive = Path(place) / "wheels.tar"
            words = ["tar", "--numeric-owner", "-C", str(folder), "-cf", str(archive), "."]
            subprocess.run(words, check=True)
            docker.run("import", archive, name)
    return name


def _wanted(torch: str) -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [*project["dependencies"], *project["optional-dependencies"]["examples"]]
    plain = next(each for each in found if each.startswith("torch=="))
    found.remove(plain)
    return [plain + ("+cpu" if torch == "cpu" else ""), *found]
