"""The proof of clean flights in its short form: two months, two drawn ones, and one that is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.flights_example import prepare
from tests.proofs.clean_flights import UNTRAINED, Project, draw, prove

pytestmark = pytest.mark.slow


def test_clean_months_pass_and_are_counted(tmp_path: Path) -> None:
    figures = prove(2, tmp_path, months=(2, 3))
    assert (figures["months"], figures["months_stopped"]) == (2, 0)
    assert (figures["drawn"], figures["drawn_stopped"]) == (2, 0)


def test_a_month_that_is_not_clean_is_stopped(tmp_path: Path) -> None:
    rows = prepare.build(prepare.source_folder())
    project = Project(tmp_path, rows)
    february = rows[rows["date"].str[5:7] == "02"]
    stopped, _ = project.arrive(2, february.assign(late=1 - february["late"]), UNTRAINED)
    assert "late" in stopped
    assert project.arrive(2, february, UNTRAINED)[0] == "", "what came before left no trace"


def test_a_drawn_month_has_its_days_and_flights_of_its_own() -> None:
    rows = prepare.build(prepare.source_folder())
    march = rows[rows["date"].str[5:7] == "03"]
    drawn = draw(march, np.random.default_rng(0))
    assert sorted(drawn["date"].unique()) == sorted(march["date"].unique())
    assert not drawn.duplicated(prepare.ROW_KEY).any()
    own = march.groupby("date")["weekday"].first()
    assert (drawn["date"].map(own) == drawn["weekday"]).all(), "a day replaces one of its weekday"
    local = drawn["time_hour"].dt.tz_convert("America/New_York").dt.strftime("%Y-%m-%d")
    assert (local == drawn["date"]).mean() > 0.99
