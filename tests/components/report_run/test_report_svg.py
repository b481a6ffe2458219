"""Pictures: scales, ticks, and what is drawn where."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.report_run.charts import Series, line_chart
from components.report_run.intervals import Interval, interval_plot
from components.report_run.svg import Scale, nice_ticks, tag, thinned

FINITE = st.floats(-1e9, 1e9, allow_nan=False)


@given(FINITE, st.floats(1e-6, 1e9), st.integers(2, 8))
def test_ticks_are_evenly_spaced_inside_the_range_and_of_a_sane_number(
    low: float, span: float, wanted: int
) -> None:
    high = low + span
    if not high - low > abs(low) * 1e-9:
        return
    values, step = nice_ticks(low, high, wanted)
    assert 1 <= len(values) <= 2.6 * wanted
    assert all(low - step * 1e-6 <= v <= high + step * 1e-6 for v in values)
    assert round(step / 10 ** math.floor(math.log10(step) + 1e-9)) in (1, 2, 5)


def test_ticks_are_the_numbers_a_person_would_choose() -> None:
    assert [label for _, label in Scale(-0.0013, 0.0079, 0, 100).ticks(5)] == [
        "0.000", "0.002", "0.004", "0.006",
    ]  # fmt: skip
    assert [value for value, _ in Scale(0, 237, 0, 100).ticks(5)] == [0, 50, 100, 150, 200]
    assert [label for _, label in Scale(0.009, 1.1, 0, 100, log=True).ticks(5)] == [
        "0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1",
    ]  # fmt: skip


def test_a_scale_maps_its_ends_and_keeps_what_lies_outside_on_the_edge() -> None:
    scale = Scale(0, 10, 100, 200)
    assert [scale(v) for v in (0, 5, 10, 99)] == [100, 150, 200, 200]
    assert Scale(1, 100, 0, 100, log=True)(10) == pytest.approx(50)


def test_text_and_attributes_are_escaped() -> None:
    assert (
        tag("text", "<b>&\x00", class_='"x') == '<text class="&#34;x">&lt;b&gt;&amp;\ufffd</text>'
    )


def test_thinning_keeps_the_mean_and_at_most_so_many_points() -> None:
    points = [(float(i), float(i % 7)) for i in range(1000)]
    few = thinned([*points, (1e9, math.nan)], 100)
    assert len(few) == 100
    assert sum(y for _, y in few) / 100 == pytest.approx(sum(y for _, y in points) / 1000)


def plot(*rows: tuple[float, float, float]) -> list[ElementTree.Element]:
    drawn = interval_plot(
        "p",
        title="t",
        description="d",
        rows=[Interval("name", v, a, b, "circle good", "words", "detail") for v, a, b in rows],
        x_words="difference",
        zero=("← left", "right →"),
        band=0.5,
    )
    return [ElementTree.fromstring(s) for s in re.findall(r"<svg.*?</svg>", drawn)]


def test_the_line_at_zero_is_always_in_the_picture_and_orders_the_intervals() -> None:
    for svg in plot((2.0, 1.0, 3.0), (-5.0, -6.0, -4.0)):
        zero = float(next(e for e in svg.iter("line") if e.get("class") == "zero").get("x1", ""))
        better, worse = (float(e.get("cx", "")) for e in svg.iter("circle"))
        assert 0 < worse < zero < better < float(svg.get("width", ""))
        assert "right →" in [e.text for e in svg.iter("text")]


@given(st.lists(st.tuples(FINITE, FINITE, FINITE), min_size=1, max_size=4))
def test_everything_of_an_interval_plot_lies_inside_it(
    rows: list[tuple[float, float, float]],
) -> None:
    for svg in plot(*((sorted(r)[1], min(r), max(r)) for r in rows)):
        width, height = float(svg.get("width", "")), float(svg.get("height", ""))
        for element in svg.iter():
            for name, limit in {"x1": width, "x2": width, "cx": width, "y2": height}.items():
                assert 0 <= float(element.get(name, "0")) <= limit


def test_lines_pass_over_numbers_that_are_not_finite_and_go_to_a_log_scale_when_steep() -> None:
    def chart(points: list[tuple[float, float]]) -> str:
        return line_chart("c", title="t", description="d", series=[Series("s", points, "line")],
                          x_words="step", y_words="loss")  # fmt: skip

    assert "log scale" in chart([(0, 0.7), (1, math.nan), (2, 900.0)])
    assert "log scale" not in chart([(0, 0.7), (1, 0.5)])
    assert "nan" not in chart([(0, 0.7), (1, math.nan), (2, math.inf), (3, 0.5)])
    assert chart([(0, math.nan)]) == ""
