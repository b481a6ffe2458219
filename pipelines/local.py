"""Run the compiled pipeline on this machine: kfp.local, each step a process or a container."""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Protocol

from components.common.holding import PLACE, STARTED_BY
from components.common.layout import home, project_store
from components.common.project import Project
from components.common.records import EVERY_STEP
from components.common.run_record import RunRecord, run_record_key
from components.common.watchdog import VARIABLE, this_process
from components.report_run.alerting import alert_once
from components.report_run.step import let_go, write_report
from infra.errors import ObjectMissing
from infra.store import ObjectStore
from pipelines.compiling import compile_pipeline, name_image
from pipelines.one_run import (
    HomeBusy,
    close_interrupted_runs,
    free_dead,
    new_run_id,
    only_run,
    skipped_run,
)

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_WAITS = re.compile(r"\blease: (waits for .*)")
_TASK = re.compile(r"[Tt]ask ['\"]([a-z-]+)['\"]")


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
    on_wait: Callable[[str], None] = lambda words: None,
    on_begin: Callable[[str], None] = lambda run: None,
) -> RunRecord:
    """Run the pipeline and return the run's record; `skipped` if another run is under way.

    Args:
        project: Opened with the same data and overrides.
        data: Data URI; empty: as in evertrain.yaml.
        overrides: Settings as key=value.
        force: Train even if nothing is new.
        on_step: Called with a step's name and `started` or `ended`.
        runner: Of the steps; not given: `Processes`.
        on_wait: Called with words if the run waits for another one (`lease.busy: queue`).
        on_begin: Called with the run's id before anything is done; what it raises ends the run.

    Raises:
        OutsideError: The store cannot be reached.
        KeyboardInterrupt: After the run's record was written.
    """
    steps = runner or Processes()
    store, lease = project_store(project), project.settings.lease
    patience = lease.patience if lease.busy == "queue" else 0.0
    with contextlib.ExitStack() as stack:
        try:
            place = stack.enter_context(only_run(home(project), patience=patience, on_wait=on_wait))
        except HomeBusy as busy:
            return skipped_run(project, store, busy)
        free_dead(store, place)
        run = new_run_id()
        on_begin(run)
        close_interrupted_runs(project, store)
        stack.enter_context(_environment(run, place))
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
                    watcher = _Watcher(file, on_step, on_wait, check)
                    _execute(project, parameters, kfp_runner, watcher, image=steps.image)
                check()
        finally:
            record = finished_record(project, store, run)
        return record


def finished_record(project: Project, store: ObjectStore, run: str) -> RunRecord:
    """Return a run's record; write it (again), and tell of it, if the exit handler did not."""
    try:
        record = RunRecord.model_validate_json(store.get(run_record_key(run)))
    except (ObjectMissing, ValueError):
        record = write_report(project, store, run=run)
    let_go(project, store, run=run)
    alert_once(project, store, record)
    return record


@contextlib.contextmanager
def _environment(run: str, place: str) -> Iterator[None]:
    """Tell the steps which run they belong to, whose child they are, and where they run."""
    before = dict(os.environ)
    os.environ.update({"EVERTRAIN_RUN_ID": run, VARIABLE: this_process(), PLACE: place})
    os.environ.setdefault(STARTED_BY, "evertrain run")
    try:
        yield
    finally:
        for variable in ("EVERTRAIN_RUN_ID", VARIABLE, PLACE, STARTED_BY):
            os.environ.pop(variable)
            if variable in before:
                os.environ[variable] = before[variable]


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
    project: Project, parameters: dict[str, Any], runner: Any, watcher: _Watcher, *, image: str
) -> None:
    """Compile, load what was compiled, and let kfp.local run it."""
    folder = home(project)
    compiled = folder / "pipeline.yaml"
    settings = project.settings
    compile_pipeline(compiled, tuned=settings.tune.in_pipeline, refitted=settings.refit.enabled)
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
        on_wait: Callable[[str], None],
        check: Callable[[], None],
    ) -> None:
        self.log, self.on_step, self.on_wait, self.check = log, on_step, on_wait, check
        self.line = ""

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
        if waits := _WAITS.search(line):
            self.on_wait(waits.group(1))
        found = _TASK.search(line)
        name = found.group(1).replace("-", "_") if found else ""
        if name in EVERY_STEP:
            if "Executing task" in line:
                self.on_step(name, "started")
            elif "finished" in line or "ache" in line:
                self.on_step(name, "ended")
