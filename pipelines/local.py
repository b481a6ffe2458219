"""Run the compiled pipeline on this machine: kfp.local, each step a process or a container."""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import secrets
import signal
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from components.common.layout import home, project_store
from components.common.project import Project
from components.common.records import STEPS
from components.common.run_record import RunRecord, run_record_key
from components.common.watchdog import VARIABLE, this_process
from components.report_run.alerting import alert_each, alert_once
from components.report_run.step import write_report
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore
from pipelines.compiling import compile_pipeline, name_image

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TASK = re.compile(r"[Tt]ask ['\"]([a-z-]+)['\"]")


def new_run_id() -> str:
    """An id that sorts by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}"


class StepRunner(Protocol):
    """What steps are run by.

    Attributes:
        image: That the compiled pipeline names; empty: the usual one.
    """

    image: str

    def at_work(
        self, *, run: str, store: ObjectStore, log: io.TextIOBase
    ) -> contextlib.AbstractContextManager[Any]:
        """Give the runner to start `kfp.local` with, for one run.

        Args:
            run: The run's id.
            store: The project's.
            log: The run's.
        """


class Processes:
    """Each step is a process of this machine's Python."""

    image = ""

    @contextlib.contextmanager
    def at_work(self, *, run: str, store: ObjectStore, log: io.TextIOBase) -> Iterator[Any]:
        from kfp import local

        yield local.SubprocessRunner(use_venv=False)


def run_locally(
    project: Project,
    *,
    data: str,
    overrides: list[str],
    force: bool,
    on_step: Callable[[str, str], None] = lambda step, event: None,
    runner: StepRunner | None = None,
) -> RunRecord:
    """Run the pipeline and return the run's record.

    Args:
        project: Opened with the same data and overrides.
        data: Data URI; empty: as in evertrain.yaml.
        overrides: Settings as key=value.
        force: Train even if nothing is new.
        on_step: Called with a step's name and `started` or `ended`.
        runner: Of the steps; not given: `Processes`.

    Raises:
        OutsideError: Another run of this project is under way, or the store cannot be reached.
        KeyboardInterrupt: After the run's record was written.
    """
    store, steps = project_store(project), runner or Processes()
    with only_run(home(project)):
        close_interrupted_runs(project, store)
        run = new_run_id()
        os.environ["EVERTRAIN_RUN_ID"] = run
        os.environ[VARIABLE] = this_process()
        log = home(project) / "logs" / f"{run}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        store.put(f"runs/{run}/started", b"")
        parameters = {
            "project": str(project.folder),
            "data": data if "://" in data or not data else os.path.abspath(data),
            "store": store.uri,  # named, so that a cached step is one of this very store
            "overrides": overrides,
            "force": force,
        }
        try:
            with log.open("w") as file, _noticing_interrupts() as check:
                with steps.at_work(run=run, store=store, log=file) as kfp_runner:
                    watcher = _Watcher(file, on_step, check)
                    _execute(home(project), parameters, kfp_runner, watcher, image=steps.image)
                check()
        finally:
            for variable in ("EVERTRAIN_RUN_ID", VARIABLE):
                os.environ.pop(variable, None)
            record = finished_record(project, store, run)
        return record


def finished_record(project: Project, store: ObjectStore, run: str) -> RunRecord:
    """Return a run's record; write it (again), and tell of it, if the exit handler did not."""
    try:
        record = RunRecord.model_validate_json(store.get(run_record_key(run)))
    except (ObjectMissing, ValueError):
        record = write_report(project, store, run=run)
    alert_once(project, store, record)
    return record


def close_interrupted_runs(project: Project, store: ObjectStore) -> None:
    """Write the record of every earlier run that was killed before it could, and tell of it.

    However many there are, telling takes no longer than of one.
    """
    seen: dict[str, set[str]] = {}
    for info in store.list("runs/"):
        _, run, name = info.key.split("/", 2)
        seen.setdefault(run, set()).add(name)
    killed = [run for run, names in seen.items() if "run.json" not in names]
    alert_each(project, store, [write_report(project, store, run=run) for run in killed])


@contextlib.contextmanager
def only_run(folder: Path) -> Iterator[None]:
    """Hold the project's lock on this machine; the system lets go of it whatever happens.

    Raises:
        OutsideError: Another run holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "run.lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise OutsideError(
                f"another run of this project is under way ({file.read().strip() or 'no details'})",
                hint="wait for it to end; its log is in " + str(folder / "logs"),
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")
        file.flush()
        yield


@contextlib.contextmanager
def _noticing_interrupts() -> Iterator[Callable[[], None]]:
    """Yield a check that raises if Ctrl-C came, even where a library swallowed the exception."""
    asked = False

    def interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def _execute(
    folder: Path, parameters: dict[str, Any], runner: Any, watcher: _Watcher, *, image: str
) -> None:
    """Compile, load what was compiled, and let kfp.local run it."""
    compiled = folder / "pipeline.yaml"
    compile_pipeline(compiled)
    if image:
        name_image(compiled, image)
    with warnings.catch_warnings(), contextlib.redirect_stdout(watcher):
        warnings.simplefilter("ignore")  # kfp warns of image names and deprecations
        from kfp import components, local

        local.init(
            runner=runner,
            pipeline_root=str(folder / "kfp"),
            raise_on_error=False,
            enable_caching=True,
            cache_root=str(folder / "kfp" / "cache"),
        )
        components.load_component_from_file(str(compiled))(**parameters)


class _Watcher(io.TextIOBase):
    """Writes what kfp.local prints to the log, and notices steps that start and end."""

    def __init__(
        self,
        log: io.TextIOBase,
        on_step: Callable[[str, str], None],
        check: Callable[[], None],
    ) -> None:
        self.log, self.on_step, self.check, self.line = log, on_step, check, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.check()
        text = _ANSI.sub("", text)
        self.log.write(text)
        self.log.flush()
        *lines, self.line = (self.line + text).split("\n")
        for line in lines:
            self._notice(line)
        return len(text)

    def _notice(self, line: str) -> None:
        found = _TASK.search(line)
        name = found.group(1).replace("-", "_") if found else ""
        if name in STEPS:
            if "Executing task" in line:
                self.on_step(name, "started")
            elif "finished" in line or "ache" in line:
                self.on_step(name, "ended")
