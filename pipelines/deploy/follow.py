"""Starting a run, following it, and how it ended: by its own record, not by Kubeflow's colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from components.common.layout import record_key
from components.common.project import Project
from components.common.records import EVERY_STEP, StepRecord
from components.common.run_record import RunRecord, run_record_key
from infra.errors import OutsideError
from infra.kubeflow import Kubeflow, Run, TaskState, Version
from infra.store import ObjectStore
from pipelines.deploy.plan import parameters_of

_LOG_EVERY = 6  # looks between two of a running step's log: it comes as a whole each time
_REFUSALS = 3  # in a row, after which logs are not asked for any more


@dataclass(frozen=True)
class Outcome:
    """How a run ended.

    Attributes:
        exit_code: As on the design page.
        words: In a few words.
        reasons: Why, the most important first.
        record: The run's own; None: it left none, or it cannot be read from here.
    """

    run: str
    exit_code: int
    words: str
    reasons: tuple[str, ...] = ()
    hint: str = ""
    record: RunRecord | None = None


def start(
    project: Project,
    version: Version,
    *,
    kubeflow: Kubeflow,
    overrides: list[str],
    force: bool,
) -> str:
    """Start a run of a version and return its id."""
    settings, cluster = project.settings, project.settings.cluster
    return kubeflow.start(
        cluster.pipeline or settings.name,
        name=f"{settings.name} by hand {datetime.now(UTC):%Y-%m-%d %H:%M:%S}",
        parameters=parameters_of(overrides, force=force),
        experiment=cluster.experiment or settings.name,
        version=version,
        service_account=cluster.service_account,
    )


@dataclass
class Follower:
    """Says what a run's steps do, as Kubeflow sees it, and what they print.

    Attributes:
        store: That the run was given: a step's record says which pod does it, and Kubeflow hands
            out logs by that. Its own list of a run's nodes has no names of pods.
        on_state: Told of a step's name and state when that changes.
        on_line: Told of a step's name and a line of its log.
        on_trouble: Told, once, why logs are not to be had here.
    """

    kubeflow: Kubeflow
    store: ObjectStore
    on_state: Callable[[str, str], None]
    on_line: Callable[[str, str], None]
    on_trouble: Callable[[str], None]
    poll: float = 5.0
    _states: dict[str, str] = field(default_factory=dict)
    _read: dict[str, int] = field(default_factory=dict)
    _looks: int = 0
    _refusals: int = 0
    _without_store: bool = False

    def follow(self, run: str, *, timeout: float) -> Run:
        """Wait for a run's end, saying what happens, and return it.

        Raises:
            OutsideError: It takes longer than `timeout` seconds; it goes on.
        """
        return self.kubeflow.wait(run, timeout=timeout, poll=self.poll, on_look=self._look)

    def _look(self, run: Run) -> None:
        self._looks += 1
        for task in run.tasks:
            step = task.name.replace("-", "_")
            if step not in EVERY_STEP:
                continue  # Kubeflow's own: drivers, conditions
            changed = self._states.get(step) != task.state
            if changed:
                self._states[step] = task.state
                self.on_state(step, task.state.lower())
            over = task.state not in ("PENDING", "RUNNING", "")
            if (changed and over) or (task.state == "RUNNING" and self._looks % _LOG_EVERY == 1):
                self._log(run.id, step, task, over=over)

    def _log(self, run: str, step: str, task: TaskState, *, over: bool) -> None:
        if self._refusals >= _REFUSALS:
            return
        try:
            pods = self._pods(run, step, task)
            texts = [(pod, self.kubeflow.runs.log(run, pod)) for pod in pods]
        except OutsideError as error:
            self._refusals += 1
            if self._refusals == _REFUSALS:
                self.on_trouble(error.what)
            return
        for pod, text in texts:
            self._refusals = 0
            fresh = text[self._read.get(pod, 0) :]
            # Half a line stays for the next look, but for the last one.
            whole = fresh if over else fresh[: fresh.rfind("\n") + 1]
            self._read[pod] = self._read.get(pod, 0) + len(whole)
            for line in whole.splitlines():
                self.on_line(step, line)

    def _pods(self, run: str, step: str, task: TaskState) -> tuple[str, ...]:
        """Names of the pods that do a step; none before it has begun."""
        if self._without_store:
            return task.pods
        try:
            record = StepRecord.model_validate_json(self.store.get(record_key(run, step)))
        except (LookupError, ValueError):
            return task.pods
        except OutsideError:
            self._without_store = True  # no credentials here, most often: one try is enough
            return task.pods
        return (record.pod,) if record.pod else task.pods


def outcome(store: ObjectStore, run: Run) -> Outcome:
    """Say how a run ended, by its record in the store; by Kubeflow's word where there is none.

    Args:
        store: That the run was given.
        run: As it was when it had ended.
    """
    from pipelines.show import verdict_words

    record, trouble = _record(store, run.id)
    if record is None:
        return _by_kubeflow(run, trouble)
    reasons = tuple(record.reasons)
    if run.succeeded or record.exit_code:
        words = verdict_words(record)
        return Outcome(run.id, record.exit_code, words, reasons, record.hint, record)
    return Outcome(
        run.id,
        3,
        f"{verdict_words(record)}, but Kubeflow says {run.state.lower()}",
        (*reasons, *_failures(run)),
        "the work was done and recorded; what failed is in Kubeflow's own part",
        record,
    )


def _by_kubeflow(run: Run, trouble: str) -> Outcome:
    """A run that left no record: its pods never came up, or the store is not to be read here."""
    state = run.state.lower()
    if run.succeeded:
        return Outcome(run.id, 0, state, (trouble,))
    return Outcome(
        run.id,
        3,
        state,
        (*_failures(run), trouble),
        "an image that cannot be pulled, a quota that is spent, a secret that is missing: the "
        "run's page in Kubeflow, or kubectl describe pod, says which",
    )


def _failures(run: Run) -> tuple[str, ...]:
    """What Kubeflow says of the run and of its steps that failed."""
    said = [
        f"{task.name}: {task.error or task.state.lower()}"
        for task in run.tasks
        if task.state in ("FAILED", "CANCELED") and task.name.replace("-", "_") in EVERY_STEP
    ]
    return (*([run.error] if run.error else ()), *said)


def _record(store: ObjectStore, run: str) -> tuple[RunRecord | None, str]:
    """The run's record, or why there is none."""
    try:
        content = store.get(run_record_key(run))
        return RunRecord.model_validate_json(content), ""
    except LookupError:
        return None, f"the run left no record in {store.uri}: no step of it came to an end"
    except OutsideError as error:
        return None, f"its record cannot be read from here: {error.what}"
    except ValueError:
        return None, f"its record in {store.uri} cannot be read: it was written by another version"


def as_data(outcome: Outcome) -> dict[str, Any]:
    """For `--json`."""
    return {
        "run": outcome.run,
        "exit_code": outcome.exit_code,
        "outcome": outcome.words,
        "reasons": list(outcome.reasons),
        "hint": outcome.hint,
        "record": outcome.record.model_dump(mode="json") if outcome.record else None,
    }
