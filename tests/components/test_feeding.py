"""The train split as a feed: in memory, or in blocks on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from components.train_distributed.feeding import train_feed
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
