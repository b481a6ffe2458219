"""Changes that must not stop a run: data must not be turned away for how it is written."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from components.common.data_figures import ValidateFigures
from tests.corruptions.clean_feed import clean_month, table_of
from tests.corruptions.kinds import DATA_STEPS, OBJECT, Records
from tests.corruptions.project import MONTHS, NEW, Feed
from tests.corruptions.texts import TEXT, as_text, csv_of


@dataclass
class Benign:
    """A change that must pass.

    Attributes:
        why: Why it is harmless.
        months: Whose rows, and no others, must have been read.
        more: Rows besides, or fewer than those.
    """

    name: str
    change: Callable[[Feed], None]
    why: str
    months: tuple[int, ...] = MONTHS
    more: int = 0


BENIGN: list[Benign] = []


def benign(
    *, why: str, months: tuple[int, ...] = MONTHS, more: int = 0
) -> Callable[[Callable[[Feed], None]], Callable[[Feed], None]]:
    """Note a change that must pass."""

    def note(change: Callable[[Feed], None]) -> Callable[[Feed], None]:
        BENIGN.append(Benign(change.__name__, change, why, months, more))
        return change

    return note


def alarm(case: Benign, feed: Feed, records: Records) -> str:
    """Say why a change did not pass; empty: it did, and all rows were read."""
    if not records:
        return "no step left a record"
    if [(r.step, r.status) for r in records.values()] != [(s, "done") for s in DATA_STEPS]:
        last = list(records.values())[-1]
        return f"{last.step} ended as {last.status} ({last.exit_code}): {last.reason}"
    figures = ValidateFigures.model_validate(records["validate_data"].figures)
    due = sum(len(feed.rows(number)) for number in case.months) + case.more
    if figures.rows != due or figures.quarantined:
        return f"{figures.rows} of {due} rows were read, put aside: {figures.quarantined}"
    return ""


@benign(why="One more clean month: what every month brings")
def clean_month_arrives(feed: Feed) -> None:
    pass


@benign(why="Columns have names, not places")
def columns_reordered(feed: Feed) -> None:
    rows = feed.rows()
    feed.write(rows[rows.columns[::-1]])


@benign(why="No check may depend on the order of rows")
def rows_reordered(feed: Feed) -> None:
    feed.write(feed.rows().sort_values("amount"))


@benign(why="Six in a hundred are not weighed, the suite allows ten")
def a_few_more_nulls(feed: Feed) -> None:
    rows = feed.rows()
    feed.write(rows.assign(weight=rows["weight"].mask(feed.random.random(len(rows)) < 0.02)))


@benign(why="A dictionary is a way to write text")
def text_as_dictionary(feed: Feed) -> None:
    feed.replace("carrier", table_of(feed.rows())["carrier"].combine_chunks().dictionary_encode())


@benign(why="Offsets of 32 or 64 bits hold the same text")
def text_with_short_offsets(feed: Feed) -> None:
    feed.replace("depot", table_of(feed.rows())["depot"].combine_chunks().cast(pa.string()))


@benign(why="Microseconds and nanoseconds are the same instants")
def times_in_nanoseconds(feed: Feed) -> None:
    feed.write(feed.rows().assign(ordered=lambda rows: rows["ordered"].dt.as_unit("ns")))


@benign(why="An instant with another zone's name is the same instant")
def times_in_another_zone(feed: Feed) -> None:
    zoned = feed.rows()["ordered"].dt.tz_convert("Europe/Berlin")
    feed.write(feed.rows().assign(ordered=zoned))


@benign(why="-0.0 equals 0.0")
def negative_zero(feed: Feed) -> None:
    rows = feed.rows()
    zero = np.where(np.arange(len(rows)) % 50 == 0, -0.0, rows["temperature"])
    feed.write(rows.assign(temperature=zero))


@benign(why="Rows count, not files")
def file_split_in_two(feed: Feed) -> None:
    rows = feed.rows()
    feed.path().unlink()
    for half, part in enumerate((rows.iloc[:3000], rows.iloc[3000:])):
        feed.write(part, name=f"2025-04-part-{half}.parquet")


@benign(why="Spark writes a folder of parts, with markers beside")
def folder_of_parts(feed: Feed) -> None:
    rows = feed.rows()
    feed.path().unlink()
    for half, part in enumerate((rows.iloc[:3000], rows.iloc[3000:])):
        feed.write(part, name=f"2025-04.parquet/part-{half}.snappy.parquet")
    (feed.data / "2025-04.parquet" / "_SUCCESS").touch()


@benign(why="Compression is the writer's business")
def other_compression(feed: Feed) -> None:
    pq.write_table(table_of(feed.rows()), feed.place(OBJECT), compression="zstd", version="1.0")


@benign(why="So is the size of row groups")
def small_row_groups(feed: Feed) -> None:
    pq.write_table(table_of(feed.rows()), feed.place(OBJECT), row_group_size=100)


@benign(why="Notes of the writer in the footer are no rows")
def pandas_metadata(feed: Feed) -> None:
    feed.rows().to_parquet(feed.place(OBJECT), index=False)


@benign(why="A key is any text: blanks, quotes, line ends, other scripts, what SQL, shells and "
        "patterns read as their own")  # fmt: skip
def odd_names(feed: Feed) -> None:
    rows = feed.rows()
    feed.path().unlink()
    names = ("it's 4.parquet", 'a "b".parquet', "März*[x]?.parquet", "$(id);--\n.parquet",
             "%20{date}.parquet", "四月/d.parquet")  # fmt: skip
    for place, name in enumerate(names):
        feed.write(rows.iloc[place :: len(names)], name=name)


@benign(months=MONTHS[:-1], why="Another ending: not this feed's, and the pattern says so")
def csv_among_parquet(feed: Feed) -> None:
    feed.path().unlink()
    feed.rows().to_csv(feed.data / TEXT, index=False)


@benign(why="What a writer has not finished has a hidden or another name until it has")
def unfinished_files(feed: Feed) -> None:
    half = feed.path().read_bytes()[:50_000]
    for name in (".2025-05.parquet", "2025-05.parquet.tmp", "_temporary/.x/2025-05.parquet"):
        feed.place(name).write_bytes(half)


@benign(why="Notes for people and other programs have other endings")
def notes_beside_the_data(feed: Feed) -> None:
    (feed.data / "README.txt").write_text("Orders, a file a month.")
    (feed.data / "_manifest.json").write_text(json.dumps({"months": list(MONTHS)}))


@benign(
    months=MONTHS[:-1], why="A partition without a row has nothing to teach and nothing to spoil"
)
def file_without_rows(feed: Feed) -> None:
    feed.write(feed.rows().head(0))


@benign(why="Another depot opens: a new category in few rows is life, and is only told")
def depot_opens(feed: Feed) -> None:
    rows = feed.rows()
    opened = feed.random.random(len(rows)) < 0.01
    feed.write(rows.assign(depot=rows["depot"].mask(opened, "Cottbus")))


@benign(why="Business grows by a sixth", more=1000)
def more_rows_than_usual(feed: Feed) -> None:
    rows = feed.rows()
    more = clean_month(NEW, feed.seed + 1000).sample(1000, random_state=feed.seed)
    more["id"] += 500_000
    feed.write(pd.concat([rows, more], ignore_index=True).sort_values("ordered"))


@benign(why="The same rows as text, their types declared")
def csv_in_place_of_parquet(feed: Feed) -> None:
    as_text(feed)


@benign(why="Text, compressed")
def csv_compressed(feed: Feed) -> None:
    as_text(feed, lambda text: gzip.compress(text.encode()), suffix=".gz")


@benign(why="Semicolons, as spreadsheets in half of Europe write: told by the first line")
def csv_with_semicolons(feed: Feed) -> None:
    as_text(feed, lambda text: text.replace(",", ";"))


@benign(why="Line ends of Windows and the mark of its editors")
def csv_of_windows(feed: Feed) -> None:
    as_text(feed, lambda text: text.replace("\n", "\r\n").encode("utf-8-sig"))


@benign(why="Commas, quotes and line ends within quotes are part of a text")
def csv_with_quotes(feed: Feed) -> None:
    quoted = feed.rows().assign(depot=lambda rows: rows["depot"].replace("Halle", 'Halle, "S"\nb'))
    as_text(feed, lambda _: csv_of(quoted))


@benign(why="NA is a null, as data.null_values says")
def csv_with_na(feed: Feed) -> None:
    as_text(feed, lambda _: feed.rows().to_csv(index=False, na_rep="NA"))


@benign(why="A column of small whole numbers has the type that is declared, not the smallest")
def csv_of_small_numbers(feed: Feed) -> None:
    whole = feed.rows().assign(amount=lambda rows: rows["amount"].round().clip(1))
    as_text(feed, lambda _: csv_of(whole).replace(".00,", ","))
