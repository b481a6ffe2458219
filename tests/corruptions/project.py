"""The project that corruptions spoil: three months with a champion, then a fourth arrives.

    template = Template(folder, seed=0)      # once: validates three months, makes a champion
    feed = template.arrive()                 # for each case, at the same place: months 1 to 4
    spoil(feed)
    records = feed.run()

Every case begins from the very files, at the very paths, that the champion's run saw, so a step
that keeps what it knows between runs (by path, inode, time of writing) does so here, too.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from components.common.champion import PromotionEntry, PromotionLog
from components.common.layout import finished_key
from components.common.records import StepRecord
from infra.folder import FolderStore
from tests.corruptions.clean_feed import Rows, clean_month, table_of
from tests.small_project.data_steps import RUN, run_data_steps

NEW = 4  # the month that arrives
MONTHS = (1, 2, 3, NEW)


class Feed:
    """The project's folder as a corruption finds it.

    Attributes:
        data: The folder that the feed is written to.
        seed: Of the clean data.
        random: For what a corruption draws.
        overrides: Settings that a case needs besides those of the project (`key=value`).
        outside: A folder beside the project, for what is not meant to be read.
    """

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.seed = folder, seed
        self.data, self.outside = folder / "data", folder.parent / "outside"
        self.random = np.random.default_rng([seed, 99])
        self.overrides: list[str] = []

    def path(self, number: int = NEW, suffix: str = ".parquet") -> Path:
        """The file of a month."""
        return self.data / f"2025-{number:02}{suffix}"

    def rows(self, number: int = NEW) -> Rows:
        """The clean rows of a month."""
        return clean_month(number, self.seed)

    def write(self, content: Rows | pa.Table, number: int = NEW, *, name: str = "") -> None:
        """Write a month, or a file of another name, as the feed's own writer does."""
        table = table_of(content) if isinstance(content, pd.DataFrame) else content
        pq.write_table(table, self.place(name or self.path(number).name))

    def place(self, name: str) -> Path:
        """A path in the data folder where nothing is: what was there may be linked elsewhere."""
        path = self.data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        return path

    def edit(self, change: Callable[[Rows], Rows], *numbers: int) -> None:
        """Write months again with their rows changed."""
        for number in numbers:
            self.write(change(self.rows(number)), number)

    def replace(self, column: str, values: pa.Array) -> None:
        """Write the new month with a column's values in another type."""
        table = table_of(self.rows())
        place = table.schema.get_field_index(column)
        self.write(table.set_column(place, column, values))

    def forget_champion(self) -> None:
        """As if nothing had run before: there is no reference to compare with."""
        shutil.rmtree(self.folder / ".evertrain")

    def run(self, *overrides: str) -> dict[str, StepRecord]:
        """Run the data steps, with more settings (`key=value`); return their records."""
        return run_data_steps(self.folder, *self.overrides, *overrides)


class Template:
    """Three clean months, validated and with a champion, to begin each case from.

    Args:
        folder: Of all that is made here.
        seed: Of the clean data.

    Raises:
        RuntimeError: Clean data did not pass.
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.seed = seed
        self.feed_folder, self._kept = folder / "feed", folder / "kept"
        shutil.copytree(
            Path(__file__).with_name("deliveries"),
            self.feed_folder,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        feed = Feed(self.feed_folder, seed)
        for number in MONTHS[:-1]:
            feed.write(feed.rows(number), number)
        records = feed.run()
        if [r.status for r in records.values()] != ["done"] * 3:
            raise RuntimeError({name: r.reason for name, r in records.items()})
        _crown(feed, records["snapshot_data"].run_key)
        feed.write(feed.rows())
        os.rename(self.feed_folder, self._kept)

    def arrive(self) -> Feed:
        """Lay out the project as the fourth month arrives; the case before is gone."""
        shutil.rmtree(self.feed_folder, ignore_errors=True)
        shutil.copytree(self._kept, self.feed_folder, ignore=shutil.ignore_patterns("data"))
        # linked, so that inodes and times are those the champion's run saw
        shutil.copytree(self._kept / "data", self.feed_folder / "data", copy_function=os.link)
        feed = Feed(self.feed_folder, self.seed)
        shutil.rmtree(feed.outside, ignore_errors=True)
        return feed


def _crown(feed: Feed, run_key: str) -> None:
    """Enter the run into the promotion log, and leave its key as a finished run does."""
    store = FolderStore(feed.folder / ".evertrain" / "store")
    promoted = PromotionLog(store).append(
        PromotionEntry(
            number=1, action="promote", version="1", run=RUN, run_key=run_key, package={},
            seen={"by": "time", "until": "2025-03-24T23:59:59+00:00"}, reason="the first",
            who="a test",
        )
    )  # fmt: skip
    assert promoted
    store.put(finished_key(run_key), json.dumps({"run": RUN}).encode())
    shutil.rmtree(store.root / "runs")  # the next run has the same id and its own records
