"""Runs whose decisions say all that they can: of two classes, of many, of a number, extreme."""

from __future__ import annotations

from typing import Any

from report_sample_models import evaluation, promotion, selection

from components.common import decision_figures as d

HUGE = "a name that goes on and on, <b>with tags</b> & more " * 4


def gates(word: str, *, slice_word: str = "pass") -> list[d.Gate]:
    """One of each kind; the champion's has the outcome `word`."""
    value, low, high = {
        "pass": (0.0046, 0.0018, 0.0075),
        "fail": (-0.0061, -0.0092, -0.0029),
        "unsure": (0.0009, -0.0021, 0.0038),
    }[word]

    def gate(kind: Any, name: str, outcome: Any, numbers: Any, unit: str, **said: str) -> d.Gate:
        middle, lower, upper, limit = numbers
        texts = {"observed": str(middle), "threshold": str(limit), "message": ""} | said
        return d.Gate(name=name, outcome=outcome, kind=kind, value=middle, low=lower, high=upper,
                      limit=limit, unit=unit, **texts)  # fmt: skip

    loss = "log_loss"
    return [
        gate("champion", "not_worse_than_champion", word, (value, low, high, -0.001), loss),
        gate("baseline", "beats_prior", "pass", (0.0601, 0.049, 0.0718, 0.0), loss),
        gate("baseline", "beats_linear", "pass", (0.0113, 0.0071, 0.0158, 0.0), loss),
        gate("slices", "slices", slice_word, (-0.0007, -0.0051, 0.0034, -0.0237), loss),
        gate("floor", "minimum_auc", "pass", (0.738, 0.721, 0.755, 0.65), "auc"),
        gate("floor", "floor_log_loss", "pass", (0.4702, None, None, 0.53), loss),
        gate("calibration", "calibration", "pass", (0.0094, 0.004, 0.016, 0.05),
             "calibration_error"),
        gate("size", "size", "pass", (0.42, None, None, 50.0), "MB"),
        gate("latency", "latency", "pass", (1.3, None, None, 5.0), "ms"),
        gate("package", "package", "pass", (None, None, None, None), "",
             observed="64 rows agree", threshold="it loads and predicts the same"),
    ]  # fmt: skip


def slices(*, worse: bool = False) -> list[d.SliceFigure]:
    """Some asked for, some found; one that cannot be computed."""
    found = [("carrier = AA", 0.0061, 0.0012, 0.0112, "pass", 2311),
             ("carrier = HA", -0.0203, -0.071, 0.031, "unsure", 41),
             ("origin = JFK", 0.0031, -0.0021, 0.0084, "pass", 4204),
             ("distance above 1,089", -0.0312, -0.0401, -0.0247, "fail", 903)]  # fmt: skip
    made = [
        d.SliceFigure(
            words=name,
            source="search" if "above" in name else "settings",
            rows=rows,
            clusters=14,
            challenger=0.4721,
            champion=0.4721 + mean,
            difference=mean,
            low=low,
            high=high,
            margin=0.0237,
            outcome=word,  # type: ignore[arg-type]
        )
        for name, mean, low, high, word, rows in (found if worse else found[:3])
    ]
    return [*made, made[0].model_copy(update={
        "words": "carrier = OO", "rows": 3, "clusters": 1, "challenger": None, "champion": None,
        "difference": None, "low": None, "high": None, "outcome": "skipped"})]  # fmt: skip


def rich(verdict: str = "promote", *, worse: bool = False) -> d.EvaluateFigures:
    """An evaluation of two classes with everything in it."""
    word = {"promote": "pass", "hold": "fail", "inconclusive": "unsure"}[verdict]
    seen = evaluation(verdict)
    near = {"log_loss": 0.011, "brier": 0.004, "error": 0.007, "auc": 0.017}
    return seen.model_copy(
        update={
            "gates": gates(word, slice_word="fail" if worse else "pass"),
            "slices": slices(worse=worse),
            "intervals": {
                model: {k: (v - near[k], v + near[k]) for k, v in values.items()}
                for model, values in seen.metrics.items()
            }
            | {"challenger": {"calibration_error": (0.0041, 0.0163), "auc": (0.721, 0.755)}},
            "directions": {"log_loss": "lower", "auc": "higher", "error": "lower"},
            "noise": d.NoiseFigure(deviation=0.0008, source="replicas", freedom=9,
                                   runs=["a", "b", "c"]),
            "question": d.QuestionFigure(number=7, uses=2.25, confidence=0.978, rows=12789,
                                         left_out=311),
            "smoke": d.SmokeFigures(
                outcome="pass", message="", how="torch alone", rows=64,
                largest_difference=2.4e-7, load_seconds=2.31, latency_ms=1.3, latency_p99_ms=2.2,
                rows_per_second=41250.0, peak_memory_mb=212.5, size_mb=0.42,
            ),
            "optimism": d.Optimism(expected=0.0004, deviation=0.0011, measured=0.0013,
                                   low=-0.0061, high=0.0072),
        }
    )  # fmt: skip


def chosen() -> d.SelectFigures:
    """A selection with paired differences and a mean of three checkpoints."""
    seen = selection()
    best = min(c.metrics["log_loss"] for c in seen.candidates)
    made = [
        c.model_copy(update={
            "difference": c.metrics["log_loss"] - best + 0.0001,
            "difference_low": c.metrics["log_loss"] - best - 0.0006,
            "difference_high": c.metrics["log_loss"] - best + 0.0007,
            "as_good": c.metrics["log_loss"] - best < 0.0006})
        for c in seen.candidates
    ]  # fmt: skip
    mean = made[2].model_copy(update={"members": [144, 168, 192], "difference": 0.0,
                                      "difference_low": 0.0, "difference_high": 0.0,
                                      "as_good": True})  # fmt: skip
    return seen.model_copy(update={
        "rule": "flattest", "candidates": [*made, mean], "chosen": 192,
        "chosen_members": [144, 168, 192],
        "optimism": d.Optimism(expected=0.0004, deviation=0.0011)})  # fmt: skip


def proposal() -> d.PromoteFigures:
    return promotion().model_copy(update={
        "outcome": "proposed", "version": "5", "champion_after": "3"})  # fmt: skip


def many_classes(size: int = 12) -> d.EvaluateFigures:
    """An evaluation of many classes: no ROC, a confusion of all of them."""
    confusion = [[900 - 40 * i if i == j else (7 * i + 3 * j) % 23 for j in range(size)]
                 for i in range(size)]  # fmt: skip
    values = {"challenger": {"log_loss": 0.61, "error": 0.19, "f1": 0.78},
              "champion": {"log_loss": 0.6146, "error": 0.2, "f1": 0.77}}  # fmt: skip
    return rich().model_copy(update={
        "kind": "multiclass", "classes": [f"kind {i}" for i in range(size)], "roc": [],
        "confusion": confusion, "metrics": values, "intervals": {}, "slices": []})  # fmt: skip


def of_a_number() -> d.EvaluateFigures:
    """An evaluation of a regression, compared by R²: higher is better."""
    seen = rich()
    made = [g.model_copy(update={"unit": "r2"}) if g.unit == "log_loss" else g for g in seen.gates
            if g.unit not in ("auc", "calibration_error")
            and g.name != "floor_log_loss"]  # fmt: skip
    values = {"challenger": {"r2": 0.6132, "rmse": 31.2, "absolute_error": 19.8,
                             "quantile_loss_10": 4.1, "quantile_loss_90": 5.2},
              "champion": {"r2": 0.6086, "rmse": 31.6, "absolute_error": 20.1,
                           "quantile_loss_10": 4.2, "quantile_loss_90": 5.3}}  # fmt: skip
    return seen.model_copy(update={
        "kind": "regression", "classes": [], "metric": "r2", "gates": made, "metrics": values,
        "intervals": {"challenger": {"r2": (0.58, 0.64)}}, "directions": {"r2": "higher"},
        "reliability": {}, "calibration_error": {}, "roc": [], "confusion": []})  # fmt: skip


def extreme() -> d.EvaluateFigures:
    """Numbers as they should not be, and names as they should not be."""
    seen = rich("hold", worse=True)
    made = [g.model_copy(update={"name": HUGE, "observed": HUGE, "message": HUGE,
                                 "unit": g.unit and g.unit + HUGE})
            for g in seen.gates]  # fmt: skip
    made[0] = made[0].model_copy(update={"value": -1e12, "low": -3e15, "high": 1e-9})
    made[4] = made[4].model_copy(update={"value": 5e-14, "limit": 1e9})
    many = [s.model_copy(update={"words": f"{i} {HUGE}"}) for i in range(30) for s in seen.slices]
    return seen.model_copy(update={
        "gates": made * 5, "slices": many, "classes": [HUGE, HUGE + "2"]})  # fmt: skip
