"""Files that are broken, hostile or not what their name says."""

from __future__ import annotations

import gzip
import io
import os
import shutil
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.corruptions.clean_feed import table_of
from tests.corruptions.kinds import OBJECT, SNAPSHOT, Check, Family, finding
from tests.corruptions.project import Feed

files = Family("files")
PAGES = Check("validate_data", "step", "reads every page")
_NO_PARQUET = "No Parquet, whatever its name says"


@files.feed("blocked", SNAPSHOT, OBJECT, "0 bytes", why="An upload that began and never went on")
def empty_file(feed: Feed) -> None:
    feed.place(OBJECT).touch()


@files.feed("warned", finding("empty_object"), OBJECT, why="A whole file of no rows: a query "
            "found nothing. What came before is good, but April never came")  # fmt: skip
def file_without_rows(feed: Feed) -> None:
    feed.write(feed.rows().iloc[:0])


@files.feed("blocked", SNAPSHOT, OBJECT, why="Parquet keeps what it holds at its end: without it "
            "nothing can be read")  # fmt: skip
def file_cut_short(feed: Feed) -> None:
    _rewrite(feed, lambda content: content[: len(content) * 2 // 3])


@files.feed("blocked", PAGES, OBJECT, why="Whole at both ends and filled with zeros between, "
            "as a disk full for a moment leaves it")  # fmt: skip
def zeros_within(feed: Feed) -> None:
    _rewrite(feed, lambda content: content[:3000] + bytes(60_000) + content[63_000:])


@files.feed("blocked", SNAPSHOT, OBJECT, why=_NO_PARQUET)
def error_page_in_place_of_data(feed: Feed) -> None:
    feed.place(OBJECT).write_text("<html><body>503 Service Unavailable</body></html>\n" * 40)


@files.feed("blocked", SNAPSHOT, OBJECT, why=_NO_PARQUET)
def csv_named_parquet(feed: Feed) -> None:
    feed.rows().to_csv(feed.place(OBJECT), index=False)


@files.feed("blocked", SNAPSHOT, OBJECT, why="Parquet compresses by itself; nobody reads it twice "
            "compressed")  # fmt: skip
def parquet_compressed_again(feed: Feed) -> None:
    _rewrite(feed, gzip.compress)


@files.feed("blocked", PAGES, OBJECT, why="A footer that promises what the file cannot hold")
def footer_of_another_file(feed: Feed) -> None:
    table = table_of(feed.rows().sort_values("amount", ignore_index=True))
    other = io.BytesIO()
    pq.write_table(table, other, compression="zstd")
    whole = other.getvalue()
    size = int.from_bytes(whole[-8:-4], "little") + 8
    _rewrite(feed, lambda content: content[:-size] + whole[-size:])


@files.feed("blocked", SNAPSHOT, "2025-03.parquet", OBJECT, why="The same bytes under two names: "
            "each row would count twice, and April is missing")  # fmt: skip
def old_file_under_a_new_name(feed: Feed) -> None:
    shutil.copyfile(feed.path(3), feed.place(OBJECT))


@files.feed("blocked", SNAPSHOT, OBJECT, why="What lies outside the feed's folder is not the "
            "feed's: a link may lead to what this project must not read")  # fmt: skip
def link_out_of_the_folder(feed: Feed) -> None:
    feed.outside.mkdir()
    target = feed.outside / "private.parquet"
    pq.write_table(table_of(feed.rows()), target)
    feed.place(OBJECT).symlink_to(target)


@files.feed("blocked", SNAPSHOT, OBJECT, why="A link to nothing: the month is announced and not "
            "there; passing over it would lose a month in silence")  # fmt: skip
def link_to_nothing(feed: Feed) -> None:
    feed.place(OBJECT).symlink_to(feed.data / "gone.parquet")


@files.feed("blocked", SNAPSHOT, OBJECT, why="A few kilobytes that become fifty megabytes of "
            "rows: refused by what the footer says, before a page is read")  # fmt: skip
def parquet_bomb(feed: Feed) -> None:
    row = table_of(feed.rows().head(1))
    many = row.take(pa.array(np.zeros(500_000, dtype=np.int64)))
    pq.write_table(
        many, feed.place(OBJECT), compression="zstd", compression_level=9, use_dictionary=False
    )


@files.feed("blocked", SNAPSHOT, "'*.parquet'", why="The feed's folder was emptied: nothing is "
            "there to fall back on in silence")  # fmt: skip
def folder_emptied(feed: Feed) -> None:
    shutil.rmtree(feed.data)
    feed.data.mkdir()


@files.feed("blocked", SNAPSHOT, "2025-04-", why="A name that is no UTF-8 stands for no key of an "
            "object store: it is refused by name")  # fmt: skip
def name_that_is_no_text(feed: Feed) -> None:
    os.rename(feed.path(), os.fsencode(feed.data / "2025-04") + b"-\xff.parquet")


def _rewrite(feed: Feed, change: Callable[[bytes], bytes]) -> None:
    """Put other bytes in the place of the new month's file."""
    content = feed.path().read_bytes()
    feed.place(OBJECT).write_bytes(change(content))
