"""The proof of bad data in its short form: one kind of each outcome, and clean months."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corruptions.benign import BENIGN
from tests.corruptions.catalogue import CORRUPTIONS
from tests.corruptions.clean_feed import clean_month
from tests.corruptions.kinds import Corruption, without_trained_checks
from tests.proofs.bad_data import prove, resample

pytestmark = pytest.mark.slow
QUICK = [without_trained_checks()]


def test_each_outcome_is_recognised_and_clean_months_pass(tmp_path: Path) -> None:
    kinds = [named(name) for name in ("sensor_stuck", "few_outliers", "category_renamed")]
    figures = prove(1, tmp_path, resamples=3, corruptions=kinds, benign=BENIGN[:1], settings=QUICK)
    assert figures == {"kinds": 3, "handled": 3, "clean": 4, "false_alarms": 0}


def test_what_is_not_handled_is_not_counted(tmp_path: Path) -> None:
    """A corruption that changes nothing, and a change that is not harmless."""
    stuck = named("sensor_stuck")
    harmless = Corruption(**{**vars(stuck), "spoil": lambda feed: None})
    bad = BENIGN[0].__class__("not_harmless", stuck.spoil, why="")
    figures = prove(1, tmp_path, resamples=0, corruptions=[harmless], benign=[bad], settings=QUICK)
    assert figures == {"kinds": 1, "handled": 0, "clean": 1, "false_alarms": 1}


def test_a_resampled_month_has_the_days_of_a_month_and_its_late_labels() -> None:
    clean = clean_month(4)
    month = resample(clean, np.random.default_rng(1))
    days = month["ordered"].dt.day
    assert sorted(days.unique()) == list(range(1, 31))
    assert month["late"].isna().eq(days > 28).all()
    assert month["weight"].isin(clean["weight"]).mean() > 0.5
    assert month["id"].is_unique
    assert not month.duplicated(["customer", "ordered"]).any()


def named(name: str) -> Corruption:
    return next(each for each in CORRUPTIONS if each.name == name)
