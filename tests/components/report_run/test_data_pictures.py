"""Pictures of the data: every share at its height, whatever the bins."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_outline import check_pictures
from report_sample_data import bars, validation

from components.common.data_figures import Bars
from components.report_run.data_pictures import (
    CARD,
    MOST_BINS,
    TALL,
    column_card,
    drift_bars,
    is_cut,
    most_frequent,
    spark,
    together,
)

SHARES = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=60)


@given(SHARES, st.integers(1, 30))
def test_putting_bins_together_loses_no_row_and_leaves_few(shares: list[float], most: int) -> None:
    labels = [f"{i} to {i + 1}" for i in range(len(shares))]
    fewer = together(Bars(labels=labels, now=shares, before=shares[::-1]), most)
    assert len(fewer.labels) == len(fewer.now) == len(fewer.before) <= most
    assert sum(fewer.now) == pytest.approx(sum(shares))
    assert sum(fewer.before) == pytest.approx(sum(shares))
    assert fewer.labels[0].startswith("0 to ")
    assert fewer.labels[-1].endswith(f" to {len(shares)}")


def test_a_flat_histogram_stays_flat_when_bins_are_put_together() -> None:
    flat = Bars(labels=[f"{i} to {i + 1}" for i in range(48)], now=[1 / 48] * 48, before=[])
    assert set(together(flat, MOST_BINS).now) == {2 / 48}


def test_nulls_are_no_end_of_a_histograms_numbers_and_not_drawn_where_there_are_none() -> None:
    labels = [f"{i} to {i + 1}" for i in range(50)] + ["null"]
    none = Bars(labels=labels, now=[0.02] * 50 + [0.0], before=[0.02] * 50 + [0.0004])
    assert together(none, 10).labels[-1] == "45 to 50"
    some = Bars(labels=labels, now=[0.01] * 50 + [0.5], before=none.before)
    fewer = together(some, 10)
    assert fewer.labels[-2:] == ["45 to 50", "null"]
    assert (fewer.now[-1], fewer.before[-1]) == (0.5, 0.0004)
    seen = validation().drift[0].columns[0].model_copy(update={"bars": some})
    ticks = re.findall(r'class="tick"[^>]*>([^<]*)<', column_card(seen, "one"))
    assert ticks[-2:] == ["0", "50, null"]


def test_a_picture_whose_bars_are_cut_says_so() -> None:
    drift = validation().drift[0]
    assert not is_cut(drift)
    drift.columns[2].threshold = 2.6
    assert is_cut(drift)


def test_rare_categories_are_counted_as_others_but_a_new_one_that_is_frequent_is_not() -> None:
    few = most_frequent(bars("category", shift=1.0))
    assert few.labels == ["ZZ", "UA", "B6", "EV", "DL", "AA", "5 others"]
    assert sum(few.now) == pytest.approx(sum(bars("category", shift=1.0).now))
    assert few.before[0] == 0


def test_bins_that_do_not_match_are_not_drawn_against_each_other() -> None:
    odd = Bars(labels=["a", "b", "c"], now=[0.5, 0.5], before=[0.2, 0.3, 0.5])
    assert together(odd, 10) == Bars(labels=["a", "b"], now=[0.5, 0.5], before=[])
    wild = Bars(labels=["a", "b"], now=[float("nan"), 0.5], before=[float("inf"), -1.0])
    assert together(wild, 10) == Bars(labels=["a", "b"], now=[0.0, 0.5], before=[0.0, 0.0])


def test_a_sparkline_is_as_high_as_its_shares() -> None:
    shares = Bars(labels=["0 to 1", "1 to 2"], now=[0.5, 0.25], before=[0.0, 1.0])
    svg = ElementTree.fromstring(spark(shares, "number"))
    assert svg.get("viewBox") == f"0 0 2 {TALL}"
    now, before = (path.get("d") for path in svg)
    assert now == "M0 20V10h1V15h1V20z"
    assert before == "M0 20h1V0h1V20"
    apart = ElementTree.fromstring(spark(shares, "category"))
    assert apart[1].get("d") == "M0 20h.8M1 0h.8"
    assert spark(Bars(labels=[], now=[], before=[]), "number") == "–"


def test_the_bars_show_each_columns_own_threshold_and_its_level_as_shape_and_word() -> None:
    drawn = drift_bars(validation(broken=True).drift[0], "drift-0")
    check_pictures(drawn)
    wide = ElementTree.fromstring(re.findall(r"<svg.*?</svg>", drawn)[0])
    assert [u.get("href") for u in wide.iter("use")][:4] == [
        "#s-fail", "#s-warn", "#s-fail", "#s-pass",
    ]  # fmt: skip
    words = [t.text for t in wide.iter("text")]
    assert words[:4] == ["temperature", "0.412 blocks", "dew_point", "0.268 warns"]
    widths = [float(r.get("width", "")) for r in wide.iter("rect")]
    marks = [float(m.get("x1", "")) for m in wide.iter("line")]
    for bar, mark, column in zip(widths, marks, validation().drift[0].columns, strict=False):
        assert column.psi is not None
        assert column.threshold is not None
        assert (bar > mark - 220) == (column.psi > column.threshold)


def test_columns_whose_index_was_not_taken_get_no_bar() -> None:
    drift = validation().drift[0]
    for column in drift.columns[1:]:
        column.psi = None
    assert "dew_point" not in re.sub("<desc.*?</desc>", "", drift_bars(drift, "d"))
    drift.columns[0].psi = None
    assert drift_bars(drift, "d") == ""


@pytest.mark.parametrize("kind", ["number", "category", "time", "boolean"])
def test_a_columns_picture_is_drawn_inside_itself_and_says_what_it_shows(kind: str) -> None:
    column = validation().drift[0].columns[0].model_copy(update={"kind": kind})
    drawn = column_card(column, "card")
    check_pictures(drawn)
    svg = ElementTree.fromstring(drawn)
    height = float(svg.get("height", ""))
    for element in svg.iter():
        for name, limit in {"x": CARD, "x1": CARD, "y": height, "y1": height}.items():
            assert 0 <= float(element.get(name, "0")) <= limit
    said = svg.findtext("desc") or ""
    assert ("most rows are in" in said) == (kind in ("number", "time"))
    empty = column.model_copy(update={"bars": Bars(labels=[], now=[], before=[])})
    assert column_card(empty, "card") == ""
