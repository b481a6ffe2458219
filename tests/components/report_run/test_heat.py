"""A chart of values: what is there, what is not, and how much."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from components.common.figures import Heat
from components.report_run.heat import SHADES, Shading, heat_chart

VALUES = st.one_of(st.none(), st.floats(), st.just(0.0))


def drawn(heat: Heat) -> list[ElementTree.Element]:
    chart = heat_chart("h", heat, title="t")
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", chart, re.S)]


def heat_of(values: list[list[float | None]]) -> Heat:
    columns = max(map(len, values))
    return Heat(
        rows=[f"row {i}" for i in range(len(values))],
        columns=[f"column {i}" for i in range(columns)],
        values=values,
    )


def cells(svg: ElementTree.Element) -> dict[str, int]:
    """How many pieces of each shade."""
    return {p.get("class", ""): p.get("d", "").count("M") for p in svg.iter("path")}


def test_zero_is_empty_what_is_largest_is_darkest_and_neighbours_are_one_piece() -> None:
    for svg in drawn(heat_of([[0, 0, 1.0], [0.01, 0.0, -1.0], [None, 0.5, 0.5]])):
        assert cells(svg) == {
            f"heat shade-{SHADES}": 1, f"heat shade-{SHADES} below": 1, "heat shade-1": 1,
            "heat shade-3": 1, "none": 1,
        }  # fmt: skip
        assert "the largest is 1.00 (row 1, column 2)" not in (svg.findtext("desc") or "")
        assert "3 of 8 values are zero" in (svg.findtext("desc") or "")


def test_a_tiny_value_is_never_drawn_as_none_and_wide_ranges_go_by_the_logarithm() -> None:
    assert Shading(1.0, 50.0)(1.0) == "heat shade-1"
    steep = Shading.of([[1e-9, 1.0, 0.0]])
    assert steep.log
    assert steep(1e-9) == "heat shade-1"
    assert steep(1e-5) == "heat shade-3"
    assert steep(0.0) == ""


@pytest.mark.parametrize("heat", [
    Heat(rows=[], columns=[], values=[]),
    Heat(rows=["a"], columns=[], values=[[]]),
    Heat(rows=["a"], columns=["b"], values=[]),
])  # fmt: skip
def test_nothing_is_drawn_of_nothing(heat: Heat) -> None:
    assert heat_chart("h", heat, title="t") == ""


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(VALUES, min_size=1, max_size=33), min_size=1, max_size=6))
def test_every_chart_lies_inside_its_picture_and_says_numbers_only(
    values: list[list[float | None]],
) -> None:
    for svg in drawn(heat_of(values)):
        width, height = float(svg.get("width", "")), float(svg.get("height", ""))
        frame = next(
            e for e in svg.iter("rect") if e.get("class") == "frame" and e.get("y") != "-6"
        )
        assert float(frame.get("x", "")) + float(frame.get("width", "")) <= width + 0.1
        assert float(frame.get("y", "")) + float(frame.get("height", "")) <= height
        words = " ".join(svg.itertext())
        assert not re.search(r"\b(nan|inf)\b", words)
