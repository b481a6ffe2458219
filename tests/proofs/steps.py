"""Kill `evertrain run` in each of its steps; the same command again must finish the work.

    python -m tests.proofs.steps        # once in each step
    python -m tests.proofs.steps 30     # thirty kills, the steps in turn, at other moments

Only the command is killed (SIGKILL, so it can tell nobody): its steps have to notice by themselves.
The last line of stdout is one JSON object. `finished` counts the kills after which the same command
reached a decision; `half_made` what was left half made: versions without an entry in the promotion
log or with two, versions that cannot be used, a log with a hole, aliases that say something else.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from components.common.aliases import aliases_of
from components.common.champion import PromotionLog
from components.common.layout import project_store, tracking_uri
from components.common.project import open_project
from components.common.records import STEPS
from infra.errors import OutsideError
from infra.registry import Registry
from tests.proofs.reporting import tell
from tests.small_project.command import (
    Ended,
    command,
    environment,
    evertrain,
    make_project,
)

_PATIENCE = 600  # seconds until a step is reached


def kill_in(project: Path, step: str, *settings: str, delay: float = 0.0) -> str:
    """Start a run and kill it when a step has begun; return its id, or "" if it ended before.

    Args:
        project: The project's folder.
        step: Killed once this step's record is there.
        settings: As for `--set`.
        delay: Seconds between the record and the kill.
    """
    runs = project / ".evertrain" / "store" / "runs"
    before = set(runs.iterdir()) if runs.exists() else set()
    process = subprocess.Popen(
        command(*_run_words(project, settings)), cwd="/", env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until and process.poll() is None:
            started = list(set(runs.iterdir()) - before) if runs.exists() else []
            if started and (started[0] / f"{step}.json").exists():
                time.sleep(delay)
                process.send_signal(signal.SIGKILL)
                process.wait()
                return started[0].name
            time.sleep(0.02)
    finally:
        process.kill()
        process.wait()
    return ""


def run_again(project: Path, *settings: str) -> Ended:
    """The same command, to its end."""
    return evertrain(*_run_words(project, settings), timeout=_PATIENCE)


def _run_words(project: Path, settings: tuple[str, ...]) -> list[str]:
    return ["run", str(project), "--json", *(w for s in settings for w in ("--set", s))]


def decided(ended: Ended) -> bool:
    """Whether a command came to a decision, or found that the killed one had."""
    return ended.code == 0 and ended.json["status"] in ("finished", "nothing_new")


def half_made(folder: Path) -> list[str]:
    """What is not whole in the registry and in the promotion log, in words."""
    project = open_project(folder)
    registry = Registry(uri=tracking_uri(project), experiment=project.settings.name)
    try:
        entries = PromotionLog(project_store(project)).entries()
    except OutsideError as error:
        return [error.what]
    found = []
    promoted = Counter(e.version for e in entries if e.action in ("promote", "propose"))
    versions = {v["version"]: v["status"] for v in registry.versions(project.settings.name)}
    for version in sorted(promoted.keys() | versions.keys()):
        if versions.get(version) != "READY":
            found.append(f"version {version} is {versions.get(version, 'not there')}")
        if promoted[version] != 1:
            found.append(f"version {version} has {promoted[version]} entries in the log")
    said = {alias: version for alias, version in aliases_of(entries).items() if version}
    if registry.aliases(project.settings.name) != said:
        found.append(f"the aliases are {registry.aliases(project.settings.name)}, not {said}")
    return found


def prove(count: int, folder: Path) -> dict[str, int]:
    """Kill `count` runs, each with a training of its own; return the figures."""
    project = make_project(folder, 1, 2)
    figures = {"runs": 0, "finished": 0, "half_made": 0}
    for number in range(count):
        step = STEPS[number % len(STEPS)]
        delay = 0.0 if number < len(STEPS) else random.Random(number).uniform(0, 4)
        setting = f"training.seed={number + 1}"
        began = time.monotonic()
        killed = kill_in(project, step, setting, delay=delay)
        ended = run_again(project, setting)
        faults = half_made(project)
        figures["runs"] += 1
        figures["finished"] += bool(killed) and decided(ended)
        figures["half_made"] += len(faults)
        outcome = ended.json["status"] if decided(ended) else f"code {ended.code}: {ended.err}"
        print(
            f"{number + 1}/{count}  killed in {step} ({killed or 'it had ended before'}): "
            f"{outcome}, {time.monotonic() - began:.0f} s" + "".join(f"\n  {f}" for f in faults),
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return figures


def main() -> int:
    """Print the figures; 0 if every kill was mended."""
    parser = argparse.ArgumentParser(description="Kill runs and prove that nothing is lost.")
    parser.add_argument("number", nargs="?", type=int, default=len(STEPS), metavar="N")
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    count = arguments.count or arguments.number
    with tempfile.TemporaryDirectory(prefix="steps-", ignore_cleanup_errors=True) as folder:
        figures = prove(count, Path(folder, "project"))
    tell("steps", figures)
    return 0 if figures["finished"] == figures["runs"] and not figures["half_made"] else 1


if __name__ == "__main__":
    sys.exit(main())
