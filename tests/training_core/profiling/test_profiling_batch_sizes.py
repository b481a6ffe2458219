"""Which batch sizes fit, and which of them are fast."""

from __future__ import annotations

import pytest

import training_core.profiling.batch_sizes as module
from tests.training_core.profiling.profiled import planned
from training_core.errors import TrainingFailed
from training_core.profiling.batch_sizes import find_batch_sizes, growth, sizes_to_time
from training_core.profiling.throughput import Speed, knee


def speed(size: int, rate: float, more: int = 0) -> Speed:
    return Speed(size, size / rate, 0.0, more)


def test_sizes_are_doubled_around_the_planned_one_within_the_rows() -> None:
    assert sizes_to_time(128, 1000) == [16, 32, 64, 128, 256, 512]
    assert sizes_to_time(2, 5) == [2, 4]
    assert sizes_to_time(1024, 100) == [100]


def test_the_knee_is_the_smallest_with_nine_tenths_of_the_best() -> None:
    speeds = [speed(16, 100), speed(32, 190), speed(64, 200), speed(128, 195)]
    assert knee(speeds).batch_size == 32


def test_memory_grows_by_what_was_seen_or_by_what_forward_keeps() -> None:
    speeds = [speed(16, 1, 9000), speed(32, 1, 1600), speed(64, 1, 6400)]
    assert growth(speeds, kept=50.0) == 200.0
    assert growth(speeds, kept=500.0) == 500.0
    assert growth([], kept=7.0) == 7.0


def test_where_memory_is_no_limit_the_rows_are() -> None:
    found = find_batch_sizes(planned(count=600), seconds=0.02)
    assert (found.largest, found.limit) == (600, "rows")
    assert [s.batch_size for s in found.speeds] == [16, 32, 64, 128, 256, 512]
    assert found.knee in found.speeds
    assert found.bytes_an_example > 16 * 4  # at least a hidden layer


def test_where_little_is_free_the_largest_is_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    # the kernel's word alone is replaced: this machine's memory cannot be filled for a test
    monkeypatch.setattr(module, "free_bytes", lambda device: 200_000)
    found = find_batch_sizes(planned(count=2000), seconds=0.02)
    assert found.limit == "memory"
    assert found.largest == int(0.8 * 200_000 / found.bytes_an_example)
    assert all(s.batch_size * found.bytes_an_example <= 10 * 160_000 for s in found.speeds)
    monkeypatch.setattr(module, "free_bytes", lambda device: 100)
    with pytest.raises(TrainingFailed, match="not even a batch"):
        find_batch_sizes(planned(), seconds=0.02)
