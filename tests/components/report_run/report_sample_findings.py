"""Findings of every verdict, as checks make them: with curves, charts, layers and examples."""

from __future__ import annotations

import math

from components.check_training.recording import figures_of
from components.common import figures as f
from training_core.checks.contract import Finding, Heat, Sample, Verdict

COLUMNS = ["distance", "departure_hour", "temperature", "wind_gust", "carrier", "origin"]


def findings(*, broken: bool = True) -> list[Finding]:
    """What the checks of a run say; `broken`: two of them fail."""
    worst: Verdict = "fail" if broken else "pass"
    return [
        Finding(name="rows_keep_their_labels", verdict="pass", message="4 of 4 orders of the rows "
                "give the same examples", samples=[table_row(0), table_row(1)], seconds=0.41),
        Finding(name="loss_at_initialisation", verdict="pass", measured=0.7013, limit=0.866,
                message="0.701 is what ignorance costs (0.693)", seconds=0.12),
        Finding(name="overfit_one_batch", verdict=worst, measured=0.61 if broken else 0.0049,
                limit=0.05, message="after 400 steps the loss of 32 rows is still 0.61: it does "
                "not move, and the gradient of embedding.weight is zero",
                advice="let the gradient reach embedding.weight: is there a detach() on the way",
                curves={"overfit_one_batch": fall(0.08), "learned_alone": fall(1.0)}, seconds=6.3),
        Finding(name="gradient_dependency", verdict=worst, measured=0.31, limit=0.0,
                message="row 3 of the batch moves the outputs of rows 0 to 7", heat=mixing(),
                advice="look for a reshape that mixes the batch dimension with another",
                seconds=1.7),
        Finding(name="update_to_weight_ratio", verdict="warn", measured=0.021, limit=0.01,
                message="head.weight moves by 2.1 % of its size at each step",
                advice="lower the learning rate, or warm it up", curves=ratios(), table=layers(),
                seconds=2.9),
        Finding(name="prediction_dynamics", verdict="pass", measured=0.04, message="predictions of "
                "24 fixed rows settle", curves=bundle(), seconds=3.3),
        Finding(name="examples_before_the_network", verdict="pass", samples=[picture(0),
                picture(1)], message="pixels lie within 0 and 1", seconds=0.7),
        Finding(name="batch_size_and_speed", verdict="pass", measured=3480.0, limit=7200.0,
                message="58 minutes are planned; 2,048 rows a step would be 1.6 times as fast",
                table=[{"batch_size": 2**i, "rows_per_second": 900.0 * 1.4**i, "fits": True}
                       for i in range(5, 13)], seconds=8.8),
        Finding(name="no_future_reaches_the_past", verdict="not_applicable",
                message="the task has no sequence"),
        Finding(name="augmented_examples_keep_their_label", verdict="not_applicable",
                message="the task has no augment()"),
        Finding(name="learning_rate", verdict="skipped",
                message="the 90 seconds of checks.seconds are used up"),
    ]  # fmt: skip


def recorded(*, broken: bool = True) -> f.CheckFigures:
    """The same, as the step records it."""
    return figures_of(findings(broken=broken))


def fall(speed: float) -> list[tuple[int, float]]:
    return [(s, 0.69 * math.exp(-s * speed / 60) + 0.004) for s in range(400)]


def ratios() -> dict[str, list[tuple[int, float]]]:
    return {
        f"{layer}.weight": [(s, 10**-k * (1 + 0.3 * math.sin(s / 9 + k))) for s in range(0, 300, 3)]
        for k, layer in enumerate(("embedding", "blocks.0.mlp", "blocks.1.mlp", "head"), start=2)
    }


def bundle() -> dict[str, list[tuple[int, float]]]:
    return {
        f"row_{i}": [(s, 0.5 + 0.02 * (i - 12) * (1 - math.exp(-s / 50))) for s in range(0, 300, 5)]
        for i in range(24)
    }


def layers() -> list[dict[str, str | float]]:
    return [
        {
            "layer": f"blocks.{i}.attention.output", "update_to_weight": 10.0 ** -(i + 2),
            "gradient": 0.31 / (i + 1), "dead": "no" if i else "12 of 64", "shape": "64 × 64",
        }
        for i in range(14)
    ]  # fmt: skip


def mixing() -> Heat:
    """Eight rows of which the fourth reaches all outputs; one cannot be told, one is below 0."""
    rows: list[list[float | None]] = [
        [0.31 / (j + 1) if j == i else 0.004 if i == 3 else 0.0 for j in range(8)] for i in range(8)
    ]
    rows[6][7], rows[7][2] = None, -0.02
    names, columns = ([f"{word} {i}" for i in range(8)] for word in ("input row", "out"))
    return Heat(rows=names, columns=columns, values=rows)


def table_row(number: int) -> Sample:
    raw = {name: f"{(number + 2) * (i + 3) / 7:.3f}" for i, name in enumerate(COLUMNS[:4])}
    raw |= {"carrier": "UA", "origin": "EWR", "late": str(number)}
    network = {name: f"{(number - 1) * (i - 2) / 3:+.4f}" for i, name in enumerate(COLUMNS[:4])}
    network |= {"categories[carrier]": "11 (UA)", "target": str(float(number))}
    return Sample(raw=raw, network=network)


def picture(number: int) -> Sample:
    """A ring in grey, raw and as the network gets it: mirrored."""
    side = 28
    grey = [
        [round(255 * math.exp(-((math.hypot(x - 9, y - 14) - 6 - number) ** 2) / 6))
         for x in range(side)]
        for y in range(side)
    ]  # fmt: skip
    pixels = [[f"#{v:02x}{v:02x}{v // 2:02x}" for v in row] for row in grey]
    return Sample(
        raw={"image": "784 bytes", "label": "ring"}, network={"image": "1×28×28, 0 to 1",
        "target": "0 (ring)"}, images={"raw": pixels, "network": [row[::-1] for row in pixels]},
    )  # fmt: skip
