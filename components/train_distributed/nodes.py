"""The step's side of a training on several nodes: have them started, follow them, say how it went.

The nodes and this process speak through the object store alone (`shared_job.py`, `results.py`), so
whoever runs the step again goes on following nodes that are at work, or finds what they left.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from components.common.records import StepContext
from components.train_distributed.failures import Failure
from components.train_distributed.results import drop_result, has_result, kept_result, made_of
from components.train_distributed.shared_job import JobOfNodes, SharedJob, newest_attempt
from components.train_distributed.starters import Look, Starter, starter_for
from infra.errors import OutsideError

_PULLING_SECONDS = 300.0  # that an image may fail to be pulled: registries have bad minutes
_HOPELESS_SECONDS = 60.0
_UNSEEN_SECONDS = 900.0  # that the API server may be away: nodes train on without it
_GONE_SECONDS = 20.0  # of a pod's usual 30 between SIGTERM and SIGKILL, to see nodes end
_CLEAN_UP_SECONDS = 10.0
_LINGER_SECONDS = 15.0  # that nodes may take to end by themselves, with all they have to say


def train_on_nodes(context: StepContext, job: dict[str, Any]) -> dict[str, Any]:
    """Have the nodes train, and return what came of it.

    Raises:
        TrainingFailed, OutsideError, ConfigurationError: As a node, or the cluster, said.
        KeyboardInterrupt: It was asked to stop; nodes save, and end.
    """
    settings = context.project.settings
    job = {**job, "store": context.store.uri}
    starter = starter_for(context.project, job["run_key"], context.record.run, say=_say)
    wanted = made_of(context.project, job["splits"])

    def identity(number: int) -> str:
        # Nodes that have another lease may not write any more: they are no use to this run.
        return f"{starter.identity(number)}-{job.get('lease', 0)}"

    def job_of_nodes(number: int) -> JobOfNodes:
        nodes, limits = settings.training.nodes, settings.cluster.train_job
        return JobOfNodes(
            training=job, made_of=wanted, run=context.record.run,
            identity=identity(number),
            nodes=nodes, least=limits.min_nodes or nodes, processes=settings.training.processes,
            port=limits.port, interface=limits.interface, meeting=limits.meeting,
            last_call=limits.last_call, restarts=limits.restarts,
            stop_grace=limits.stop_grace, orphaned=limits.orphaned,
        )  # fmt: skip

    shared = _attempt(context, starter, job["run_key"], job_of_nodes)
    following = _Following(context, starter, shared, wanted)
    try:
        starter.start(shared)
        return following.to_the_end()
    except KeyboardInterrupt:
        # Pods get SIGTERM; nodes that the API server cannot reach find it in the store.
        with suppress(OutsideError):
            shared.fail(Failure("KeyboardInterrupt", "the step was asked to stop"))
        gone = following.stop(_GONE_SECONDS)
        _say("nodes have saved and ended" if gone else "nodes were asked to save and end")
        raise
    finally:
        starter.close()


def _attempt(
    context: StepContext,
    starter: Starter,
    run_key: str,
    job_of_nodes: Callable[[int], JobOfNodes],
) -> SharedJob:
    """Return the attempt to follow: the one that is at work, else a new one.

    Raises:
        OutsideError: An attempt that is over does not end.
    """
    newest = newest_attempt(context.store, run_key)
    number = 1
    if newest is not None:
        same = newest.read().identity == job_of_nodes(newest.number).identity
        if newest.failure() is None and same:
            _say(f"attempt {newest.number} is under way: it is followed")
            newest.follow()
            return newest
        newest.fail(Failure("OutsideError", "another attempt took its place"))
        patience = context.project.settings.cluster.train_job.stop_grace + 60.0
        if not starter.stop(newest.number, patience=patience):
            raise OutsideError(
                f"the nodes of attempt {newest.number} have not ended within {patience:g} s",
                hint="two trainings must not share checkpoints: see kubectl get pods, and delete "
                "by --force what a lost machine has left",
            )
        number = newest.number + 1
    drop_result(context.store, run_key)  # no node is at work that could write one
    shared = SharedJob.numbered(context.store, run_key, number)
    shared.create(job_of_nodes(number))
    return shared


class _Following:
    """Waits for a result, or for the reason why there will be none."""

    def __init__(
        self, context: StepContext, starter: Starter, shared: SharedJob, made_of: str
    ) -> None:
        self._context, self._starter, self._shared, self._made_of = (
            context, starter, shared, made_of
        )  # fmt: skip
        self._run_key = shared.read().run_key
        self._limits = context.project.settings.cluster.train_job
        self._said = ""
        self._since: dict[str, float] = {}  # what is wrong, since when
        self._seen = self._told = time.monotonic()

    def to_the_end(self) -> dict[str, Any]:
        """Return the training's result.

        Raises:
            TrainingFailed, OutsideError, ConfigurationError: There is none.
        """
        while True:
            found = self._outcome()
            look = self._look() if found is None else None
            if look is not None and look.over:
                found = self._outcome()  # what nodes left there was written before they ended
            if found is not None:
                self.stop(_CLEAN_UP_SECONDS, linger=_LINGER_SECONDS)
                return found
            if look is not None:
                words = look.words if look.over else self._out_of_patience(look)
                if words:
                    self._give_up(words, look)
            time.sleep(self._limits.poll)

    def stop(self, patience: float, *, linger: float = 0.0) -> bool:
        """End the nodes; a cluster that cannot be reached is no new reason to fail."""
        try:
            return self._starter.stop(self._shared.number, patience=patience, linger=linger)
        except OutsideError as error:
            _say(f"the nodes could not be removed: {error.what}")
            return False

    def _outcome(self) -> dict[str, Any] | None:
        """Return the result, if there is one; raise what a node failed with."""
        store = self._context.store
        if has_result(store, self._run_key):
            result = kept_result(store, self._run_key, made_of=self._made_of)
            if result is not None:
                return result
        failure = self._shared.failure()
        if failure is not None:
            self._show_last_words()
            self.stop(_CLEAN_UP_SECONDS)
            raise failure.exception()
        if time.monotonic() - self._told > self._limits.orphaned / 4:
            self._shared.follow()
            self._told = time.monotonic()
        return None

    def _look(self) -> Look | None:
        """Return how the nodes are; None: that cannot be told now."""
        try:
            look = self._starter.look()
        except OutsideError as error:
            if time.monotonic() - self._seen > _UNSEEN_SECONDS:
                raise
            self._tell(f"nodes cannot be seen: {error.what}")
            return None
        self._seen = time.monotonic()
        self._tell(look.words)
        return look

    def _out_of_patience(self, look: Look) -> str:
        """Return why waiting on makes no sense, or ""."""
        now = time.monotonic()
        limits = {
            "waiting": (look.waiting, self._limits.pending),
            "pulling": (look.pulling, _PULLING_SECONDS),
            "hopeless": (look.hopeless, _HOPELESS_SECONDS),
        }
        for name, (holds, patience) in limits.items():
            if not holds:
                self._since.pop(name, None)
            elif now - self._since.setdefault(name, now) >= min(patience, self._limits.pending):
                return f"{look.words}, for {now - self._since[name]:.0f} s"
        return ""

    def _give_up(self, words: str, look: Look) -> None:
        hint = look.hint or "run the same again: training goes on from its newest checkpoint"
        self._show_last_words()
        self._shared.fail(Failure("OutsideError", words, hint))
        self.stop(_CLEAN_UP_SECONDS)
        raise OutsideError(words, hint=hint)

    def _show_last_words(self) -> None:
        try:
            lines = self._starter.last_words()
        except OutsideError:
            return
        for line in lines:
            print(line, file=sys.stderr)

    def _tell(self, words: str) -> None:
        if words != self._said:
            _say(words)
            self._said = words


def _say(words: str) -> None:
    print(f"nodes: {words}", file=sys.stderr, flush=True)
