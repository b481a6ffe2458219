"""The feed as CSV: what text can hide and typed files cannot."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import lru_cache

from tests.corruptions.clean_feed import Rows, clean_month
from tests.corruptions.kinds import SNAPSHOT, Family, finding, suite
from tests.corruptions.project import MONTHS, NEW, Feed

texts = Family("texts")
TYPES = {
    "id": "BIGINT", "customer": "BIGINT", "ordered": "TIMESTAMP WITH TIME ZONE",
    "local_hour": "BIGINT", "carrier": "VARCHAR", "depot": "VARCHAR", "shelf": "VARCHAR",
    "express": "BOOLEAN", "items": "BIGINT", "amount": "DOUBLE", "distance": "DOUBLE",
    "temperature": "DOUBLE", "weight": "DOUBLE", "late": "DOUBLE",
}  # fmt: skip
TEXT = "2025-04.csv"


def as_text(feed: Feed, change: Callable[[str], str | bytes] = str, *, suffix: str = "") -> None:
    """Turn the feed to CSV, the new month through `change`; `suffix` is added to its name."""
    for number in MONTHS:
        feed.path(number).unlink()
        content = _csv_month(number, feed.seed)
        written = change(content) if number == NEW else content
        path = feed.place(feed.path(number, ".csv").name + (suffix if number == NEW else ""))
        path.write_bytes(written if isinstance(written, bytes) else written.encode())
    feed.overrides += ['data.pattern="*.csv*"', f"data.types={TYPES}"]


def csv_of(rows: Rows) -> str:
    """Rows as the feed's writer spells them."""
    return rows.assign(amount=rows["amount"].map("{:.2f}".format)).to_csv(index=False)


@lru_cache(maxsize=8)
def _csv_month(number: int, seed: int) -> str:
    return csv_of(clean_month(number, seed))


def lines(change: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    """A change of lines as a change of a whole text."""
    return lambda text: "\n".join(change(text.splitlines())) + "\n"


@texts.feed("blocked", SNAPSHOT, TEXT, "'id'", why="Hive's delimiter, which no person sees: one "
            "column with a long name, and none of those that are declared")  # fmt: skip
def other_delimiter(feed: Feed) -> None:
    as_text(feed, lambda text: text.replace(",", "\x01"))


@texts.feed("blocked", SNAPSHOT, TEXT, why="The first row taken for the names of columns")
def header_missing(feed: Feed) -> None:
    as_text(feed, lines(lambda all_lines: all_lines[1:]))


@texts.feed("blocked", SNAPSHOT, TEXT, "amount", why="12,50 in quotes is no number to a reader "
            "of points")  # fmt: skip
def decimal_commas(feed: Feed) -> None:
    def comma(line: str) -> str:
        cells = line.split(",")
        return ",".join([*cells[:9], f'"{cells[9].replace(".", ",")}"', *cells[10:]])

    as_text(feed, lines(lambda all_lines: [all_lines[0], *map(comma, all_lines[1:])]))


@texts.feed("blocked", SNAPSHOT, TEXT, "amount", why="Words where numbers belong: the declared "
            "type refuses them, and no column becomes text in silence")  # fmt: skip
def words_among_numbers(feed: Feed) -> None:
    as_text(feed, lines(lambda all_lines: [*all_lines[:-1], _cell(all_lines[-1], 9, "unknown")]))


@texts.feed("blocked", SNAPSHOT, TEXT, why="A comma in a name without quotes: every later value "
            "of the row is one column too far")  # fmt: skip
def comma_without_quotes(feed: Feed) -> None:
    as_text(feed, lines(lambda all_lines: [*all_lines[:-1], _cell(all_lines[-1], 5, "Halle, a")]))


@texts.feed("blocked", SNAPSHOT, TEXT, why="The writer ended in the middle of a row")
def cut_within_a_row(feed: Feed) -> None:
    as_text(feed, lambda text: text[: text.rindex("\n", 0, 400_000) + 30])


@texts.feed("blocked", SNAPSHOT, TEXT, why="Bytes that are no UTF-8: guessing an encoding turns "
            "names into others")  # fmt: skip
def other_encoding(feed: Feed) -> None:
    as_text(feed, lambda text: text.encode("latin-1"))


@texts.feed("warned", finding("empty_object"), TEXT, why="The export of a query that found "
            "nothing: its header is all there is")  # fmt: skip
def header_alone(feed: Feed) -> None:
    as_text(feed, lines(lambda all_lines: all_lines[:1]))


@texts.feed("blocked", SNAPSHOT, TEXT, why="An empty text has no columns, not even wrong ones")
def empty_text(feed: Feed) -> None:
    as_text(feed, lambda text: "")


@texts.feed("blocked", SNAPSHOT, TEXT + ".gz", "200", why="Little that becomes 100 megabytes: "
            "reading stops at data.most_expansion")  # fmt: skip
def compression_bomb(feed: Feed) -> None:
    as_text(feed, lambda text: gzip.compress(text.encode() + b" " * 100_000_000), suffix=".gz")


@texts.feed("blocked", SNAPSHOT, TEXT + ".gz", why="Compressed and cut off: the checksum at the "
            "end is missing")  # fmt: skip
def compressed_and_cut_short(feed: Feed) -> None:
    as_text(feed, lambda text: gzip.compress(text.encode())[:-2000], suffix=".gz")


@texts.feed("blocked", suite("column_values_to_not_be_null", "distance"), "0.99",
            why="NA in a third of the rows is read as null, as the settings say; the suite counts "
            "them")  # fmt: skip
def many_not_available(feed: Feed) -> None:
    as_text(feed, lambda _: csv_of(feed.rows().assign(distance=_third_missing)))


def _third_missing(rows: Rows) -> list[object]:
    return [value if place % 3 else "NA" for place, value in enumerate(rows["distance"])]


def _cell(line: str, place: int, value: str) -> str:
    cells = line.split(",")
    return ",".join([*cells[:place], value, *cells[place + 1 :]])
