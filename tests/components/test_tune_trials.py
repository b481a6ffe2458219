"""The trials of a study on a store: which come first, and that each is counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.common.tune_settings import TuneSettings
from components.tune.space import Dimension, Space
from components.tune.storage import open_study
from components.tune.trials import MOST_ATTEMPTS, Trials
from infra.folder import FolderStore

LR = Dimension("training.optimiser.lr", "nuisance", 0.01, low=1e-4, high=1.0, log=True)
NAME = Dimension("training.optimiser.name", "scientific", "adam", choices=("adam", "sgd"))
SPACE = Space((LR, NAME), {})


def opened(tmp_path: Path, **more: object) -> Trials:
    """The study, as another process would open it."""
    settings = TuneSettings.model_validate({"trials": 16, "pruning": "none", **more})
    return Trials(open_study(FolderStore(tmp_path), "s", prefix="tune/s/journal"), SPACE, settings)


def finish(trials: Trials, number: int, value: float) -> None:
    trials.tell(number, {"ended": "finished", "value": value, "best_step": 1})


def test_what_is_there_comes_first_then_points_spread_evenly_then_proposals(
    tmp_path: Path,
) -> None:
    trials = opened(tmp_path)
    for number in range(16):
        trial = trials.ask()
        assert trial.number == number
        finish(trials, number, abs(LR.place(trial.values[LR.path]) - 0.7))
    found = trials.all()
    assert [t.sampler for t in found] == ["present"] + ["quasi_random"] * 8 + ["bayesian"] * 7
    assert found[0].values == {LR.path: 0.01, NAME.path: "adam"}
    spread = sorted(LR.place(t.values[LR.path]) for t in found[1:9])
    assert [int(8 * place) for place in spread] == list(range(8)), "one in each eighth: Sobol"
    assert sum(t.values[NAME.path] == "sgd" for t in found[1:9]) == 4
    late = [abs(LR.place(t.values[LR.path]) - 0.7) for t in found[9:]]
    assert sorted(late)[len(late) // 2] < 0.2, "they gather where it is good"


def test_a_search_that_goes_on_asks_for_what_it_would_have_asked_for(tmp_path: Path) -> None:
    whole = opened(tmp_path / "whole")
    for number in range(12):
        whole.ask()
        finish(whole, number, 0.1 * number)
    for number in range(12):
        again = opened(tmp_path / "again")  # a new process each time
        assert again.ask().values == whole.all()[number].values
        finish(again, number, 0.1 * number)


def test_a_trial_left_running_goes_on_and_is_counted_once(tmp_path: Path) -> None:
    trials = opened(tmp_path)
    asked = trials.ask()
    trials.begun(asked.number)
    assert trials.evaluation(asked.number, 1, 0.5) is False
    after = opened(tmp_path)
    assert [t.number for t in after.orphans()] == [0]
    assert after.orphans()[0].values == asked.values
    after.evaluation(0, 1, 0.7)  # told again by the training that goes on: the first one stays
    after.evaluation(0, 2, 0.6)
    finish(after, 0, 0.6)
    finish(after, 0, 0.1)  # and an end is one as well
    assert opened(tmp_path).orphans() == []
    assert [(t.number, t.ended, t.value) for t in opened(tmp_path).all()] == [(0, "finished", 0.6)]
    frozen = open_study(FolderStore(tmp_path), "s", prefix="tune/s/journal").trials[0]
    assert frozen.intermediate_values == {1: 0.5, 2: 0.6}


@pytest.mark.parametrize("entries", range(1, 12))
def test_killed_after_any_entry_a_search_counts_nothing_twice(tmp_path: Path, entries: int) -> None:
    """A journal that was cut anywhere, as a kill -9 cuts it."""
    trials = opened(tmp_path, trials=2)
    for number in range(2):
        trials.ask()
        trials.begun(number)
        finish(trials, number, 0.5)
    for file in sorted((tmp_path / "tune/s/journal").iterdir())[entries:]:
        file.unlink()
    after = opened(tmp_path, trials=2)
    ended = {t.number for t in after.all() if t.ended == "finished"}
    for orphan in after.orphans():
        assert orphan.number not in ended
        finish(after, orphan.number, 0.5)
    while after.ended < 2:
        finish(after, after.ask().number, 0.5)
    found = opened(tmp_path, trials=2).all()
    assert [t.ended for t in found] == ["finished"] * 2
    assert sum(t.sampler == "present" for t in found) == 1
    assert found[0].values == {LR.path: 0.01, NAME.path: "adam"}


def test_a_trial_whose_process_dies_each_time_is_failed_in_the_end(tmp_path: Path) -> None:
    trials = opened(tmp_path)
    trials.ask()
    for _ in range(MOST_ATTEMPTS):
        assert [t.number for t in trials.orphans(only=0)] == [0]
        trials.begun(0)
    assert trials.orphans(only=0) == []
    assert trials.all()[0].ended == "failed"
    assert "died" in trials.all()[0].reason


def test_trials_worse_than_half_of_the_others_end_early_but_not_the_present_one(
    tmp_path: Path,
) -> None:
    trials = opened(tmp_path, pruning="median", spared=1, unpruned=3)
    for number in range(5):
        trials.ask()
        for rung in (1, 2, 3):
            trials.evaluation(number, rung, 0.5)
        finish(trials, number, 0.5)
    bad = trials.ask().number
    assert trials.evaluation(bad, 1, 0.9) is False, "spared"
    assert trials.evaluation(bad, 2, 0.9) is True
    good = trials.ask().number
    assert trials.evaluation(good, 2, 0.1) is False

    first = opened(tmp_path / "other", pruning="halving", spared=1)
    first.ask()
    assert not any(first.evaluation(0, rung, 9.9) for rung in (1, 4, 16))


def test_importance_is_that_of_the_setting_that_matters(tmp_path: Path) -> None:
    trials = opened(tmp_path, trials=16, quasi_random=1.0)
    for number in range(16):
        finish(trials, number, (LR.place(trials.ask().values[LR.path]) - 0.5) ** 2)
    found = trials.importances()
    assert found[LR.path] > 0.8 > found[NAME.path]
