"""A command as a reader runs it: in a terminal of 80 columns, without colours."""

from __future__ import annotations

import getpass
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.docs.documented import ROOT


@dataclass(frozen=True)
class Ended:
    """What came of a command."""

    code: int
    out: str
    err: str


def typed(command: str, *, folder: Path) -> Ended:
    """Run a line of shell in a folder; its stdout is a terminal."""
    programs = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "TERM": "dumb",  # 80 columns, and nothing that moves
        "NO_COLOR": "1",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    for name in [
        name for name in environment if name.startswith(("EVERTRAIN_", "MAKE", "COLUMNS"))
    ]:
        del environment[name]
    ours, theirs = pty.openpty()
    with (folder / "stderr").open("w+") as said:
        process = subprocess.Popen(
            ["bash", "-c", command],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=said, env=environment,
        )  # fmt: skip
        os.close(theirs)
        read = b"".join(iter(lambda: _chunk(ours), b""))
        os.close(ours)
        code = process.wait()
        said.seek(0)
        return Ended(code, read.decode().replace("\r\n", "\n"), said.read())


def _chunk(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end was closed
        return b""


def shape(line: str, *, folder: str) -> str:
    """Return a line without what differs from run to run: numbers, run names, folders, people."""
    line = line.replace(folder, "FOLDER").replace("/home/ada", "FOLDER")
    line = re.sub(r"\d{8}T\d{6}Z-[0-9a-f]{4}", "RUN", line)
    line = re.sub(r"[-+]?\d[\d.:]*", "#", line)
    return " ".join(line.split())


def not_printed(shown: tuple[str, ...], printed: str, *, folder: str) -> str:
    """Return the first line of a page that was not printed; empty if all were, in this order.

    Others may have been printed between them. In the page, ada sits at the terminal.
    """
    lines = iter(shape(line, folder=folder) for line in printed.splitlines())
    for line in shown:
        wanted = shape(line.replace("ada ", f"{getpass.getuser():<4}"), folder=folder)
        if not any(wanted == each for each in lines):
            return line
    return ""
