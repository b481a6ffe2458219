"""data.pattern and the windows: which objects are data, and which of them count."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from snapshot_sources import CountingStore, keys, settings, snapshot, write

from components.common.sources import open_source
from components.snapshot_data.listing import list_objects
from components.snapshot_data.partitions import Pattern
from training_core.errors import ConfigurationError, StoppedByGate

NAMES = ["a.parquet", "b/a.parquet", "b/c/a.parquet", "a.csv", "[x].parquet", "a\nb.parquet",
         "ab.parquet", "-.parquet", "a+b.parquet", "b/xparquet", "a^.parquet", "z]"]  # fmt: skip


@pytest.mark.parametrize(
    "pattern",
    ["*.parquet", "a*", "?.parquet", "[ab]*.parquet", "[!a]*", "[a-c]?.p*", "[]-]*", "[^a]*",
     "[", "a+*", "*[]]", "*.p[a-b]rquet", "*", "[[]*"],
)  # fmt: skip
def test_a_pattern_without_a_slash_is_fnmatch_of_the_name(pattern: str) -> None:
    found = Pattern(pattern).matches(pa.array(NAMES)).to_pylist()
    last = [name.rpartition("/")[2] for name in NAMES]
    assert found == [fnmatch.fnmatchcase(name, pattern) for name in last]


@pytest.mark.parametrize("pattern", ["b/*", "*/a.parquet", "b/c/?.parquet", "[ab]/*"])
def test_a_pattern_with_a_slash_is_fnmatch_of_the_whole_key(pattern: str) -> None:
    found = Pattern(pattern).matches(pa.array(NAMES)).to_pylist()
    assert found == [fnmatch.fnmatchcase(name, pattern) for name in NAMES]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("{day}.parquet", "{day} is no placeholder"),
        ("{date}-{span}.parquet", "which of them"),
        ("{span}/{span}.parquet", "which of them"),
        ("{span:%Y}.parquet", "no placeholder"),
        ("{date:}.parquet", "no placeholder"),
        ("{date:%Q}.parquet", "%Q is not among the parts"),
        ("{date:%m-%d}.parquet", "without a year"),
        ("{date:x}.parquet", "names no part"),
        ("{date.parquet", "brace"),
        ("date}.parquet", "brace"),
        ("[z-a].parquet", "range"),
    ],
)
def test_a_pattern_that_makes_no_sense_is_wrong_configuration(pattern: str, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Pattern(pattern)
    assert words in refused.value.what
    assert repr(pattern) in refused.value.what


@pytest.fixture
def source(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "data")


def kept(source: CountingStore, names: list[str], **given: Any) -> list[str]:
    for number, name in enumerate(names):
        write(source, name, number)
    found = keys(snapshot(source, **given))
    assert sorted(source.read) == found, "what is outside the window is not read"
    return found


def test_newest_takes_the_last_names_where_there_is_no_placeholder(source: CountingStore) -> None:
    names = [f"2025-0{month}.parquet" for month in range(1, 5)]
    assert kept(source, names, newest=2) == names[2:]
    assert kept(source, names, newest=9) == names


def test_newest_counts_dates_and_not_objects(source: CountingStore) -> None:
    names = [f"{day}/part-{part}.parquet" for day in ("2025-01-31", "2025-02-01", "2024-12-31")
             for part in range(3)]  # fmt: skip
    found = kept(source, names, newest=2, pattern="{date}/*.parquet")
    assert found == sorted(name for name in names if name.startswith("2025"))


def test_a_date_may_be_written_in_any_order_and_in_several_places(source: CountingStore) -> None:
    names = ["d=31/m=12/y=2023.parquet", "d=01/m=02/y=2024.parquet", "d=02/m=01/y=2024.parquet"]
    pattern = "d={date:%d}/m={date:%m}/y={date:%Y}.parquet"
    assert kept(source, names, newest=1, pattern=pattern) == names[1:2]
    assert kept(source, names, newest=2, pattern=pattern) == names[1:]


def test_a_span_is_a_number(source: CountingStore) -> None:
    names = [f"span-{number}.parquet" for number in (1, 2, 9, 10, 11)]
    names.append("span-x.parquet")
    assert kept(source, names, newest=3, pattern="span-{span}.parquet") == [
        "span-10.parquet", "span-11.parquet", "span-9.parquet"
    ]  # fmt: skip


def test_a_window_of_days_ends_with_the_newest_day(source: CountingStore) -> None:
    names = [f"x-202501{day:02}{hour:02}.parquet" for day in (1, 2, 3, 8) for hour in (0, 23)]
    found = kept(source, names, window="7d", pattern="x-{date:%Y%m%d%H}.parquet")
    assert found == names[2:]
    assert kept(source, names, window="1d", pattern="x-{date:%Y%m%d%H}.parquet") == names[6:]


def test_a_date_that_is_none_is_said(source: CountingStore) -> None:
    write(source, "2025-13-01.parquet", 1)
    with pytest.raises(StoppedByGate, match="'2025-13-01' in it is no date"):
        snapshot(source, pattern="{date}.parquet")


def test_one_of_several_sources_that_is_empty_is_not_passed_over(tmp_path: Path) -> None:
    write(CountingStore(tmp_path / "there"), "a.parquet", 1)
    given = [str(tmp_path / name) for name in ("there", "not mounted")]
    with pytest.raises(StoppedByGate, match=r"no object below .*/not mounted"):
        list_objects(open_source(given), settings())
