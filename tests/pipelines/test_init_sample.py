"""What `evertrain init` reads of the data, and that it reads the same each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from init_samples import decided, orders, proposed, write

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
            "price is missing in 1 objects, for example part-9.parquet"
        ]
