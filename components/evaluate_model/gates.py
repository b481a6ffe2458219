"""From figures to a verdict: each gate is data, and what is missing holds back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from components.common.decision_figures import (
    Comparison,
    Gate,
    Outcome,
    SliceFigure,
    SmokeFigures,
)
from components.common.decision_settings import DecisionSettings
from components.common.metrics import HIGHER
from components.common.resampling import Interval

Verdict = Literal["promote", "hold", "inconclusive"]
_WORDS = {
    "log_loss": "log loss", "brier": "Brier score", "error": "error rate", "auc": "AUC",
    "average_precision": "average precision", "f1": "F1", "precision": "precision",
    "recall": "recall", "accuracy": "accuracy",
    "calibration_error": "calibration error", "absolute_error": "mean absolute error",
    "squared_error": "mean squared error", "rmse": "RMSE", "r2": "R²",
    "quantile_loss_10": "quantile loss (10 %)", "quantile_loss_90": "quantile loss (90 %)",
    "perplexity": "perplexity",
    "prior": "the prior", "input_independent": "the input-independent network",
    "rule": "the task's rule", "table": "the table of rates", "linear": "the linear model",
    "trees": "the gradient-boosted trees", "champion": "the champion",
}  # fmt: skip


def floor_gates(scores: dict[str, float], settings: DecisionSettings, *, kind: str) -> list[Gate]:
    """The challenger's own scores against fixed limits; one that is missing holds back."""
    limits = dict(settings.floors)
    if kind == "binary":
        limits.setdefault("auc", settings.minimum_auc)
    return [_floor(name, scores.get(name), limit) for name, limit in limits.items()]


def _floor(metric: str, value: float | None, limit: float) -> Gate:
    words, higher = _WORDS[metric], metric in HIGHER
    asked = f"at least {limit:g}" if higher else f"at most {limit:g}"
    if value is None:
        return _skipped("floor", f"floor: {words}", asked, f"the challenger has no {words}")
    good = value >= limit if higher else value <= limit  # nothing is true of NaN
    wanted = "is asked for" if higher else "is allowed"
    return Gate(
        name=f"floor: {words}",
        kind="floor",
        outcome="pass" if good else "fail",
        observed=f"{value:.4f}",
        threshold=asked,
        message=f"the challenger's {words} is {value:.4f}, and {limit:g} {wanted}",
        value=_finite(value),
        limit=limit,
        unit=metric,
    )


def baseline_gate(comparison: Comparison, settings: DecisionSettings, confidence: float) -> Gate:
    """The challenger must beat a baseline: the whole interval above 0."""
    name = f"baseline: {_WORDS[comparison.against]}"
    return _interval_gate("baseline", name, comparison, 0.0, settings.metric, confidence)


def champion_gate(comparison: Comparison, settings: DecisionSettings, confidence: float) -> Gate:
    """The whole interval must lie above minus the margin: not worse than the champion."""
    return _interval_gate(
        "champion", "champion", comparison, -settings.margin, settings.metric, confidence
    )


def _interval_gate(
    kind: Literal["baseline", "champion"],
    name: str,
    comparison: Comparison,
    least: float,
    metric: str,
    confidence: float,
) -> Gate:
    low, high = comparison.low, comparison.high
    outcome: Outcome = "pass" if low > least else "fail" if high <= least else "unsure"
    words, other = _WORDS[metric], _WORDS[comparison.against]
    better = "better" if comparison.difference >= 0 else "worse"
    beyond = {
        "pass": "the whole of it on one side",
        "fail": "the whole of it on the wrong side",
        "unsure": "which may be chance",
    }[outcome]
    if outcome == "pass" and least < 0:
        beyond = f"so not worse by more than the margin of {-least:g}"
    return Gate(
        name=name,
        kind=kind,
        outcome=outcome,
        observed=f"{comparison.difference:+.4f} [{low:+.4f}, {high:+.4f}]",
        threshold=f"lower end above {least:+g}" if least else "lower end above 0",
        message=f"the challenger's {words} is {abs(comparison.difference):.4f} {better} "
        f"than that of {other} ({percent(confidence)} interval {low:+.4f} to {high:+.4f}), "
        f"{beyond}",
        value=_finite(comparison.difference),
        low=_finite(low),
        high=_finite(high),
        limit=least,
        unit=metric,
    )


def slice_gate(slices: Sequence[SliceFigure], settings: DecisionSettings) -> Gate | None:
    """No slice may be shown to be worse than its margin; None: there are no slices.

    A slice of which nothing is shown does not hold back: most are too small to show anything, and
    the gate would never open. How many those are is said.
    """
    judged = [each for each in slices if each.outcome != "skipped"]
    if not judged:
        return None
    metric = _WORDS[settings.metric]
    bad = [each for each in judged if each.outcome == "fail"]
    unsure = sum(each.outcome == "unsure" for each in judged)
    worst = min(judged, key=lambda e: (e.high if e.high is not None else math.inf) + e.margin)
    if bad:
        low, high = worst.low, worst.high
        message = (
            f"on the slice {worst.words} ({worst.rows} rows) the challenger's {metric} is worse "
            f"than the champion's by more than the margin of {worst.margin:.4f}"
            + (f" ({low:+.4f} to {high:+.4f})" if low is not None and high is not None else "")
        )
    else:
        message = (
            f"no slice is shown to be worse than its margin ({len(judged)} were judged, of "
            f"{unsure} it cannot be told)"
        )
    return Gate(
        name="slices",
        kind="slices",
        outcome="fail" if bad else "pass",
        observed=f"{len(bad)} of {len(judged)} slices worse",
        threshold=f"none shown to be worse by more than {settings.slice_margin:.0%}",
        message=message,
        value=worst.difference,
        low=worst.low,
        high=worst.high,
        limit=-worst.margin,
        unit=settings.metric,
    )


def calibration_gate(interval: Interval | None, settings: DecisionSettings) -> Gate | None:
    """The whole interval of the calibration error below its limit; None: no limit is set."""
    limit = settings.maximum_calibration_error
    if limit is None:
        return None
    asked = f"upper end at most {limit:g}"
    if interval is None:
        words = "the challenger has no calibration error: it predicts no probabilities"
        return _skipped("calibration", "calibration", asked, words)
    low, high = interval.low, interval.high
    outcome: Outcome = "pass" if high <= limit else "fail" if low > limit else "unsure"
    return Gate(
        name="calibration",
        kind="calibration",
        outcome=outcome,
        observed=f"{interval.mean:.4f} [{low:.4f}, {high:.4f}]",
        threshold=asked,
        message=f"the challenger's calibration error is {interval.mean:.4f} "
        f"({low:.4f} to {high:.4f}), and {limit:g} is allowed",
        value=_finite(interval.mean),
        low=_finite(low),
        high=_finite(high),
        limit=limit,
        unit="calibration_error",
    )


def package_gates(smoke: SmokeFigures | None, settings: DecisionSettings) -> list[Gate]:
    """The package works where nothing of ours is, and is small and fast enough."""
    asked = "loads in another process and predicts what was recorded"
    if smoke is None:
        return [_skipped("package", "package", asked, "the package was not tried out")]
    gates = [
        Gate(
            name="package",
            kind="package",
            outcome=smoke.outcome,
            observed="worked" if smoke.outcome == "pass" else "did not work",
            threshold=asked,
            message=smoke.message,
            value=smoke.largest_difference,
        )
    ]
    limits: list[tuple[Literal["size", "latency"], float | None, float | None, str, str]] = [
        ("size", smoke.size_mb, settings.maximum_size_mb, "MB", "the package's size"),
        ("latency", smoke.latency_ms, settings.maximum_latency_ms, "ms", "the time of one row"),
    ]
    for kind, value, limit, unit, words in limits:
        if limit is None:
            continue
        asked = f"at most {limit:g} {unit}"
        if value is None:
            gates.append(_skipped(kind, kind, asked, f"{words} was not measured"))
            continue
        gates.append(
            Gate(
                name=kind,
                kind=kind,
                outcome="pass" if value <= limit else "fail",
                observed=f"{value:.3g} {unit}",
                threshold=asked,
                message=f"{words} is {value:.3g} {unit}, and {limit:g} {unit} is allowed",
                value=_finite(value),
                limit=limit,
                unit=unit,
            )
        )
    return gates


def decide(gates: Sequence[Gate]) -> tuple[Verdict, list[str]]:
    """Turn the gates into a verdict and its reasons, the decisive ones first.

    Nothing but passes promotes: a failed gate holds, and so does one that is unsure or skipped.
    """
    failed = [g for g in gates if g.outcome == "fail"]
    open_ones = [g for g in gates if g.outcome in ("unsure", "skipped")]
    passed = [g for g in gates if g.outcome == "pass"]
    if failed:
        return "hold", [g.message for g in [*failed, *open_ones]]
    if open_ones or not passed:
        return "inconclusive", [g.message for g in open_ones] or ["no gate could be evaluated"]
    # the champion is what matters most; without one, the baselines
    first = sorted(passed, key=lambda g: (g.name != "champion", g.kind != "baseline"))
    return "promote", [g.message for g in first]


def percent(confidence: float) -> str:
    """A confidence in words: 95%, 99.75%."""
    return f"{confidence * 100:.4g}%"


def champion_skipped(words: str) -> Gate:
    """A champion that cannot be compared with: nothing is promoted over it."""
    return _skipped("champion", "champion", "a fair comparison", words)


def _skipped(
    kind: Literal["floor", "champion", "calibration", "package", "size", "latency"],
    name: str,
    asked: str,
    words: str,
) -> Gate:
    return Gate(
        name=name, kind=kind, outcome="skipped", observed="–", threshold=asked, message=words
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
