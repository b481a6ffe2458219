"""What checks may take: none trains so long that the others find no time left."""

from __future__ import annotations

import time
from typing import ClassVar

import check_dynamics_samples as samples

from components.check_training.recording import figures_of
from components.report_run import check_words
from training_core.checks.catalogue import CHECKS
from training_core.checks.contract import Check, Finding
from training_core.checks.runner import make
from training_core.checks.subject import Subject


class _Trains(Check):
    name = "trains"
    looks_at = "nothing"
    costs = "training"
    takes: ClassVar[float] = 0.0

    def look(self, subject: Subject) -> Finding:
        time.sleep(self.takes)
        return self.passed("made")


class _TrainsLong(_Trains):
    name = "trains_long"
    takes = 0.2


def test_a_short_training_of_a_slow_network_has_fewer_steps() -> None:
    made = samples.subject(checks={"input_steps": 300, "seconds": 90})
    made.seconds_a_step = 0.1
    assert made.short_steps == 90
    other = samples.subject(checks={"input_steps": 300})
    other.seconds_a_step = 5.0
    assert other.short_steps == 60
    fast = samples.subject(checks={"input_steps": 80})
    assert fast.short_steps == 80


def test_checks_that_train_have_half_of_the_time_however_long_the_others_took() -> None:
    made = samples.subject(checks={"seconds": 0.3})
    made._began -= 1000  # as if that long ago
    assert [make(check, made).verdict for check in (_TrainsLong(), _Trains())] == [
        "pass",
        "skipped",
    ]


def test_what_costs_little_comes_first_and_what_is_easiest_spared_last() -> None:
    costs = [check.costs for check in CHECKS]
    assert costs == sorted(costs)
    assert CHECKS[-1].name == "simple_model_ahead"


def test_what_was_not_made_is_said_by_name_with_the_reason_and_what_to_set() -> None:
    made = samples.subject(checks={"levels": {"trains": "off"}})
    made._began -= 1000
    made.training_seconds = 1000
    found = figures_of([make(_TrainsLong(), made), make(_Trains(), made)])
    assert check_words.not_made(found) == (
        "1 check was not made (the 90 seconds of checks.seconds are used up: raise it): "
        "trains_long; 1 check was not made (switched off in checks.levels): trains"
    )
    assert "2 not made" in check_words.summary(found)


def test_the_share_of_a_plan_is_said_of_long_plans_only() -> None:
    found = figures_of([make(_Trains(), samples.subject())]).model_copy(update={"seconds": 40.0})
    short, long = (found.model_copy(update={"planned_seconds": s}) for s in (2.7, 3600.0))
    assert "training is expected to take 2.7 s" in check_words.share_of_plan(short)
    assert "%" not in check_words.share_of_plan(short)
    assert "1.1 %" in check_words.share_of_plan(long)
