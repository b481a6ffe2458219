"""How well a column alone ranks labels that are not yes or no."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from components.common.tables import quoted
from components.common.values import kind_of, number
from components.validate_data.drawn import PLACE
from components.validate_data.subject import SAMPLE, Subject

Floats = npt.NDArray[np.float64]

_LEAST = 30  # rows of a class, or of numbers in all
_BINS = 64
_FEW = 2_000  # different values of a column: of more, texts have no rates, and numbers have bins
_MOST_CLASSES = 100  # the most frequent ones; a table of rates has as many columns
_PRIOR = 1.0


def ranked_alone(subject: Subject, name: str) -> tuple[float, str]:
    """Return how well a column alone ranks the labels, 0.5 to 1, and how.

    It is the share of pairs of rows with different labels that are put in the right order, ties
    counting half. Of classes: the mean of the areas under the ROC curves of each class against the
    others, by its rate in each of the column's values. Of several labels: the highest of theirs,
    likewise. Of numbers: by the column's order, or by the label's mean in each of its values,
    whichever is better (Somers' D is twice this less one). Rates and means are learned on one half
    of the sample and judged on the other.
    """
    if subject.label.kind == "regression":
        return max(_by_order(subject, name), _by_mean(subject, name))
    found = [(_by_rates(subject, name, truth), truth) for truth in subject.label.shown]
    area, truth = max(found)
    how = "by the rate of each class in each of its values"
    if subject.label.kind == "multilabel":
        how = f"by the rate of {truth!r} in each of its values"
    return area, how


def _by_rates(subject: Subject, name: str, truth: str) -> float:
    """Mean area over classes that have rows enough; 0.5 where rates cannot be learned."""
    value = _value(subject, name)
    if value is None:
        return 0.5
    found = subject.connection.execute(
        f"SELECT dense_rank() OVER (ORDER BY value) - 1 AS value, {PLACE} % 2 AS half, "
        f"dense_rank() OVER (ORDER BY truth) - 1 AS truth, rows FROM "
        f"(SELECT {value} AS value, {PLACE} % 2 AS {PLACE}, {quoted(truth)} AS truth, "
        f"count(*) AS rows FROM {SAMPLE} GROUP BY ALL)"
    ).fetchnumpy()
    values, halves, classes = (
        np.asarray(found[n], dtype=np.int64) for n in ("value", "half", "truth")
    )
    if not len(values):
        return 0.5
    rows = np.asarray(found["rows"], dtype=np.float64)
    counts = np.zeros((2, values.max() + 1, classes.max() + 1))
    np.add.at(counts, (halves, values, classes), rows)
    order = np.argsort(-counts.sum(axis=(0, 1)), kind="stable")[:_MOST_CLASSES]
    learned, judged = counts
    mean = learned.sum(axis=0) / max(1.0, learned.sum())
    rates = (learned + _PRIOR * mean) / (learned.sum(axis=1, keepdims=True) + _PRIOR)
    areas = [
        _area(rates[:, i], judged[:, i], judged.sum(axis=1) - judged[:, i])
        for i in order
        if min(judged[:, i].sum(), judged.sum() - judged[:, i].sum()) >= _LEAST
    ]
    return float(np.mean(areas)) if areas else 0.5


def _area(scores: Floats, yes: Floats, no: Floats) -> float:
    """Area under the ROC curve of scores with their rows (Mann and Whitney 1947)."""
    _, place = np.unique(scores, return_inverse=True)
    positives = np.bincount(place, yes).astype(np.float64)
    negatives = np.bincount(place, no).astype(np.float64)
    below = np.cumsum(negatives) - negatives
    pairs = positives.sum() * negatives.sum()
    return float((positives * (below + negatives / 2)).sum() / pairs)


def _by_order(subject: Subject, name: str) -> tuple[float, str]:
    how = "by its order"
    if kind_of(subject.columns[name]) == "text":
        return 0.5, how
    found = subject.connection.execute(
        f"SELECT {number(name, subject.columns[name])} AS score, "
        f"{quoted(subject.label.shown[0])} AS truth FROM {SAMPLE} WHERE score IS NOT NULL"
    ).fetchnumpy()
    agreed = _concordance(found["score"], found["truth"])
    return max(agreed, 1 - agreed), how


def _by_mean(subject: Subject, name: str) -> tuple[float, str]:
    how = "by the label's mean in each of its values"
    value, truth = _value(subject, name), quoted(subject.label.shown[0])
    if value is None:
        return 0.5, how
    found = subject.connection.execute(
        f"SELECT score, truth FROM (SELECT {truth} AS truth, {PLACE} % 2 AS half, "
        f"avg({truth}) FILTER ({PLACE} % 2 = 0) OVER (PARTITION BY value) AS score "
        f"FROM (SELECT *, {value} AS value FROM {SAMPLE})) WHERE half = 1 AND score IS NOT NULL"
    ).fetchnumpy()
    return _concordance(found["score"], found["truth"]), how


def _value(subject: Subject, name: str) -> str | None:
    """SQL for the value whose rows have a rate; None: its values hardly repeat."""
    different = subject.seen[name].distinct or 0
    if different <= _FEW:
        return quoted(name)
    if kind_of(subject.columns[name]) not in ("real", "whole", "time"):
        return None
    value = number(name, subject.columns[name])
    return (
        f"CASE WHEN {value} IS NULL THEN -1 ELSE floor({_BINS} * "
        f"percent_rank() OVER (ORDER BY {value} NULLS LAST)) END"
    )


def _concordance(scores: Any, truths: Any) -> float:
    """Share of pairs with different truths that scores put in order, ties counting half."""
    from scipy.stats import kendalltau

    score, truth = (np.asarray(each, dtype=np.float64) for each in (scores, truths))
    if len(score) < _LEAST:
        return 0.5
    tau = float(kendalltau(score, truth, variant="b").statistic)
    if np.isnan(tau):  # one value only
        return 0.5
    # tau-b is (P - Q) / sqrt(pairs with different scores * pairs with different truths)
    return float(0.5 + tau * (_different(score) / _different(truth)) ** 0.5 / 2)


def _different(values: Floats) -> float:
    _, rows = np.unique(values, return_counts=True)
    return float((len(values) ** 2 - (rows.astype(np.float64) ** 2).sum()) / 2)
