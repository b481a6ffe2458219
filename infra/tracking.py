"""Experiment tracking: the few things said to MLflow, through its client and nothing global.

    tracking = Tracking(uri=default_uri(home), experiment="flights")
    run = tracking.open_run(key=run_key, name="2026-03", tags={})
    tracking.log_metrics(run, (("loss", loss, step) for step, loss in enumerate(losses)))
    tracking.finish(run, "FINISHED")

MLflow is imported only when something is asked of it: it takes a second and a half.
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from infra.errors import ObjectMissing, OutsideError

RUN_KEY = "evertrain.run_key"
T = TypeVar("T")
RunStatus = Literal["FINISHED", "FAILED", "KILLED"]

# Defaults of MLflow that wait too long (its own: 7 retries of 120 s, doubling pauses between) or
# say too much. What the environment already says is left alone.
_ENVIRONMENT = {
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "3",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
}


class Tracking:
    """One experiment of an MLflow server or database.

    The experiment is made on first use. For a SQLite URI its artifacts lie in `mlartifacts` beside
    the database file; a server decides for itself.

    Raises:
        OutsideError: The server or database cannot be reached, or failed.
        ObjectMissing: There is no such run.
        ValueError: MLflow refuses what it was given (a name, a changed parameter).
    """

    def __init__(self, *, uri: str, experiment: str) -> None:
        self.uri = uri
        self.experiment = experiment
        self._client: Any = None
        self._experiment_id: str | None = None

    def open_run(self, *, key: str, name: str, tags: Mapping[str, str]) -> str:
        """Find the run with this key, or make it; set its tags, and mark it as running.

        Steps of one pipeline may ask at the same moment, and MLflow has no unique names for runs:
        whoever made a second run with the key removes it and takes the eldest.
        """
        with faults(self.uri):
            client, experiment = self._open()
            found = self._find(key)
            if found is None:
                made = client.create_run(experiment, run_name=name, tags={RUN_KEY: key})
                found = self._find(key) or made
                if found.info.run_id != made.info.run_id:
                    client.delete_run(made.info.run_id)
            run_id = str(found.info.run_id)
            if found.info.status != "RUNNING":
                client.update_run(run_id, status="RUNNING")
        self.set_tags(run_id, tags)
        return run_id

    def log_metrics(
        self, run_id: str, rows: Iterable[tuple[str, float, int] | tuple[str, float, int, int]]
    ) -> None:
        """Log (name, value, step) rows, a thousand to a request: forty times faster than singly.

        A fourth value is the instant, in milliseconds since 1970, at which it was measured; now
        otherwise. Rows that are equal in all four are kept once, however often they are sent.
        """
        from mlflow.entities import Metric
        from mlflow.utils.validation import MAX_METRICS_PER_BATCH

        for batch in _batches(rows, MAX_METRICS_PER_BATCH):
            now = int(time.time() * 1000)
            metrics = [
                Metric(row[0], float(row[1]), row[3] if len(row) == 4 else now, int(row[2]))
                for row in batch
            ]
            with faults(self.uri):
                self._open()[0].log_batch(run_id, metrics=metrics)

    def log_params(self, run_id: str, params: Mapping[str, Any]) -> None:
        """Log parameters as text, cut to what MLflow takes.

        A parameter is written once: the same value again is no error, another value is.
        """
        from mlflow.entities import Param
        from mlflow.utils.validation import MAX_PARAM_VAL_LENGTH, MAX_PARAMS_TAGS_PER_BATCH

        for batch in _batches(params.items(), MAX_PARAMS_TAGS_PER_BATCH):
            entities = [Param(name, _cut(value, MAX_PARAM_VAL_LENGTH)) for name, value in batch]
            with faults(self.uri):
                self._open()[0].log_batch(run_id, params=entities)

    def set_tags(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Set tags, replacing those of the same names; values are cut to what MLflow takes."""
        from mlflow.entities import RunTag
        from mlflow.utils.validation import MAX_PARAMS_TAGS_PER_BATCH, MAX_TAG_VAL_LENGTH

        for batch in _batches(tags.items(), MAX_PARAMS_TAGS_PER_BATCH):
            entities = [RunTag(name, _cut(value, MAX_TAG_VAL_LENGTH)) for name, value in batch]
            with faults(self.uri):
                self._open()[0].log_batch(run_id, tags=entities)

    def finish(self, run_id: str, status: RunStatus) -> None:
        """Mark a run as ended."""
        with faults(self.uri):
            self._open()[0].set_terminated(run_id, status)

    def _open(self) -> tuple[Any, str]:
        if self._client is None:
            self._client = connect(self.uri)
        if self._experiment_id is None:
            self._experiment_id = ensure_experiment(self._client, self.uri, self.experiment)
        return self._client, self._experiment_id

    def _find(self, key: str) -> Any:
        client, experiment = self._open()
        runs = client.search_runs(
            [experiment],
            filter_string=f"tags.`{RUN_KEY}` = {quoted(key)}",
            max_results=100,
            order_by=["attributes.start_time ASC"],
        )
        return min(runs, key=lambda run: (run.info.start_time, run.info.run_id), default=None)


def default_uri(home: Path) -> str:
    """Where runs are tracked: MLFLOW_TRACKING_URI, or a SQLite file in the home folder."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{home.absolute()}/mlflow.db"


def connect(uri: str) -> Any:
    """Return an `MlflowClient` for the URI, with short patience and little talk."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    if not sys.stderr.isatty():
        os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(os.environ["MLFLOW_LOGGING_LEVEL"].upper())
    with faults(uri), _first_alone(uri):
        return MlflowClient(tracking_uri=uri, registry_uri=uri)


def ensure_experiment(client: Any, uri: str, name: str) -> str:
    """Return the id of the experiment, which is made if there is none."""
    from mlflow.exceptions import MlflowException

    found = client.get_experiment_by_name(name)
    if found is None:
        folder = _sqlite_folder(uri)
        location = None if folder is None else (folder / "mlartifacts").as_uri()
        try:
            return str(client.create_experiment(name, artifact_location=location))
        except MlflowException as error:
            if error.error_code != "RESOURCE_ALREADY_EXISTS":
                raise
            found = client.get_experiment_by_name(name)  # another process was faster
    if found is None or found.lifecycle_stage != "active":
        raise OutsideError(
            f"the experiment {name!r} at {uri} has been deleted",
            hint=f"mlflow experiments restore --experiment-id {getattr(found, 'experiment_id', '')}"
            ", or choose another name",
        )
    return str(found.experiment_id)


@contextmanager
def faults(uri: str) -> Iterator[None]:
    """Turn MLflow's exceptions into `OutsideError`, or `ValueError` for what it refuses."""
    from mlflow.exceptions import MlflowException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except MlflowException as error:
        if error.error_code in ("INVALID_PARAMETER_VALUE", "BAD_REQUEST"):
            raise ValueError(f"MLflow at {uri} refuses this: {error.message}") from error
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise ObjectMissing(f"MLflow at {uri} has no such thing: {error.message}") from error
        raise OutsideError(f"MLflow at {uri} failed: {error.message}", hint=_hint(uri)) from error
    except (OSError, SQLAlchemyError) as error:
        raise OutsideError(f"MLflow at {uri} failed: {error}", hint=_hint(uri)) from error


def quoted(value: str) -> str:
    """Quote a value for an MLflow filter, which has no escapes."""
    if "'" not in value:
        return f"'{value}'"
    if '"' not in value:
        return f'"{value}"'
    raise ValueError(f"{value!r} holds both kinds of quotes: MLflow cannot search for it")


def _hint(uri: str) -> str:
    if uri.startswith("http"):
        return f"is the server up, and is MLFLOW_TRACKING_URI right? try: curl -f {uri}/health"
    return "can the database be written, and is MLFLOW_TRACKING_URI right?"


@contextmanager
def _first_alone(uri: str) -> Iterator[None]:
    """Let one process at a time open a SQLite database, and only one that can be opened.

    Two that create its tables together break each other's migrations (mlflow 3.17 locks for its
    registry's store only), and a database that cannot be opened is tried for 100 seconds.
    """
    folder = _sqlite_folder(uri)
    if folder is None:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".mlflow-lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            with closing(sqlite3.connect(uri.removeprefix("sqlite:///"), timeout=30)) as database:
                database.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            raise OutsideError(f"MLflow at {uri} failed: {error}", hint=_hint(uri)) from error
        yield


def _sqlite_folder(uri: str) -> Path | None:
    file = uri.removeprefix("sqlite:///")
    return None if file == uri else Path(file).absolute().parent


def _batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _cut(value: Any, limit: int) -> str:
    text = str(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
