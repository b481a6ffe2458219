"""The Docker engine that the image is built and tried with: one that answers, else one of our own.

    with engine() as docker:
        docker.run("info")

One of our own needs root and Debian's `docker.io` (`make engine`), no systemd and no network: it
has a socket of its own, no bridge and no firewall rules, so containers get the machine's network or
none. It keeps its images in `build/engine`, so the next one finds them; it is gone, and all that it
mounted, when the block ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.errors import OutsideError

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "build" / "engine"
_PATIENCE = 60.0  # seconds for the daemon to come up, and to go


@dataclass(frozen=True)
class Docker:
    """A client that can build with BuildKit, and the engine it talks to.

    Attributes:
        client: Program.
        host: As DOCKER_HOST; empty: the client's own choice.
    """

    client: str
    host: str

    @property
    def environment(self) -> dict[str, str]:
        """What a command needs in order to reach the same engine."""
        return {"DOCKER_HOST": self.host} if self.host else {}

    def run(self, *words: str | Path, more: dict[str, str] | None = None) -> str:
        """Return what a command prints.

        Raises:
            OutsideError: It failed; with its last words.
        """
        done = subprocess.run(
            [self.client, *map(str, words)], capture_output=True, text=True, check=False,
            env={**os.environ, **self.environment, **(more or {})},
        )  # fmt: skip
        if done.returncode:
            tail = "\n".join(done.stderr.strip().splitlines()[-20:])
            raise OutsideError(f"docker {' '.join(map(str, words[:3]))} failed:\n{tail}")
        return done.stdout

    def has(self, image: str) -> bool:
        """Whether an image of this name is there."""
        try:
            return bool(self.run("image", "inspect", "--format", "{{.Id}}", image))
        except OutsideError:
            return False


def why_none() -> str:
    """Why no engine can be had here; empty: one can."""
    if _answers(Docker(_client() or "docker", os.environ.get("DOCKER_HOST", ""))):
        return ""
    if os.getuid() != 0:
        return "no Docker engine answers, and only root may start one"
    if not (shutil.which("dockerd") and _client()):
        return "no Docker engine answers, and none is installed (make engine)"
    return ""


@contextlib.contextmanager
def engine() -> Iterator[Docker]:
    """Give an engine that answers; start one, for the block, if none does.

    Raises:
        OutsideError: There is none, and none can be started.
    """
    reason = why_none()
    if reason:
        raise OutsideError(reason, hint="start Docker; or, as root on Debian: make engine")
    client = _client()
    if client is None:
        raise OutsideError(
            "the docker client cannot build with BuildKit", hint="install its buildx plugin"
        )
    found = Docker(client, os.environ.get("DOCKER_HOST", ""))
    if _answers(found):
        yield found
        return
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / "lock").open("w") as lock, tempfile.TemporaryDirectory() as place:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two daemons cannot share a folder of images
        _end_left_over()
        docker = Docker(client, f"unix://{place}/docker.sock")
        with _daemon(Path(place), docker):
            yield docker


@contextlib.contextmanager
def _daemon(place: Path, docker: Docker) -> Iterator[None]:
    command = [
        "dockerd", "--host", docker.host, "--data-root", str(KEPT / "data"),
        "--exec-root", str(place / "exec"), "--pidfile", str(place / "pid"),
        "--iptables=false", "--ip6tables=false", "--bridge=none",
    ]  # fmt: skip
    log = KEPT / "dockerd.log"
    with log.open("w") as file:
        # A session of its own: Ctrl-C is for whoever uses it, which then stops it in good order.
        process = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        try:
            until = time.monotonic() + _PATIENCE
            while not _answers(docker):
                if process.poll() is not None or time.monotonic() > until:
                    tail = "\n".join(log.read_text().splitlines()[-5:])
                    raise OutsideError(f"dockerd did not come up:\n{tail}", hint=f"see {log}")
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _unmount(place, KEPT)


def _end_left_over() -> None:
    """End a daemon whose starter was killed: nobody else can be using it while we hold the lock."""
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = each.read_bytes().split(b"\0")
            if words[0].endswith(b"dockerd") and str(KEPT / "data").encode() in words:
                number = int(each.parent.name)
                os.kill(number, signal.SIGTERM)
                until = time.monotonic() + _PATIENCE
                while each.exists() and time.monotonic() < until:
                    time.sleep(0.1)
    _unmount(KEPT)


def _unmount(*folders: Path) -> None:
    """Unmount what a daemon that had to be killed left below these folders."""
    with contextlib.suppress(OSError):
        points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        below = [p for p in points if any(Path(p).is_relative_to(each) for each in folders)]
        for point in sorted(below, reverse=True):
            subprocess.run(["umount", "--lazy", point], check=False, capture_output=True)  # noqa: S607


def _answers(docker: Docker) -> bool:
    try:
        return bool(docker.run("version", "--format", "{{.Server.Version}}"))
    except (OutsideError, OSError):
        return False


def _client() -> str | None:
    """A docker client with BuildKit: up to version 22 it is inside, later it is a plugin."""
    named = [shutil.which("docker"), "/usr/bin/docker"]
    for client in filter(None, dict.fromkeys(named)):
        try:
            asked = [client, "version", "--format", "{{.Client.Version}}"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            major = int(done.stdout.partition(".")[0] or 99)
            plugin = subprocess.run([client, "buildx", "version"], capture_output=True, check=False)
        except (OSError, ValueError):
            continue
        if major < 23 or plugin.returncode == 0:
            return client
    return None


def say(words: str) -> None:
    """Talk goes to stderr."""
    print(words, file=sys.stderr, flush=True)
