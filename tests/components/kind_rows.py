"""Rows and labels of every kind, as the steps of the data have them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
from profile_rows import settings_of

from components.common.data_figures import Finding
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import LocalObject, add_view, open_tables
from components.common.targets import add_label_views
from components.split_data.sides import Division, divide
from components.validate_data.drawn import draw
from components.validate_data.profile import Profile
from components.validate_data.take_profile import take_profile
from components.validate_data.trust import find_all
from tests.small_kinds.letters import LETTERS, Letters
from tests.small_kinds.make_kind import month
from tests.small_kinds.numbers_task import SmallMulticlass, SmallMultilabel, SmallRegression
from training_core.task import PADDING

KINDS = ("multiclass", "multilabel", "regression", "sequence")
SETTINGS = settings_of()


def next_letters(frame: pd.DataFrame) -> npt.NDArray[np.int64]:
    """As `sequence_task.py` has it, which only a project can import."""
    letters = Letters("word").transform(frame)["letters"]
    after: npt.NDArray[np.int64] = np.full_like(letters, PADDING)
    after[:, :-1] = np.where(letters[:, 1:] > 0, letters[:, 1:], PADDING)
    return after


LABELS = {
    "binary": Label("binary", ("label",), lambda frame: frame["label"].to_numpy(), owner="Small"),
    "multiclass": Label.of(SmallMulticlass()),
    "multilabel": Label.of(SmallMultilabel()),
    "regression": Label.of(SmallRegression()),
    "sequence": Label("sequence", ("word",), next_letters, is_input=True, owner="SmallTask"),
}
INPUTS = dict.fromkeys(KINDS, ("number", "other")) | {"sequence": ("word",)}


def two_months(kind: str) -> pd.DataFrame:
    """January and February."""
    return pd.concat([month(1, kind), month(2, kind)], ignore_index=True)


@dataclass(frozen=True)
class Tables:
    """Rows of a kind in DuckDB, in the view `kept`."""

    connection: duckdb.DuckDBPyConnection
    label: Label
    settings: ProjectSettings

    def judged(self) -> pd.DataFrame:
        """The rows as a profile sees them, by id."""
        view = add_label_views(self.connection, self.label)
        return (
            self.connection.execute(f"SELECT * FROM {view} ORDER BY id")
            .to_arrow_table()
            .to_pandas()
        )

    def profile(self, edges: Profile | None = None) -> Profile:
        view = add_label_views(self.connection, self.label)
        found = take_profile(
            self.connection, view, settings=self.settings, label=self.label, edges=edges
        )
        return Profile.from_json(found.to_json())

    def findings(self, *features: str) -> list[Finding]:
        """What the checks of trust say."""
        view = add_label_views(self.connection, self.label)
        drawn = draw(self.connection, view, data=self.settings.data, label=self.label)
        profile = take_profile(self.connection, view, settings=self.settings, label=self.label)
        return find_all(
            self.connection, drawn, profile, settings=self.settings, label=self.label,
            features=features or INPUTS[self.label.kind], now=datetime(2026, 1, 1, tzinfo=UTC),
        )  # fmt: skip

    def divide(self) -> Division:
        return divide(self.connection, settings=self.settings, label=self.label)


@contextmanager
def tables(
    rows: pd.DataFrame, kind: str, folder: Path, settings: ProjectSettings = SETTINGS,
    **label: object,
) -> Iterator[Tables]:  # fmt: skip
    """Open rows; `label` changes what is known of the kind's label."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "rows.parquet"
    rows.to_parquet(file, index=False)
    with open_tables(settings.data, readable=[folder], scratch=folder / "scratch") as connection:
        add_view(connection, "kept", [LocalObject("rows", file, len(rows))])
        yield Tables(connection, replace(LABELS[kind], **label), settings)  # type: ignore[arg-type]


def words(*lengths: int) -> list[str]:
    """Words of so many letters."""
    return ["".join(LETTERS[i % 5] for i in range(length)) for length in lengths]
