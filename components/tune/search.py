"""The search: ask for points, train them, end what is behind, until the budget is spent.

Each trial trains as train_distributed does, on the same splits, and is scored on the validation
split. The holdout is not read here. What was done is in the study and beside the checkpoints: the
same search goes on where it was killed.
"""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.common.layout import checkpoint_prefix
from components.common.project import Project
from components.common.tune_figures import TrialFigures
from components.common.tune_settings import TuneSettings
from components.train_distributed.failures import Failure
from components.train_distributed.stop import NOTICE
from components.tune.outcomes import best_of, metric_of, outcome_of
from components.tune.pool import Done, Evaluation, Pool
from components.tune.space import Space, override
from components.tune.trials import Trials
from infra.store import ObjectStore

_LOOK = 0.1  # seconds between two looks at what trials told
_HOPELESS = 3  # trials that fail before one has come to its end
OnTrial = Callable[[TrialFigures], None]


@dataclass(frozen=True)
class Place:
    """What every training of a search has in common.

    Attributes:
        project: Opened with its overrides.
        store: The project's; writes to it are refused once another search has the study.
        splits: As split_data left them.
        name: Of the study.
        folder: Of the search on this machine.
        lease: Number of the run's lease, in a pipeline; 0: there is none.
        parent: MLflow's id of the search's run; "": MLflow was not to be reached.
    """

    project: Project
    store: ObjectStore
    splits: dict[str, Any]
    name: str
    folder: Path
    lease: int = 0
    parent: str = ""

    @property
    def settings(self) -> TuneSettings:
        return self.project.settings.tune

    def key(self, what: str | int) -> str:
        """Run key of a training of this search."""
        return (
            f"tune-{self.name}-{what:04d}" if isinstance(what, int) else f"tune-{self.name}-{what}"
        )

    def training(self, key: str, values: Mapping[str, Any], *more: str) -> dict[str, Any]:
        """Return the arguments of `job.train` for settings by path."""
        project = self.project
        threads = project.settings.training
        share = []
        if not threads.fixed_threads and self.settings.parallel > 1:
            cores = (os.cpu_count() or 1) // (self.settings.parallel * threads.processes)
            share = [f"training.threads={max(1, cores)}"]
        given = [override(path, value) for path, value in values.items()]
        return {
            "project": str(project.folder),
            "store": self.store.uri,
            "overrides": [*project.overrides, *share, *given, *more],
            "run_key": key,
            "splits": self.splits,
            "lease": self.lease,
        }

    def tags(self, **more: str) -> dict[str, str]:
        """Return the tags of a training's run in MLflow: a child of the search's."""
        parent = {"mlflow.parentRunId": self.parent} if self.parent else {}
        return {**parent, "evertrain.tune": self.name, **more}

    def clean(self, key: str) -> None:
        """Remove a training's checkpoints and its result."""
        for info in list(self.store.list(f"{checkpoint_prefix(key)}/")):
            self.store.delete(info.key)


def search(
    place: Place, trials: Trials, space: Space, *, on_trial: OnTrial = lambda trial: None
) -> str:
    """Try points until the budget is spent; return which part of it was.

    Raises:
        ConfigurationError: The metric is not known, or the first trials found the settings wrong.
        TrainingFailed: The first trials all failed.
        KeyboardInterrupt: It was asked to stop; what trained has saved.
    """
    pool = Pool(place.folder, size=place.settings.parallel)
    work = _Search(place, trials, space, pool, on_trial)
    with stop_requests() as asked:
        try:
            return work.run(asked)
        finally:
            work.count_seconds()
            pool.close()


class _Search:
    def __init__(
        self, place: Place, trials: Trials, space: Space, pool: Pool, on_trial: OnTrial
    ) -> None:
        self._place, self._trials, self._space = place, trials, space
        self._pool, self._on_trial, self._settings = pool, on_trial, place.settings
        self._began = time.monotonic()
        self._numbers: dict[str, int] = {}
        self._pruned: set[str] = set()
        self._told: dict[str, list[tuple[int, float]]] = {}
        self._clean: set[int] = set()

    def run(self, asked: Callable[[], bool]) -> str:
        waiting = self._trials.orphans()
        while True:
            if asked():
                raise KeyboardInterrupt
            spent = self._spent() if self._pool.free else ""  # it asks the store
            while self._pool.free and (waiting or not spent):
                self._start(waiting.pop(0) if waiting else self._trials.ask())
                spent = self._spent()
            if not self._pool.busy:
                return spent
            for event in self._pool.events(_LOOK):
                if isinstance(event, Evaluation):
                    self._evaluation(event)
                else:
                    self._done(event)

    def count_seconds(self) -> float:
        """Add the time since the last look to the search's; return all of it."""
        now = time.monotonic()
        total = self._trials.spent(now - self._began)
        self._began = now
        return total

    def _start(self, trial: TrialFigures) -> None:
        place, key = self._place, self._place.key(trial.number)
        self._trials.begun(trial.number)
        self._numbers[key], self._told[key] = trial.number, []
        self._pool.start(
            place.training(key, trial.values),
            name=f"{place.project.settings.name} trial {trial.number}",
            tags=place.tags(**{"evertrain.trial": str(trial.number)}),
        )

    def _spent(self) -> str:
        """Which part of the budget is spent; empty: a trial may begin."""
        settings, ended = self._settings, self._trials.all()
        if len(ended) >= settings.trials:
            return f"{settings.trials} trials"
        seconds = self._trials.spent() + time.monotonic() - self._began
        if settings.hours and seconds >= settings.hours * 3600:
            return f"{settings.hours:g} hours"
        processes = self._place.project.settings.training.processes
        cost = sum(t.seconds for t in ended) * processes * settings.price_per_hour / 3600
        if settings.cost and cost >= settings.cost:
            return f"a cost of {settings.cost:g}"
        return ""

    def _evaluation(self, told: Evaluation) -> None:
        value = metric_of(told.metrics, self._settings)
        if told.key in self._pruned or not math.isfinite(value):
            return
        self._told[told.key].append((told.step, value))
        if self._trials.evaluation(self._numbers[told.key], told.rung, value):
            self._pruned.add(told.key)
            self._pool.end(told.key)

    def _done(self, done: Done) -> None:
        number = self._numbers.pop(done.key)
        outcome = outcome_of(done, self._settings, pruned=done.key in self._pruned)
        if outcome is None:  # stopped, or its process died: it goes on later, or here
            if done.died is not None:
                print(f"tune: the process of trial {number} died ({done.died})", file=sys.stderr)
                again = self._trials.orphans(only=number)
                if again:
                    self._start(again[0])
                    return
            else:
                raise KeyboardInterrupt
        else:
            self._trials.tell(number, {"evaluations": self._told[done.key], **outcome})
        self.count_seconds()
        everyone = self._trials.all()
        trial = next(each for each in everyone if each.number == number)
        kept = {each.number for each in best_of(everyone, self._settings)[: self._settings.keep]}
        for each in everyone:
            if each.ended != "running" and each.number not in kept | self._clean:
                self._place.clean(self._place.key(each.number))
                self._clean.add(each.number)
        self._on_trial(trial)
        if done.failure is not None:
            _stop_if_hopeless(everyone, Failure.from_dict(done.failure))


def _stop_if_hopeless(trials: list[TrialFigures], failure: Failure) -> None:
    """Raise what the first trials failed with, if none came to its end."""
    ended = [each.ended for each in trials if each.ended != "running"]
    if ended.count("failed") >= _HOPELESS and not {"finished", "pruned"} & set(ended):
        error = failure.exception()
        raise error


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Notice SIGTERM, Ctrl-C and a spot notice; a second signal ends at once."""
    notice = os.environ.get(NOTICE, "")
    came = False

    def note(signum: int, frame: Any) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt
        came = True

    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda: came or (bool(notice) and Path(notice).exists())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
