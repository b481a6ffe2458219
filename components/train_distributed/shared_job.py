"""One attempt of several nodes at a training, as objects: they share no disk, only the store.

    jobs/<run key>/<number>/job.json        what to train, and how nodes meet; created once
    jobs/<run key>/<number>/failed.json     why it is over without a result; the first word counts
    jobs/<run key>/<number>/followed.json   put again and again by the step that follows it

Its result is the training's own (`results.py`). An attempt is over when it has failed, or the
training has a result; the next one has the next number.
"""

from __future__ import annotations

import json
import re
from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from components.common.layout import jobs_prefix
from components.train_distributed.failures import Failure
from infra.errors import ObjectMissing, OutsideError
from infra.store import ObjectStore

_NUMBER = re.compile(r"([0-9]{4})/job\.json")


class JobOfNodes(BaseModel):
    """What every node is told.

    Attributes:
        training: Arguments of `job.train`, as plain data.
        made_of: As in `results.made_of`.
        run: Of the pipeline; the metrics' tag.
        identity: Tells this attempt from all others.
        nodes, least: Most and least nodes that train together.
        processes: On each node.
        port, interface, meeting, last_call, restarts, stop_grace, orphaned: As in
            `TrainJobSettings`.
    """

    model_config = ConfigDict(extra="forbid")

    format: str = "evertrain/job/1"
    training: dict[str, Any]
    made_of: str
    run: str
    identity: str
    nodes: int
    least: int
    processes: int
    port: int
    interface: str
    meeting: float
    last_call: float
    restarts: int
    stop_grace: int
    orphaned: float

    @property
    def run_key(self) -> str:
        """Of the training."""
        return str(self.training["run_key"])


class SharedJob:
    """An attempt in the store.

    Args:
        store: That all nodes reach.
        key: Its prefix, without a slash at the end.
    """

    def __init__(self, store: ObjectStore, key: str) -> None:
        self.store, self.key = store, key

    @classmethod
    def numbered(cls, store: ObjectStore, run_key: str, number: int) -> Self:
        """Return the attempt of a training with this number."""
        return cls(store, f"{jobs_prefix(run_key)}/{number:04d}")

    @property
    def number(self) -> int:
        """From 1."""
        return int(self.key.rpartition("/")[2])

    def create(self, job: JobOfNodes) -> bool:
        """Begin it, unless somebody has; say whether this call did."""
        return self.store.create(f"{self.key}/job.json", job.model_dump_json(indent=1).encode())

    def read(self) -> JobOfNodes:
        """Return what nodes are told.

        Raises:
            OutsideError: There is no such attempt, or it is of another version of this program.
        """
        where = f"{self.key}/job.json in {self.store.uri}"
        try:
            return JobOfNodes.model_validate_json(self.store.get(f"{self.key}/job.json"))
        except ObjectMissing as error:
            raise OutsideError(
                f"there is no {where}",
                hint="give the store and the job that the log of train_distributed names",
            ) from error
        except ValueError as error:
            raise OutsideError(
                f"{where} cannot be read ({error})",
                hint="run the same image on all nodes and in the pipeline's steps",
            ) from error

    def fail(self, failure: Failure) -> None:
        """Say why it is over, unless that is said already."""
        self.store.create(f"{self.key}/failed.json", json.dumps(failure.to_dict()).encode())

    def failure(self) -> Failure | None:
        """Return why it is over; None: it is not, or has a result."""
        try:
            return Failure.from_dict(json.loads(self.store.get(f"{self.key}/failed.json")))
        except ObjectMissing:
            return None

    def follow(self) -> None:
        """Say that a step still waits for it."""
        self.store.put(f"{self.key}/followed.json", b"{}")

    def unfollowed(self) -> float:
        """Return for how many seconds no step has said so, by the store's clock."""
        for name in ("followed.json", "job.json"):
            try:
                return self.store.read(f"{self.key}/{name}").age
            except ObjectMissing:
                continue
        return 0.0


def newest_attempt(store: ObjectStore, run_key: str) -> SharedJob | None:
    """Return a training's newest attempt, if there is one."""
    prefix = f"{jobs_prefix(run_key)}/"
    found = [_NUMBER.fullmatch(info.key.removeprefix(prefix)) for info in store.list(prefix)]
    numbers = [int(match[1]) for match in found if match]
    return SharedJob.numbered(store, run_key, max(numbers)) if numbers else None
