"""CSV and JSON lines become Parquet: values as they are, types of all rows, faults by line."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from snapshot_sources import settings

from components.common.cache import Cache
from components.common.conversion import check_types
from components.common.layout import sha256_of
from components.common.local import local_name, take_in
from training_core.errors import ConfigurationError, StoppedByGate


def taken(tmp_path: Path, key: str, content: str | bytes, **given: Any) -> Any:
    """An object's rows after it was taken into a cache."""
    cache = Cache(tmp_path / "cache")
    data = content.encode() if isinstance(content, str) else content
    temporary = cache.reading()
    temporary.write_bytes(gzip.compress(data) if key.endswith(".gz") else data)
    sha256 = sha256_of(temporary)
    made = take_in(cache, temporary, key=key, sha256=sha256, settings=settings(**given))
    left = {path.name for path in (tmp_path / "cache").iterdir()}
    assert left <= {sha256[:2], ".lock"}, "nothing else is left behind"
    table = pq.read_table(made.path)
    assert table.num_rows == made.rows
    assert made.schema == {f.name: str(f.type) for f in table.schema}
    return table


CSV = """id,whole,part,yes,day,time,zoned,word,code,huge,nothing,mixed
1,5,0.5,true,2025-01-01,2025-01-01 10:00:00,2025-01-01T10:00:00Z,a,007,12345678901234567890,,1
2,-7,1e3,FALSE,2025-12-31,2025-01-01T10:00:00.5,2025-01-01 10:00:00+02:00,"b,""c""
d",010,1,NA,x
3,NA,3,,2024-02-29,,,NaN,1,2,,2
"""


@pytest.mark.parametrize("key", ["a.csv", "a.csv.gz", "A.CSV"])
def test_types_follow_from_all_rows_and_no_value_changes(tmp_path: Path, key: str) -> None:
    table = taken(tmp_path, key, CSV)
    types = {f.name: str(f.type) for f in table.schema}
    assert types == {
        "id": "int64", "whole": "int64", "part": "double", "yes": "bool", "day": "date32[day]",
        "time": "timestamp[us]", "zoned": "timestamp[us, tz=UTC]", "word": "string",
        "code": "string", "huge": "string", "nothing": "bool", "mixed": "string",
    }  # fmt: skip
    columns = table.to_pydict()
    assert columns["whole"] == [5, -7, None]
    assert columns["part"] == [0.5, 1000.0, 3.0]
    assert columns["yes"] == [True, False, None]
    assert columns["day"][2] == datetime.date(2024, 2, 29)
    assert columns["zoned"][1] == datetime.datetime(2025, 1, 1, 8, tzinfo=datetime.UTC)
    assert columns["word"] == ["a", 'b,"c"\nd', None]
    assert columns["code"] == ["007", "010", "1"]
    assert columns["huge"][0] == "12345678901234567890"
    assert columns["nothing"] == [None] * 3


def test_a_type_is_that_of_the_last_row_too(tmp_path: Path) -> None:
    rows = [f"{n},2025-01-01" for n in range(5000)]
    table = taken(tmp_path, "a.csv", "\n".join(["a,b", *rows, "x,2025-13-01", ""]))
    assert [str(f.type) for f in table.schema] == ["string", "string"]
    assert table["a"].to_pylist() == [*map(str, range(5000)), "x"]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_delimiter_is_told_by_the_header(tmp_path: Path, delimiter: str) -> None:
    text = "\ufeffa,b\n1,x\n2,y\n".replace(",", delimiter)
    assert taken(tmp_path, "a.csv", text).to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


def test_a_header_alone_has_no_rows(tmp_path: Path) -> None:
    table = taken(tmp_path, "a.csv", "a,b\n")
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])


def test_settings_name_types_and_texts_that_mean_null(tmp_path: Path) -> None:
    given = {"types": {"a": "DOUBLE", "b": "VARCHAR"}, "null_values": ["-"]}
    table = taken(tmp_path, "a.csv", "a,b,c\n1,2,-\n-,NA,3\n", **given)
    assert table.to_pydict() == {"a": [1.0, None], "b": ["2", "NA"], "c": [None, 3]}


@pytest.mark.parametrize(
    ("key", "content", "types", "words"),
    [
        ("a.csv", "a,b\n1,2\n1.234,5\n", {"b": "BIGINT", "a": "INT"}, ["line 3", "'a'", "'1.234'"]),
        ("a.csv", 'a,b\n"x\ny",2\nz,"1,5"\n', {"b": "DOUBLE"}, ["line 4", "'b'", "'1,5'", "no D"]),
        ("a.csv.gz", "a,b\n\n1,2\n2,abc\n", {"b": "BIGINT"}, ["line 4", "'b'", "'abc'"]),
        ("a.csv", "a,b\n1,2\n", {"c": "BIGINT"}, ["lacks column 'c'", "data.types"]),
        ("a.csv", "a,b\n1,2\n3\n", {}, ["line 3", "'3'"]),
        ("a.csv", "a,b\n1,2\n3,4,5\n", {}, ["line 3", "'3,4,5'"]),
        ("a.csv", 'a,b\n1,2\n3,"4\n', {}, ["no readable CSV"]),
        ("a.csv", b"a,b\n1,2\n3,caf\xe9\n", {}, ["no readable CSV", "3,"]),
        ("a.csv", b"caf\xe9,b\n1,2\n", {}, ["first line", "utf-8"]),
        ("a.csv", "a,b,A\n1,2,3\n", {}, ["names the column 'a' 2 times"]),
        ("a.csv", "a,,b\n1,2,3\n", {}, ["column 2 has no name"]),
        ("a.csv", "\n\n", {}, ["first line is empty"]),
        ("a.jsonl", '{"a": 1}\n\n{"a": "x"}\n', {"a": "BIGINT"}, ["line 3", "'a'", "'x'"]),
        ("a.jsonl", '{"a": 1}\n{"a": 1.5}\n', {"a": "BIGINT"}, ["line 2", "'1.5'"]),
        ("a.jsonl", '{"a": 1}\n{"a": \n', {}, ["no readable JSON lines", "line 2"]),
        ("a.ndjson", '{"a": 1}\n\n[1, 2]\n', {}, ["line 3 is no object"]),
        ("a.jsonl", '{"a": 1}\n{"b": 1, "b": 2}\n', {}, ["line 2", "'b' 2 times"]),
        ("a.jsonl.gz", '{"a": 1}\nhello\n', {}, ["line 2"]),
        ("a.jsonl", '{"a": 1}\n{"a": "x"}\n', {}, ["column 'a'", "more than one kind"]),
        ("a.jsonl", b'{"a": "caf\xe9"}\n', {}, ["line 1 is no UTF-8"]),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named_by_object_line_column_and_value(
    tmp_path: Path, key: str, content: str | bytes, types: dict[str, str], words: list[str]
) -> None:
    with pytest.raises(StoppedByGate) as refused:
        taken(tmp_path, key, content, types=types)
    for word in [key, *words]:
        assert word in refused.value.what
    assert refused.value.hint
    assert not list((tmp_path / "cache").glob("*reading*"))
    assert not list((tmp_path / "cache").glob("??/*"))


@pytest.mark.parametrize("key", ["a.jsonl", "a.ndjson", "a.jsonl.gz"])
def test_json_lines_keep_their_types(tmp_path: Path, key: str) -> None:
    text = (
        '{"a": 1, "b": 0.5, "c": "x", "d": "2025-01-01", "e": null, "f": "12", "g": {"h": [1]}}\n'
        '\n{"b": 2, "a": 2, "c": "007", "d": "2025-01-02", "i": 12345678901234567890123}\n'
    )
    table = taken(tmp_path, key, text, types={"i": "VARCHAR"})
    rows = table.to_pylist()
    assert rows[0] == {
        "a": 1, "b": 0.5, "c": "x", "d": datetime.date(2025, 1, 1), "e": None, "f": "12",
        "g": {"h": [1]}, "i": None,
    }  # fmt: skip
    assert rows[1]["c"] == "007"
    assert rows[1]["i"] == "12345678901234567890123"


def test_a_converted_object_is_named_after_its_content_and_the_settings_that_matter() -> None:
    plain = settings()
    name = local_name("a.csv", "0" * 64, plain)
    assert name.startswith("0" * 64 + "-")
    assert local_name("b.csv", "0" * 64, settings(memory="2GB")) == name
    assert local_name("a.csv", "0" * 64, settings(types={"a": "BIGINT"})) != name
    assert local_name("a.csv", "0" * 64, settings(null_values=[])) != name
    assert local_name("a.parquet", "0" * 64, plain) == "0" * 64


@pytest.mark.parametrize(
    "kind", ["INTT", "BIGINT); DROP TABLE staged; --", "", "(SELECT 1)", "'x'"]
)
def test_a_type_that_is_none_is_wrong_configuration(kind: str) -> None:
    check_types(settings(types={"a": "DECIMAL(10, 2)", "b": "timestamp with time zone"}))
    with pytest.raises(ConfigurationError, match=r"data\.types: 'a' is .*no type"):
        check_types(settings(types={"a": kind}))
