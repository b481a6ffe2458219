"""Stalls, waits and prints that were planted are found by file and line; a sound task has none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.training_core.profiling.profiled import HERE, Stalling, line_of, planned
from training_core.profiling.advice import bars
from training_core.profiling.profile import profile
from training_core.profiling.result import Profile

STEPS = 30


@pytest.fixture(scope="module")
def stalled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, Path]:
    """The profile of the task with everything planted, and its trace."""
    trace = tmp_path_factory.mktemp("trace") / "trace.json.gz"
    return profile(planned(Stalling()), trace_file=trace, steps=STEPS), trace


@pytest.fixture(scope="module")
def sound() -> Profile:
    """The profile of a sound task."""
    return profile(planned(), steps=STEPS)


def test_what_makes_the_host_wait_is_found_by_line_and_counted_by_step(
    stalled: tuple[Profile, Path],
) -> None:
    found = {(s.place.line, s.kind): s.times for s in stalled[0].syncs}
    assert found == {
        (line_of("item"), "a value is read"): 1.0,
        (line_of("print"), "something is written"): 1.0,
        (line_of("mask"), "a shape depends on values"): 1.0,
        (line_of("cpu"), "a tensor is brought to the host"): 1.0,
    }
    assert {s.place.file for s in stalled[0].syncs} == {str(HERE)}
    assert any("item" in s.place.code for s in stalled[0].syncs)


def test_a_slow_augmentation_bounds_the_step_and_its_line_is_named(
    stalled: tuple[Profile, Path],
) -> None:
    found = stalled[0]
    assert found.bound == "input"
    first = found.hot[0]
    assert (first.phase, first.place.line) == ("augmentation", line_of("augmentation"))
    longest = bars(planned(Stalling()), found)[0]
    assert longest.name == "augmentation"
    assert f"{HERE}:{line_of('augmentation')} takes most" in longest.words


def test_a_feed_that_sleeps_is_found_by_its_line() -> None:
    found = profile(planned(sleeping=True), steps=STEPS)
    assert found.bound == "input"
    assert (found.hot[0].phase, found.hot[0].place.line) == ("input", line_of("feed"))
    assert found.syncs == []


def test_a_sound_task_is_accused_of_nothing(sound: Profile) -> None:
    assert sound.syncs == []
    assert [h for h in sound.hot if h.phase in ("input", "augmentation", "copy")] == []


def test_bars_and_shares_add_up_to_the_step(stalled: tuple[Profile, Path], sound: Profile) -> None:
    for found in (stalled[0], sound):
        assert sum(found.bars.values()) == pytest.approx(found.seconds)
        assert sum(found.limits.values()) == pytest.approx(1.0)
        assert min(found.limits.values()) >= 0


def test_the_trace_is_what_perfetto_reads(stalled: tuple[Profile, Path]) -> None:
    with gzip.open(stalled[1]) as file:
        events = json.load(file)["traceEvents"]
    names = {event.get("name") for event in events}
    assert {"evertrain: augmentation", "evertrain: forward", "aten::addmm"} <= names


def test_the_memory_is_that_of_the_network_and_its_optimiser(sound: Profile) -> None:
    assert sound.memory.weights == sound.memory.gradients == 4 * sound.parameters
    assert sound.memory.optimiser >= 2 * sound.memory.weights  # Adam's two moments
    assert sound.memory.activations > 128 * 16 * 4  # at least one hidden layer of the batch
