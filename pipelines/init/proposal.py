"""All that was decided, and what it was decided by."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pipelines.init.asking import Asking, Choice
from pipelines.init.columns import Column, look_at
from pipelines.init.features import Features, choose_features
from pipelines.init.keys import check_key, choose_key
from pipelines.init.knowledge import auc_of_each
from pipelines.init.label import Label, binary_columns, look_at_label
from pipelines.init.sample import Sample
from pipelines.init.sizes import Sizes, choose_sizes
from pipelines.init.splitting import Split, choose_split
from pipelines.init.times import choose_time


@dataclass(frozen=True)
class Given:
    """What the command line said; empty: nothing.

    Attributes:
        key: Columns, with commas between.
        asking: How doubts are settled.
    """

    label: str = ""
    time: str = ""
    key: str = ""
    asking: Asking = field(default_factory=Asking)


@dataclass(frozen=True)
class Proposal:
    """All that a project is written from."""

    sample: Sample
    columns: list[Column]
    label: Label
    time: str
    time_why: str
    key: list[str]
    key_why: str
    features: Features
    split: Split
    sizes: Sizes
    now: datetime

    def column(self, name: str) -> Column:
        """A column by its name."""
        return next(c for c in self.columns if c.name == name)

    @property
    def leaks(self) -> list[str]:
        """Columns that were left out because they know the label."""
        return [n for n, why in self.features.left_out.items() if why.startswith("looks like")]

    def as_data(self) -> dict[str, Any]:
        """Plain data, for --json."""
        sample, split = self.sample, self.split
        return {
            "data": {
                "source": sample.source.uri,
                "objects": len(sample.source.objects),
                "objects_read": len(sample.read),
                "rows_read": sample.read_rows,
                "rows_sampled": sample.rows,
                "rows_likely": sample.likely_rows,
            },
            "label": {
                "column": self.label.name,
                "positive": self.label.positive,
                "negative": self.label.negative,
                "rate": self.label.rate,
                "labelled": self.label.labelled,
            },
            "row_key": self.key,
            "time_column": self.time or None,
            "split": {
                "by": split.by,
                "group": split.group,
                "holdout": split.holdout,
                "validation": split.validation,
            },
            "categories": self.features.categories,
            "numbers": self.features.numbers,
            "left_out": self.features.left_out,
        }


def propose(sample: Sample, given: Given, *, now: datetime | None = None) -> Proposal:
    """Decide everything; ask only where the data does not tell.

    Raises:
        ConfigurationError: Something given is wrong, or cannot be told and nobody is there to ask.
        StoppedByGate: The data cannot be learned from.
    """
    now = now or datetime.now(UTC)
    connection = sample.connection
    columns = look_at(connection, sample.types, rows=sample.rows)
    doubt = f"two values have {', '.join(binary_columns(columns)) or 'none'}"
    name = given.label or given.asking.settle(
        "which column is the label",
        Choice[str]([], clear=False, why=doubt),
        option="--label COLUMN",
    )
    label = look_at_label(connection, columns, name)
    others = [c for c in columns if c.name != label.name]
    times = choose_time(others, given=given.time, now=now)
    time = given.asking.settle(
        "which column says when a row came to be", times, option="--time COLUMN (or none)"
    )
    time = choose_time(others, given=time, now=now).options[0] if time else ""
    key, key_why = _key(sample, others, given, time=time)
    rarer_class = round(min(label.rate, 1 - label.rate) * label.labelled * sample.rows)
    features = choose_features(
        connection,
        columns,
        label=label.name,
        time=time,
        key=key,
        auc=auc_of_each(connection, others, label, rows=sample.rows),
        rarer_class=rarer_class,
    )
    scale = sample.likely_rows / sample.rows
    split = choose_split(connection, columns, label, time=time, scale=scale)
    rows = round(sample.likely_rows * label.labelled * split.train_share)
    return Proposal(
        sample=sample,
        columns=columns,
        label=label,
        time=time,
        time_why=times.why,
        key=key,
        key_why=key_why,
        features=features,
        split=split,
        sizes=choose_sizes(columns, features, rows=rows),
        now=now,
    )


def _key(
    sample: Sample, columns: list[Column], given: Given, *, time: str
) -> tuple[list[str], str]:
    """The row's key, found or given, and why."""
    if not given.key:
        found = choose_key(sample.connection, columns, time=time)
        if found.clear:
            return found.options[0], found.why
        doubt = Choice[str]([], clear=False, why=found.why)
        answer = given.asking.settle(
            "which columns together name a row", doubt, option="--key COLUMN,COLUMN"
        )
    else:
        answer = given.key
    whole = answer in {c.name for c in columns}  # a name may hold a comma
    key = [answer] if whole else [n.strip() for n in answer.split(",") if n.strip()]
    check_key(sample.connection, columns, key)
    return key, "named by --key; unique in all rows that were read"
