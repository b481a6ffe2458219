"""Healthy tasks learn, planted bugs train without an error, and the catalogue is in step."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pytest

from tests.planted_bugs.bugs import BUGS
from tests.planted_bugs.catalogue import PAGE, page
from tests.planted_bugs.contract import Bug, Healthy
from tests.planted_bugs.healthy import HEALTHY
from tests.planted_bugs.planting import edited
from training_core.checks.catalogue import CHECKS
from training_core.checks.subject import Subject
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.settings import StoppingSettings


def train(subject: Subject, *, steps: int) -> float:
    """Train with the trainer itself; return the loss of the validation rows."""
    settings = subject.training.model_copy(update={"stopping": StoppingSettings(max_steps=steps)})
    trainer = Trainer(
        task=subject.task,
        model=subject.build(),
        train=subject.examples,
        validation=subject.held_back,
        settings=settings,
        strategy=SingleProcess(subject.device),
    )
    return trainer.fit().evaluations[-1][1]["loss"]


@pytest.mark.smoke
@pytest.mark.parametrize("healthy", HEALTHY, ids=lambda healthy: healthy.name)
def test_a_healthy_task_learns(healthy: Healthy) -> None:
    subject = healthy.subject(seed=3)
    curve = subject.train_briefly(subject.examples, steps=40).curve
    losses = [loss for _, loss in curve]
    assert all(map(math.isfinite, losses))
    assert sum(losses[-10:]) < 0.97 * sum(losses[:10])


@pytest.mark.smoke
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_trains_without_an_error(bug: Bug) -> None:
    with bug.planted():
        assert math.isfinite(train(bug.subject(), steps=3))


def test_every_bug_changes_something() -> None:
    for bug in BUGS:
        changes = (bug.task, bug.rows, bug.validation, bug.training, bug.planted is not nullcontext)
        assert any(changes), bug.name
        assert bug.task is not bug.host.task


def test_every_name_is_there_once() -> None:
    names = [each.name for each in (*BUGS, *HEALTHY)]
    assert len(set(names)) == len(names)
    assert len(BUGS) >= 46
    assert len(HEALTHY) >= 12


def test_bugs_are_to_be_found_by_checks_that_there_are_and_every_check_finds_one() -> None:
    checks = {check.name for check in CHECKS}
    named = {name for bug in BUGS for name in bug.found_by}
    assert not named - checks
    # they propose and picture: what they look at is no bug
    assert not checks - named - {"batch_size_and_speed", "prediction_dynamics"}


def test_an_edit_changes_a_function_wherever_it_is_known_and_leaves_no_trace() -> None:
    before = _sample()
    with edited(_sample, "1 + 1", "1 + 2"):
        assert _sample() == 3
    assert _sample() == before == 2


def test_an_edit_of_a_line_that_is_not_there_is_refused() -> None:
    with pytest.raises(AssertionError, match="has 0 times"), edited(_sample, "2 + 2", "5"):
        pass


def test_the_page_is_what_the_catalogue_writes() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.planted_bugs.catalogue"


def _sample() -> int:
    return 1 + 1
