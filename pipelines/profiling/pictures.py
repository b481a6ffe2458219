"""The pictures of a profile, a sweep and of batch sizes: values in, SVG out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup

from components.report_run.charts import Series, line_chart
from components.report_run.formats import percent
from components.report_run.svg import (
    CHARACTER,
    Scale,
    line,
    marker,
    path,
    picture,
    tag,
    text,
    x_axis,
    y_axis,
)
from pipelines.profiling.words import brief

if TYPE_CHECKING:
    from training_core.checks.dynamics.rates import Probe
    from training_core.profiling.batch_sizes import BatchSizes
    from training_core.profiling.learning_rate import Sweep
    from training_core.profiling.noise_scale import NoiseScale
    from training_core.profiling.result import Profile

_ROW = 26
_LEAST = 0.002  # share of the step that a bar needs to be drawn


def step_bars(found: Profile) -> Markup:
    """What a step is spent on, longest first."""
    rows = [(n, s) for n, s in found.bars.items() if s > _LEAST * found.seconds]
    longest = max(seconds for _, seconds in rows)

    def draw(width: int) -> tuple[Markup, float]:
        left, right = 150, width - 120
        parts = []
        for index, (name, seconds) in enumerate(rows):
            y = index * _ROW
            length = max(1.0, (right - left) * seconds / longest)
            share = f"{brief(seconds)}, {percent(seconds / found.seconds)}"
            parts.append(text(left - 8, y + 15, name, anchor="end", kind="name"))
            parts.append(tag("rect", x=left, y=y + 3, width=length, height=16, class_="bar"))
            parts.append(text(left + length + 6, y + 15, share, kind="tick"))
        return Markup("").join(parts), len(rows) * _ROW + 4

    words = ", ".join(f"{name} {percent(s / found.seconds)}" for name, s in rows)
    return picture("bars", title="What a step is spent on", description=words, draw=draw)


def roofline(found: Profile) -> Markup:
    """The two roofs of the machine, and the step as a whole under them."""
    machine, flops = found.machine, sum(w.flops for w in found.work.values())
    if not flops or not found.intensity:
        return Markup("")
    reached = flops / found.seconds
    ridge = machine.flops / machine.bandwidth
    low_x, high_x = min(found.intensity, ridge) / 10, max(found.intensity, ridge) * 10
    low_y, high_y = min(reached, machine.bandwidth * low_x) / 3, machine.flops * 3

    def draw(width: int) -> tuple[Markup, float]:
        bottom = 240
        across = Scale(low_x, high_x, 52, width - 12, log=True)
        up = Scale(low_y / 1e9, high_y / 1e9, bottom, 26, log=True)
        roof = [(low_x, machine.bandwidth * low_x), (ridge, machine.flops), (high_x, machine.flops)]
        x, y = across(found.intensity), up(reached / 1e9)
        right = x + CHARACTER * 10 < width - 12
        return Markup("").join(
            [
                y_axis(up, left=52, right=width - 12, words="GFLOP/s (log scale)"),
                x_axis(
                    across,
                    bottom=bottom,
                    words="FLOPs a byte (log scale)",
                    ticks=width // 90,
                    grid=[],
                ),
                path([(across(a), up(b / 1e9)) for a, b in roof], "line series-1"),
                line(x, y, x, bottom, "mark"),
                marker(x, y, "circle challenger"),
                text(
                    x + (8 if right else -8),
                    y - 8,
                    "this step",
                    anchor="start" if right else "end",
                    kind="value",
                ),
            ]
        ), bottom + 42

    description = (
        f"The step reaches {reached / 1e9:.3g} GFLOP/s at {found.intensity:.3g} FLOPs a byte; the "
        f"machine could reach {min(machine.flops, machine.bandwidth * found.intensity) / 1e9:.3g}."
    )
    return picture("roofline", title="The roofline", description=description, draw=draw)


def sweep_picture(found: Sweep) -> Markup:
    """Loss over the rate, raw and smoothed, with what is proposed."""
    most = 3 * max(found.smoothed[:1] + [abs(s) for s in found.smoothed if math.isfinite(s)][:10])
    shown = [
        (rate, loss, smooth)
        for rate, loss, smooth in zip(found.rates, found.losses, found.smoothed, strict=True)
        if math.isfinite(loss) and abs(loss) < most
    ]
    marks = [(found.planned, "planned")] if shown and _inside(found.planned, shown) else []
    if found.proposed is not None and _inside(found.proposed, shown):
        marks = [m for m in marks if abs(math.log10(m[0] / found.proposed)) > 0.5]
        marks.append((found.proposed, "proposed"))
    return line_chart(
        "sweep",
        title="Loss while the learning rate rises",
        description="The loss of each step's batch, and smoothed, over the learning rate.",
        series=[
            Series("of each step's batch", [(r, x) for r, x, _ in shown], "line series-1"),
            Series("smoothed", [(r, s) for r, _, s in shown], "line series-0"),
        ],
        x_words="learning rate (log scale)",
        y_words="loss",
        marks=marks,
        log_x=True,
    )


def probes_picture(probes: Mapping[str, Probe]) -> Markup:
    """Loss of the same rows while a training at each rate goes on."""
    return line_chart(
        "probes",
        title="Short trainings from the same start",
        description="The loss of the same rows over the steps, by learning rate.",
        series=[
            Series(name, [(float(s), loss) for s, loss in p.curve], f"line series-{i}")
            for i, (name, p) in enumerate(probes.items())
        ],
        x_words="step",
        y_words="loss of the same rows",
    )


def throughput(found: BatchSizes, planned: int) -> Markup:
    """Examples a second by batch size."""
    points = [(float(s.batch_size), s.examples_per_second) for s in found.speeds]
    marks = [(float(found.knee.batch_size), "knee")]
    if abs(math.log2(planned / found.knee.batch_size)) > 0.9 and planned <= points[-1][0]:
        marks.append((float(planned), "planned"))
    return line_chart(
        "throughput",
        title="Examples a second by batch size",
        description="; ".join(f"{int(x)}: {y:.3g}" for x, y in points),
        series=[Series("", points, "line series-0", "circle challenger")],
        x_words="batch size (log scale)",
        y_words="examples a second",
        marks=marks,
        log_x=True,
    )


def noise(found: Sequence[NoiseScale]) -> Markup:
    """The noise scale along the training, with two standard errors either side."""
    known = [each for each in found if each.known]

    def around(factor: float) -> list[tuple[float, float]]:
        return [(float(n.step), max(0.0, n.scale + factor * n.error)) for n in known]

    return line_chart(
        "noise",
        title="The gradient noise scale along the training",
        description="; ".join(f"step {n.step}: {n.scale:.3g} ± {n.error:.2g}" for n in known),
        series=[
            Series("noise scale", around(0), "line series-0", "circle challenger"),
            Series("two standard errors more, and less", around(2), "line series-2"),
            Series("", around(-2), "line series-2"),
        ],
        x_words="step",
        y_words="examples",
    )


def _inside(rate: float, shown: Sequence[tuple[float, float, float]]) -> bool:
    return bool(shown) and shown[0][0] <= rate <= shown[-1][0]
