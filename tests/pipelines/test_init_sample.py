"""What `evertrain init` reads of the data, and that it reads the same each time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from init_samples import decided, orders, proposed, write, written

from components.common.cache import Cache
from components.common.local import fetch_objects, refuse_mixed_schemas
from components.common.project import open_project
from components.common.sources import open_source
from components.common.tables import add_view, columns_of, open_tables
from components.snapshot_data.taking import take_snapshot
from pipelines.init.sample import MOST_OBJECTS, choose, find_source


def test_the_newest_the_oldest_and_some_between_are_read(tmp_path: Path) -> None:
    for i in range(40):
        write(
            tmp_path / f"day={i:02}", orders(20, seed=i).assign(order_id=range(20 * i, 20 * i + 20))
        )
    source = find_source(str(tmp_path))
    assert len(source.objects) == 80
    read = [o.key for o in choose(source.objects)]
    assert (read[0], read[-1], len(read)) == (
        "day=00/part-0.parquet", "day=39/part-1.parquet", MOST_OBJECTS,
    )  # fmt: skip
    with proposed(tmp_path) as found:
        assert found.sample.rows == found.sample.read_rows == 10 * MOST_OBJECTS
        assert found.sample.likely_rows == pytest.approx(800, rel=0.05)


def test_the_same_data_gives_the_same_proposal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.init.sample.MOST_ROWS", 1_500)
    folder = write(tmp_path, orders(9_000))
    said = []
    for _ in range(2):
        with proposed(folder) as found:
            said.append(found.as_data())
    assert said[0] == said[1]


def test_three_hundred_columns_are_read_in_one_go(tmp_path: Path) -> None:
    rows = orders(1_000)
    noise = np.random.default_rng(1).normal(size=(1_000, 300))
    wide = pd.concat(
        [rows, pd.DataFrame(noise, columns=[f"sensor {i}" for i in range(300)])], axis=1
    )
    found = decided(tmp_path, wide)
    assert len(found.features.numbers) == 303


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_csv_and_json_lines_are_read_and_their_types_kept(tmp_path: Path, suffix: str) -> None:
    rows = orders(1_000)
    if suffix == "jsonl":
        rows.to_json(tmp_path / "a.jsonl", orient="records", lines=True, date_format="iso")
    else:
        rows.to_csv(tmp_path / f"a.{suffix}", index=False, na_rep="NA")
    with proposed(tmp_path) as found:
        assert found.sample.source.ending == f".{suffix}"
        assert (found.key, found.time) == (["order_id"], "ordered_at")
        assert found.features.categories == ["country", "weekday", "hour", "returning"]
        assert found.features.numbers == ["price", "hour", "discount"]
        assert found.sample.types["discount"] == "DOUBLE"


def test_objects_of_another_kind_are_left_alone_and_mentioned(tmp_path: Path) -> None:
    write(tmp_path, orders(1_000), files=3)
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_text("no data")
    with proposed(tmp_path) as found:
        assert found.sample.source.others == ["_SUCCESS"]
        assert len(found.sample.source.objects) == 3


def test_a_column_that_one_object_lacks_is_said(tmp_path: Path) -> None:
    write(tmp_path, orders(1_000), files=2)
    orders(100, seed=1).assign(order_id=range(100)).drop(columns="price").to_parquet(
        tmp_path / "part-9.parquet"
    )
    with proposed(tmp_path) as found:
        assert found.sample.differences == [
            "part-9.parquet differs from the other objects: it lacks column 'price'"
        ]


def coded() -> pd.DataFrame:
    """Orders with codes that look like numbers, numbers that look like codes, and instants."""
    rows = orders(1_000)
    return rows.assign(
        postcode=[f"{n % 40:05}" for n in range(len(rows))],  # 00007: no number
        batch=[f"{10**19 + n % 30}" for n in range(len(rows))],  # no 64 bits hold it
        pays=np.where(rows["price"] > 40, "Yes", "No"),  # no boolean
        ordered_at=rows["ordered_at"].dt.strftime("%Y-%m-%dT%H:%M:%SZ"),
        updated_at=rows["updated_at"].dt.strftime("%d/%m/%Y"),  # no date that is read in one way
    )


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl", "jsonl.gz"])
def test_the_types_that_the_suite_names_are_those_of_the_snapshot(
    tmp_path: Path, suffix: str
) -> None:
    data, project = tmp_path / "data", tmp_path / "project"
    data.mkdir()
    for number, part in enumerate(np.array_split(np.arange(1_000), 2)):
        rows, file = coded().iloc[part], data / f"{number}.{suffix}"
        if suffix.startswith("jsonl"):
            rows.to_json(file, orient="records", lines=True)
        else:
            rows.to_csv(file, index=False)
    found = written(data, project).proposal.sample.types
    snapshot = snapshot_types(project)
    assert found == snapshot
    suite = json.loads((project / "expectations.json").read_text())
    named = {
        e["kwargs"]["column"]: e["kwargs"]["type_list"]
        for e in suite["expectations"]
        if e["type"] == "expect_column_values_to_be_in_type_list"
    }
    assert {"ordered_at", "postcode", "pays", "price"} <= set(named)
    assert [c for c, allowed in named.items() if snapshot[c] not in allowed] == []
    assert [c for c in ("postcode", "batch", "pays", "updated_at") if found[c] != "VARCHAR"] == []


def snapshot_types(project: Path) -> dict[str, str]:
    """The columns of the snapshot that a run of a project takes, with their DuckDB types."""
    opened = open_project(project)
    settings, cache = opened.settings.data, Cache(project / "cache")
    source = open_source(opened.data_source)
    taken = take_snapshot(source, settings=settings, before=None, cache=cache)
    objects = fetch_objects(taken.manifest, settings, cache)
    refuse_mixed_schemas(objects)
    with open_tables(settings, readable=[cache.folder], scratch=project / "scratch") as connection:
        add_view(connection, "rows", objects)
        return columns_of(connection, "rows")
