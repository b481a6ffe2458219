"""From figures to a verdict: each gate is data, and what is missing holds back."""

from __future__ import annotations

from typing import Literal

from components.common.decision_figures import Comparison, Gate
from components.common.decision_settings import DecisionSettings

Verdict = Literal["promote", "hold", "inconclusive"]
_WORDS = {
    "log_loss": "log loss", "brier": "Brier score", "error": "error rate", "auc": "AUC",
    "prior": "the prior", "input_independent": "the input-independent network",
    "rule": "the task's rule", "table": "the table of rates", "linear": "the linear model",
    "trees": "the gradient-boosted trees", "champion": "the champion",
}  # fmt: skip


def floor_gates(scores: dict[str, float], settings: DecisionSettings) -> list[Gate]:
    """The challenger's own scores against fixed limits."""
    gates = []
    for metric, limit in settings.floors.items():
        value = scores[metric]
        gates.append(
            Gate(
                name=f"floor: {_WORDS[metric]}",
                outcome="pass" if value <= limit else "fail",
                observed=f"{value:.4f}",
                threshold=f"at most {limit:g}",
                message=f"the challenger's {_WORDS[metric]} is {value:.4f}, "
                f"and {limit:g} is allowed",
            )
        )
    auc = scores["auc"]
    gates.append(
        Gate(
            name="floor: AUC",
            outcome="pass" if auc >= settings.minimum_auc else "fail",
            observed=f"{auc:.4f}",
            threshold=f"at least {settings.minimum_auc:g}",
            message=f"the challenger's AUC is {auc:.4f}, and {settings.minimum_auc:g} is asked for",
        )
    )
    return gates


def baseline_gate(comparison: Comparison, settings: DecisionSettings) -> Gate:
    """The challenger must beat a baseline: the whole interval above 0."""
    return _interval_gate(f"baseline: {_WORDS[comparison.against]}", comparison, 0.0, settings)


def champion_gate(comparison: Comparison, settings: DecisionSettings) -> Gate:
    """The whole interval must lie above minus the margin: not worse than the champion."""
    return _interval_gate("champion", comparison, -settings.margin, settings)


def _interval_gate(
    name: str, comparison: Comparison, least: float, settings: DecisionSettings
) -> Gate:
    low, high = comparison.low, comparison.high
    outcome: Literal["pass", "fail", "unsure"]
    outcome = "pass" if low > least else "fail" if high <= least else "unsure"
    metric, other = _WORDS[settings.metric], _WORDS[comparison.against]
    better = "better" if comparison.difference >= 0 else "worse"
    beyond = {
        "pass": "the whole of it on one side",
        "fail": "the whole of it on the wrong side",
        "unsure": "which may be chance",
    }[outcome]
    if outcome == "pass" and least < 0:
        beyond = f"so not worse by more than the margin of {settings.margin:g}"
    return Gate(
        name=name,
        outcome=outcome,
        observed=f"{comparison.difference:+.4f} [{low:+.4f}, {high:+.4f}]",
        threshold=f"lower end above {least:+g}" if least else "lower end above 0",
        message=f"the challenger's {metric} is {abs(comparison.difference):.4f} {better} "
        f"than that of {other} ({settings.confidence:.0%} interval {low:+.4f} to {high:+.4f}), "
        f"{beyond}",
    )


def decide(gates: list[Gate]) -> tuple[Verdict, list[str]]:
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
    first = sorted(passed, key=lambda g: g.name != "champion")  # the champion is what matters most
    return "promote", [g.message for g in first]
