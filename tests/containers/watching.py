"""What the engine saw of a run's containers, and what befell them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.image.engine import Docker
from tests.small_project.command import Ended, command, environment

PREFIX = "evertrain-"


@dataclass
class Seen:
    """A container that was started.

    Attributes:
        name: Its name.
        step: Which step's.
        config: As `docker inspect` says it; empty: it was gone by then.
    """

    name: str
    step: str
    config: dict[str, Any] = field(default_factory=dict)


@contextmanager
def watching(
    docker: Docker, on_start: Callable[[Seen], None] = lambda seen: None
) -> Iterator[list[Seen]]:
    """Note every container of a step that is started, and look at it while it runs."""
    found: list[Seen] = []
    words = ["events", "--filter", "type=container", "--filter", "event=start"]
    words += ["--format", "{{.Actor.Attributes.name}}"]
    with subprocess.Popen(
        [docker.client, *words], stdout=subprocess.PIPE, text=True,
        env={**os.environ, **docker.environment},
    ) as process:  # fmt: skip

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                name = line.strip()
                if name.startswith(PREFIX):
                    # evertrain-RUN-STEP; a run's id has two hyphenless parts
                    seen = Seen(name, "_".join(name.split("-")[3:]))
                    found.append(seen)
                    on_start(seen)
                    done = subprocess.run(
                        [docker.client, "inspect", name], capture_output=True, check=False,
                        env={**os.environ, **docker.environment},
                    )  # fmt: skip
                    if done.returncode == 0:
                        (seen.config,) = json.loads(done.stdout)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        time.sleep(0.3)  # until the engine listens
        try:
            yield found
        finally:
            process.terminate()
            thread.join()


def run_in_containers(
    docker: Docker, project: Path, image: str, *words: str, more: dict[str, str] | None = None
) -> Ended:
    """`evertrain run PROJECT --runner docker`, to its end."""
    with started(docker, project, image, *words, more=more) as process:
        out, err = process.communicate(timeout=600)
        return Ended(process.returncode, out, err)


@contextmanager
def started(
    docker: Docker, project: Path, image: str, *words: str, more: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The same, under way; killed when the block ends."""
    line = command("run", project, "--runner", "docker", "--image", image, "--json", *words)
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/",
        env={**environment(), **docker.environment, **(more or {})},
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)


def running_steps(docker: Docker) -> list[str]:
    """Names of the containers of steps that run now."""
    names = docker.run("ps", "--format", "{{.Names}}").split()
    return [name for name in names if name.startswith(PREFIX)]


def until(true: Callable[[], Any], *, seconds: float = 120) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.05)
