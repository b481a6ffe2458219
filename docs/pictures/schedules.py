"""Draw the learning rate of each schedule over a run, for docs/schedules.md: `make docs` runs it.

Plain SVG text, readable on light and dark pages. Rates come from the code that trains.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training_core.optim.schedules import make_schedule
from training_core.optim.settings import OptimiserSettings, ScheduleSettings
from training_core.optim.shapes import Rate

STEPS = 240
EVALUATE_EVERY = 24
LOSSES = (0.9, 0.7, 0.6, 0.61, 0.6, 0.58, 0.59, 0.58, 0.6, 0.58)  # at each evaluation
OPTIMISER = OptimiserSettings(lr=1.0, betas=(0.95, 0.999))

PANELS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("constant", "", {}),
    ("linear", "final 0.1", {"final": 0.1}),
    ("cosine", "the default", {}),
    ("step", "milestones ½ and ¾", {}),
    ("inverse_sqrt", "", {}),
    ("plateau", "● lower loss, ○ not", {"plateau_patience": 2}),
    ("one_cycle", "", {}),
    ("triangular", "4 cycles, final 0.1", {"final": 0.1}),
    ("triangular2", "4 cycles, final 0.1", {"final": 0.1}),
)
WARMUP = 0.1

WIDTH, HEIGHT, COLUMNS = 240, 118, 3  # of a panel's axes
LEFT, TOP, GAP_X, GAP_Y = 40, 36, 50, 66

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #3d444d }
  .name { font-weight: 600; fill: #1f2328 }
  .grid { stroke: #d1d9e0; stroke-width: 1; fill: none }
  .lr { stroke: #0969da; stroke-width: 2; fill: none }
  .momentum { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 5 3; fill: none }
  .warmup { fill: #0969da; fill-opacity: .09 }
  .better { fill: #3d444d }
  .worse { fill: none; stroke: #3d444d; stroke-width: 1.2 }
  .blue { fill: #0969da } .orange { fill: #bc4c00 }
  @media (prefers-color-scheme: dark) {
    text { fill: #b7bdc8 }
    .name { fill: #f0f6fc }
    .grid { stroke: #3d444d }
    .lr { stroke: #58a6ff } .momentum { stroke: #f0883e }
    .warmup { fill: #58a6ff; fill-opacity: .14 }
    .better { fill: #b7bdc8 } .worse { stroke: #b7bdc8 }
    .blue { fill: #58a6ff } .orange { fill: #f0883e }
  }
"""


def picture() -> str:
    """Return the picture, an SVG document."""
    rows = -(-len(PANELS) // COLUMNS)
    width = LEFT + COLUMNS * (WIDTH + GAP_X) - GAP_X + 16
    height = TOP + rows * (HEIGHT + GAP_Y) - 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        "<title>Learning rate of each schedule over the steps of a run</title>",
        f"<style>{STYLE}</style>",
    ]
    for index, (shape, words, settings) in enumerate(PANELS):
        x = LEFT + index % COLUMNS * (WIDTH + GAP_X)
        y = TOP + index // COLUMNS * (HEIGHT + GAP_Y)
        parts.append(f'<g transform="translate({x} {y})">')
        parts += _panel(shape, words, settings, first=index % COLUMNS == 0)
        parts.append("</g>")
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(shape: str, words: str, settings: dict[str, Any], *, first: bool) -> Iterable[str]:
    warmup = 0.0 if shape == "one_cycle" else WARMUP
    chosen = ScheduleSettings.model_validate({"shape": shape, "warmup": warmup, **settings})
    schedule = make_schedule(chosen, OPTIMISER, steps=STEPS)
    rates, marks = [], []
    for step in range(STEPS):
        if shape == "plateau" and step and step % EVALUATE_EVERY == 0:
            loss = LOSSES[step // EVALUATE_EVERY - 1]
            better = loss < min(LOSSES[: step // EVALUATE_EVERY - 1], default=2.0)
            marks.append((step, "better" if better else "worse"))
            schedule.observe(loss)
        rates.append(schedule.at(step))
    yield f'<text class="name" x="0" y="-12">{shape}</text>'
    if words:
        yield f'<text x="{WIDTH}" y="-12" text-anchor="end">{words}</text>'
    if warmup:
        yield f'<rect class="warmup" width="{_x(STEPS * warmup)}" height="{HEIGHT}"/>'
    yield f'<path class="grid" d="M0 0H{WIDTH}M0 {HEIGHT / 2:g}H{WIDTH}M0 {HEIGHT}H{WIDTH}"/>'
    if first:
        yield '<text x="-8" y="4" text-anchor="end">peak</text>'
        yield f'<text x="-8" y="{HEIGHT + 4}" text-anchor="end">0</text>'
    yield f'<path class="lr" d="{_line([(s, r.lr) for s, r in enumerate(rates)])}"/>'
    for step, kind in marks:
        yield f'<circle class="{kind}" cx="{_x(step)}" cy="{HEIGHT + 12}" r="3.2"/>'
    yield from _below(shape, rates)


def _below(shape: str, rates: list[Rate]) -> Iterable[str]:
    y = HEIGHT + 17
    momenta = [(step, rate.momentum) for step, rate in enumerate(rates)]
    known = [(step, momentum) for step, momentum in momenta if momentum is not None]
    if known:
        yield f'<path class="momentum" d="{_line(known)}"/>'
        low, high = min(m for _, m in known), max(m for _, m in known)
        yield f'<text class="blue" x="0" y="{y}">learning rate</text>'
        words = f"momentum {high:.2f} to {low:.2f}"
        yield f'<text class="orange" x="{WIDTH}" y="{y}" text-anchor="end">{words}</text>'
    elif shape != "plateau":
        yield f'<text x="0" y="{y}">warm-up</text>'
        yield f'<text x="{WIDTH}" y="{y}" text-anchor="end">steps</text>'


def _line(points: list[tuple[int, float]]) -> str:
    """A path through points in order of x."""
    return "M" + "L".join(f"{_x(step)} {HEIGHT * (1 - value):.1f}" for step, value in points)


def _x(step: float) -> str:
    return f"{WIDTH * step / (STEPS - 1):.1f}"


if __name__ == "__main__":
    print(picture(), end="")
