"""Examples on disk: written bit by bit, mapped, and refused when they are not whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from feed_contract import numbered, write_arrow

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.arrow import open_arrow
from training_core.feeds.batches import Sharing
from training_core.feeds.blocks import BLOCK_BYTES, BlockFeed
from training_core.feeds.npy import open_blocks, write_blocks

ALONE = Sharing.of(batch_size=256, microbatches=1, rank=0, world_size=1, seed=0)


def test_written_blocks_are_plain_npy_files_of_all_chunks(tmp_path: Path) -> None:
    parts = [numbered(5, units=True), numbered(0, units=True), numbered(300, first=5, units=True)]
    assert write_blocks(tmp_path, parts) == 305
    whole = numbered(305, units=True)
    assert np.array_equal(np.load(tmp_path / "array-pair.npy"), whole.arrays["pair"].numpy())
    assert np.array_equal(np.load(tmp_path / "target.npy"), whole.target.numpy())
    assert whole.units is not None
    assert np.array_equal(np.load(tmp_path / "units.npy"), whole.units.numpy())


@pytest.mark.parametrize("target", [torch.arange(600) % 7, torch.arange(1200).view(600, 2)])
def test_classes_and_tokens_come_back_as_the_whole_numbers_they_were(
    tmp_path: Path, target: torch.Tensor
) -> None:
    whole = numbered(600)
    write_blocks(tmp_path, [Examples(whole.arrays, target)])
    feed = BlockFeed([open_blocks(tmp_path)])
    steps = feed.steps(ALONE, samples=0)
    parts = [step.microbatches[0].examples.target.clone() for step in islice(steps, 3)]
    steps.close()
    read = torch.cat(parts)
    assert read.dtype == torch.int64
    assert sorted(read.flatten().tolist()) == sorted(target.flatten().tolist())


def test_a_folder_whose_writing_was_cut_off_holds_nothing(tmp_path: Path) -> None:
    write_blocks(tmp_path, [numbered(5)])

    def breaking() -> Iterator[Examples]:
        yield numbered(7)
        raise OSError("the source went away")

    with pytest.raises(OSError, match="went away"):
        write_blocks(tmp_path, breaking())
    with pytest.raises(ConfigurationError, match=r"manifest\.json cannot be read.*\n\nhint: write"):
        open_blocks(tmp_path)


def test_a_file_that_lost_rows_is_named(tmp_path: Path) -> None:
    write_blocks(tmp_path, [numbered(50)])
    file = tmp_path / "array-pair.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ConfigurationError, match=r"array-pair\.npy cannot be read"):
        open_blocks(tmp_path)
    np.save(file, np.zeros((49, 2), np.float32))
    with pytest.raises(
        ConfigurationError, match=r"array-pair\.npy has 49 rows, the manifest .* 50"
    ):
        open_blocks(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"row": torch.zeros(2, 3)}, "chunks differ"),
        ({"row": torch.zeros(2, dtype=torch.float64)}, "chunks differ"),
        ({"other": torch.zeros(2)}, "chunks differ"),
        ({"not a name": torch.zeros(2)}, "cannot be an argument"),
    ],
)
def test_chunks_that_do_not_fit_together_are_refused(
    tmp_path: Path, arrays: dict[str, torch.Tensor], words: str
) -> None:
    good = Examples({"row": torch.zeros(2)}, torch.zeros(2))
    with pytest.raises(ConfigurationError, match=words):
        write_blocks(tmp_path, [good, Examples(arrays, torch.zeros(2))])
    assert not (tmp_path / "manifest.json").exists()


def test_a_type_that_numpy_lacks_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    examples = Examples({"x": torch.zeros(2, dtype=torch.bfloat16)}, torch.zeros(2))
    with pytest.raises(ConfigurationError, match=r"array-x: numpy has no type torch\.bfloat16"):
        write_blocks(tmp_path, [examples])


def test_files_with_other_columns_are_not_mixed(tmp_path: Path) -> None:
    write_blocks(tmp_path / "a", [numbered(5)])
    write_blocks(tmp_path / "b", [numbered(5, units=True)])
    with pytest.raises(ConfigurationError, match="columns differ between files"):
        BlockFeed([open_blocks(tmp_path / "a"), open_blocks(tmp_path / "b")])


def test_a_step_mixes_rows_from_many_places_of_the_files(tmp_path: Path) -> None:
    count = 60 * BLOCK_BYTES // 20
    write_blocks(tmp_path, [numbered(count)])
    feed = BlockFeed([open_blocks(tmp_path)])
    for step in islice(feed.steps(ALONE, samples=0), 3):
        blocks = step.microbatches[0].examples.arrays["row"] // (BLOCK_BYTES // 20)
        assert len(blocks.unique()) > 20  # of the 32 of a window


def test_arrow_columns_are_mapped_without_a_copy(tmp_path: Path) -> None:
    write_arrow(tmp_path / "a.arrow", numbered(20))
    before = pa.total_allocated_bytes()
    segments = open_arrow(tmp_path / "a.arrow")
    assert [segment.count for segment in segments] == [7, 7, 6]
    assert pa.total_allocated_bytes() == before
    assert not any(column.flags.owndata for segment in segments for column in segment.columns)


def test_an_arrow_file_that_cannot_be_fed_is_refused_in_words(tmp_path: Path) -> None:
    file = tmp_path / "a.arrow"

    def refused(table: pa.Table) -> str:
        with pa.ipc.new_file(str(file), table.schema) as writer:
            writer.write_table(table)
        with pytest.raises(ConfigurationError) as error:
            open_arrow(file)
        return str(error.value)

    assert "no column 'target'; it has: x" in refused(pa.table({"x": [1.0]}))
    assert "column 'x' has 1 nulls" in refused(pa.table({"x": [1.0, None], "target": [0.0, 1.0]}))
    assert "column 'x' is string" in refused(pa.table({"x": ["a"], "target": [0.0]}))
    file.write_bytes(b"not arrow")
    with pytest.raises(ConfigurationError, match="cannot be read as an Arrow IPC file"):
        open_arrow(file)


def test_a_compressed_arrow_file_is_refused_since_it_cannot_be_mapped(tmp_path: Path) -> None:
    write_arrow(tmp_path / "a.arrow", numbered(20_000), compression="zstd")
    with pytest.raises(ConfigurationError, match="compressed"):
        open_arrow(tmp_path / "a.arrow")
