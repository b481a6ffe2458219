"""The train split as a feed: in memory, or in blocks on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from components.train_distributed.feeding import train_feed
from training_core.errors import ConfigurationError
from training_core.feeds.batches import Feed, Sharing
from training_core.parallel.single import SingleProcess
from training_core.settings import TrainingSettings
from training_core.tabular import TabularPreprocessor
from training_core.task import BinaryTask, Preprocessor

ROWS = 1_000


class Clicks(BinaryTask):
    label = "clicked"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["country"], numbers=["age"])

    def build_model(self, preprocessor: Preprocessor) -> torch.nn.Module:
        return torch.nn.Identity()  # nothing is trained here


def _split(folder: Path) -> Path:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "country": random.choice(["fr", "jp"], ROWS),
            "age": np.arange(ROWS, dtype=float),
            "clicked": random.integers(0, 2, ROWS).astype(float),
        }
    )
    frame.to_parquet(folder / "train.parquet")
    return folder / "train.parquet"


def _epoch(feed: Feed) -> tuple[torch.Tensor, torch.Tensor]:
    """Ages and labels of one epoch, in order of age."""
    sharing = Sharing.of(batch_size=64, microbatches=1, rank=0, world_size=1, seed=0)
    ages, labels = [], []
    for batch in feed.steps(sharing, samples=0):
        examples = batch.microbatches[0].examples
        ages.append(examples.arrays["numbers"][:, 0].clone())
        labels.append(examples.target.clone())
        if batch.samples_after == len(feed):
            break
    order = torch.cat(ages).argsort()
    return torch.cat(ages)[order], torch.cat(labels)[order]


def test_blocks_on_disk_hold_what_memory_holds_and_are_written_once(tmp_path: Path) -> None:
    file, strategy = _split(tmp_path), SingleProcess(torch.device("cpu"))

    def feed(data: str) -> Feed:
        settings = TrainingSettings.model_validate({"data": data})
        return train_feed(Clicks(), file, settings, strategy, tmp_path / "cache")[0]

    memory, disk = feed("memory"), feed("disk")
    assert len(memory) == len(disk) == ROWS
    for one, other in zip(_epoch(memory), _epoch(disk), strict=True):
        assert torch.equal(one, other)
    blocks = {p: p.stat().st_mtime_ns for p in (tmp_path / "cache").rglob("*") if p.is_file()}
    assert blocks
    assert len(feed("disk")) == ROWS
    assert {p: p.stat().st_mtime_ns for p in blocks} == blocks


def test_blocks_that_were_not_finished_are_written_again(tmp_path: Path) -> None:
    file, strategy = _split(tmp_path), SingleProcess(torch.device("cpu"))
    settings = TrainingSettings(data="disk")
    whole = _epoch(train_feed(Clicks(), file, settings, strategy, tmp_path / "cache")[0])
    (manifest,) = (tmp_path / "cache").rglob("*.json")
    manifest.unlink()
    again = _epoch(train_feed(Clicks(), file, settings, strategy, tmp_path / "cache")[0])
    assert all(torch.equal(one, other) for one, other in zip(whole, again, strict=True))


# ---- sampling ----------------------------------------------------------------------------------


def _sampled(tmp_path: Path, data: str, **sampling: object) -> torch.Tensor:
    """How often an epoch draws each row of ROWS, oldest first, a day apart."""
    frame = pd.DataFrame(
        {
            "country": "fr",
            "age": np.arange(ROWS, dtype=float),
            "clicked": (np.arange(ROWS) % 10 == 0).astype(float),
            "when": pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(ROWS), unit="D"),
            "weight": np.arange(ROWS) % 3,
            "words": [("a " * (row % 100)).split() for row in range(ROWS)],
        }
    )
    frame.to_parquet(tmp_path / "train.parquet")
    settings = TrainingSettings.model_validate({"data": data, "epochs": 4, "sampling": sampling})
    feed, preprocessor = train_feed(
        Clicks(), tmp_path / "train.parquet", settings, SingleProcess(torch.device("cpu")),
        tmp_path / "cache", time_column="when",
    )  # fmt: skip
    ages, _ = _epoch(feed)
    scaled = torch.from_numpy(preprocessor.transform(frame)["numbers"][:, 0])
    return torch.bincount(torch.searchsorted(scaled, ages), minlength=ROWS)


@pytest.mark.parametrize("data", ["memory", "disk"])
def test_rows_are_drawn_by_columns_of_the_raw_table(tmp_path: Path, data: str) -> None:
    row = torch.arange(ROWS)
    weighted = _sampled(tmp_path, data, weight_column="weight")
    assert [int(weighted[row % 3 == k].sum()) for k in range(3)] == pytest.approx(
        [0, ROWS / 3, 2 * ROWS / 3], abs=6
    )
    recent = _sampled(tmp_path, data, half_life_days=100)
    shares = [int(recent[ROWS - 100 * k - 100 : ROWS - 100 * k].sum()) for k in range(3)]
    assert shares[1] / shares[0] == pytest.approx(0.5, abs=0.03)
    assert shares[2] / shares[0] == pytest.approx(0.25, abs=0.03)
    balanced = _sampled(tmp_path, data, class_balance=1)
    assert int(balanced[row % 10 == 0].sum()) == pytest.approx(ROWS / 2, abs=6)
    short = _sampled(tmp_path, data, curriculum="length", difficulty_column="words")
    assert set(row[short > 0].remainder(100).tolist()) == set(range(30))
    easy = _sampled(tmp_path, data, curriculum="column", difficulty_column="age", start_share=0.1)
    assert set(row[easy > 0].tolist()) == set(range(100))
    assert int(easy.sum()) == ROWS


def test_columns_that_are_not_there_or_have_holes_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no column 'wait'; it has: country, age"):
        _sampled(tmp_path, "memory", weight_column="wait")
    with pytest.raises(ConfigurationError, match=r"'country', which has no value of use in 1000"):
        _sampled(tmp_path, "memory", weight_column="country")
