"""Slices: what is weak is found, what is chance is not called weak."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.decision_figures import SliceFigure
from components.common.decision_settings import DecisionSettings
from components.common.resampling import Noise
from components.evaluate_model.comparing import Holdout, Models
from components.evaluate_model.slice_figures import find_slices, slice_figures
from components.evaluate_model.slices import declared

ROWS, DAYS = 6000, 30


def table(seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "carrier": random.choice(["AA", "UA", "B6"], ROWS, p=[0.5, 0.3, 0.2]),
            "distance": random.gamma(2.0, 500.0, ROWS),
            "id": [f"row {i}" for i in range(ROWS)],
            "parts": [np.array([1, 2])] * ROWS,  # as Parquet hands out lists
        }
    )


def models(rows: pd.DataFrame, *, worse: Any = None, seed: int = 0) -> Models:
    """Challenger and champion alike, but for the rows where the challenger is worse."""
    random = np.random.default_rng(seed)
    chance = random.beta(2, 2, ROWS)
    truth = (random.random(ROWS) < chance).astype(np.float32)
    champion = np.clip(chance + random.normal(0, 0.05, ROWS), 0.02, 0.98)
    challenger = np.clip(chance + random.normal(0, 0.05, ROWS), 0.02, 0.98)
    if worse is not None:
        challenger = np.where(worse, 1 - challenger, challenger)
    days = np.arange(ROWS) * DAYS // ROWS
    return Models(
        Holdout("binary", truth, days, rows),
        {"challenger": challenger, "champion": champion},
        resamples=400,
    )


def judged(given: Models, **settings: Any) -> list[SliceFigure]:
    rule = DecisionSettings(retraining_noise=0, **settings)
    slices = find_slices(given, rule, without=[])
    return slice_figures(given, slices, rule, confidence=0.95, noise=Noise(0.0))


def test_each_frequent_value_and_each_quarter_of_numbers_is_a_slice() -> None:
    found = declared(table(), ["carrier", "distance"])
    assert [s.words for s in found[:3]] == ["carrier = AA", "carrier = UA", "carrier = B6"]
    assert sum(len(s.rows) for s in found[:3]) == ROWS
    quarters = found[3:]
    assert len(quarters) == 4
    assert sum(len(s.rows) for s in quarters) == ROWS
    assert all(s.words.startswith("distance from ") for s in quarters)


def test_missing_values_are_a_slice_of_their_own_and_rare_ones_none() -> None:
    rows = table().assign(carrier=lambda t: t.carrier.mask(t.index < 60))
    rows.loc[60:70, "carrier"] = "ZZ"
    words = [s.words for s in declared(rows, ["carrier"])]
    assert "carrier is missing" in words
    assert "carrier = ZZ" not in words


def test_a_slice_that_is_worse_is_shown_to_be() -> None:
    rows = table()
    worse = (rows.carrier == "B6").to_numpy()
    found = judged(models(rows, worse=worse), slices=["carrier"], search_slices=False)
    assert {s.words: s.outcome for s in found}["carrier = B6"] == "fail"
    assert {s.words: s.outcome for s in found}["carrier = AA"] != "fail"
    assert found[0].words == "carrier = B6", "the worst comes first"


def test_the_search_finds_the_weak_corner_and_says_where_it_is() -> None:
    rows = table()
    worse = ((rows.carrier == "UA") & (rows.distance > 1200)).to_numpy()
    found = [s for s in judged(models(rows, worse=worse)) if s.outcome == "fail"]
    assert found
    assert all(s.source == "search" for s in found)
    assert any("carrier is UA" in s.words and "distance above" in s.words for s in found)


def test_rows_that_found_a_slice_do_not_judge_it() -> None:
    rows = table()
    given = models(rows, worse=(rows.carrier == "UA").to_numpy())
    rule = DecisionSettings(retraining_noise=0)
    for part in find_slices(given, rule, without=[]):
        days = np.unique(given.draws.codes[part.rows])
        assert len(days) <= DAYS / 2


def test_among_models_that_are_alike_a_slice_is_rarely_called_worse() -> None:
    """40 pairs, seven slices each: at 95 % for all together, about one pair in forty."""
    rows = table()
    alarms = 0
    for seed in range(40):
        found = judged(models(rows, seed=seed), slices=["carrier", "distance"], slice_margin=0.0)
        alarms += any(s.outcome == "fail" for s in found)
    assert alarms <= 5


def test_a_text_that_does_not_recur_names_no_slice() -> None:
    rows = table().assign(date=[f"2013-05-{1 + i * DAYS // ROWS:02}" for i in range(ROWS)])
    bad_days = ~rows.date.isin([f"2013-05-{day:02}" for day in range(1, 31, 4)]).to_numpy()
    assert not any("date is" in s.words for s in judged(models(rows, worse=bad_days)))


def test_columns_that_name_rows_or_hold_lists_are_not_searched() -> None:
    rows = table()
    given = models(rows, worse=(np.arange(ROWS) % 7 == 0))
    assert not any("id is" in s.words or "parts" in s.words for s in judged(given))


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyError, match="colour"):
        declared(table(), ["colour"])
