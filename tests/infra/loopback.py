"""Servers on loopback for the tests: find a program, run it, wait for it, kill it by its id."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

ACCESS_KEY, SECRET_KEY, BUCKET = "tester", "secret-of-the-tester", "evertrain-tests"


@dataclass(frozen=True)
class S3Server:
    endpoint: str
    environment: dict[str, str]


def binary(name: str, *folders: str | Path) -> str:
    """Find a server's program; without it skip, or fail where servers are required."""
    places = [Path(sys.executable).parent, *map(Path, folders)]
    path = ":".join([*map(str, places), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        text = f"this test needs the program {name}, and it is not installed here"
        if os.environ.get("EVERTRAIN_REQUIRE_SERVERS") == "1":
            pytest.fail(text)
        pytest.skip(text)
    return found


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def running(
    command: list[str], *, ready: Callable[[], bool], log: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until the block ends; fail with its log if it does not come up."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 90
        while not ready():
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-3000:]
                pytest.fail(f"{command[0]} did not come up (status {process.poll()}):\n{tail}")
            time.sleep(0.1)
        yield process
    finally:
        stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    for sign, patience in ((signal.SIGTERM, 1.5), (signal.SIGKILL, 10)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # children that outlived their parent


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def as_postgres(path: Path) -> tuple[list[str], dict[str, str]]:
    """PostgreSQL refuses to run as root: give a command prefix that drops to a plain user."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(path)}
    if os.geteuid() != 0:
        return [], environment
    names = {user.pw_name: user for user in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    os.chown(path, user.pw_uid, user.pw_gid)
    for parent in path.parents:  # pytest's folders are for their owner only: let it pass through
        if parent.stat().st_uid == 0 and parent.is_relative_to("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o111)
    prefix = [binary("setpriv"), f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}"]
    return [*prefix, "--clear-groups"], environment
