"""The project as a backtest runs it: its own home, store, registry and data; all else as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from components.common.layout import digest_of, home
from components.common.project import Project, open_project
from components.common.provenance import provenance
from infra.store import ObjectStore, open_store
from infra.tracking import default_uri
from training_core.errors import ConfigurationError

# What decides which store, registry and home a run takes, were it not said here.
_OUTSIDE = ("EVERTRAIN_HOME", "EVERTRAIN_STORE", "MLFLOW_TRACKING_URI")


@dataclass(frozen=True)
class Place:
    """The folder of a backtest.

    rows/         the rows of each period as a file; data/: those that have arrived, the same files
    home/         home folder, object store and registry of its runs
    notes.json    what became of each date; models/: the model of each; scores/, holdouts/: of rows
    result.json, backtest.html
    """

    folder: Path
    real: Project
    given: list[str]

    @cached_property
    def project(self) -> Project:
        """The project as it is run here."""
        return open_project(self.real.folder, overrides=self.overrides, data=str(self.data))

    @property
    def overrides(self) -> list[str]:
        """What was given on the command line, and what keeps the runs apart from the real ones."""
        window = self.real.settings.data.window
        return [
            *self.given,
            f"data.pattern='{'{date}.parquet' if window else '*.parquet'}'",
            f"store='{self.home / 'store'}'",
            f"tracking.uri='{default_uri(self.home)}'",
            "decision.approval=false",  # nobody is asked about the past
            "refit.enabled=false",  # models are compared on holdouts that none has learned from
        ]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def page(self) -> Path:
        return self.folder / "backtest.html"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def store(self) -> ObjectStore:
        (self.home / "store").mkdir(parents=True, exist_ok=True)
        return open_store(self.home / "store")

    @contextmanager
    def environment(self) -> Iterator[None]:
        """Let every step that is started here live in this folder."""
        before = {name: os.environ.pop(name, None) for name in _OUTSIDE}
        os.environ["EVERTRAIN_HOME"] = str(self.home)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def backtests(project: Project) -> Path:
    """The folder that holds a project's backtests."""
    return home(project) / "backtests"


def open_place(project: Project, *, given: list[str], first: str, every: str) -> Place:
    """Return the folder of the backtest of these data, code, settings and dates.

    The same project from the same day at the same pace is the same backtest, however far it goes.

    Raises:
        ConfigurationError: The project says of no row when it came to be.
    """
    settings = project.settings
    if settings.data.time_column is None:
        raise ConfigurationError(
            f"{project.folder / 'evertrain.yaml'} names no data.time_column, so nobody knows what "
            "had arrived by a date",
            hint="name the column that says when a row came to be: data: {time_column: …}",
        )
    if settings.data.newest:
        raise ConfigurationError(
            "data.newest counts partitions, and a backtest cuts its own",
            hint="say the window in days: --set data.newest=0 --set data.window=90d",
        )
    code = {
        path.relative_to(project.folder).as_posix(): path.read_text()
        for pattern in ("*.py", settings.validation.suite)
        for path in sorted(project.folder.rglob(pattern))
        if not any(part.startswith(".") for part in path.relative_to(project.folder).parts)
    }
    made_of = [provenance(project).config_digest, project.data_source, code, first, every]
    return Place(backtests(project) / f"{first}-{every}-{digest_of(made_of)[:8]}", project, given)
