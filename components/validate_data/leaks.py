"""Columns that alone know the label: what a model finds first, and does not have when it serves."""

from __future__ import annotations

from components.common.data_figures import Finding
from components.common.tables import quoted
from components.common.values import kind_of, number
from components.validate_data.class_leaks import ranked_alone
from components.validate_data.drawn import PLACE, POSITIVE, ROWS
from components.validate_data.subject import SAMPLE, Subject

_LEAST = 30  # rows of each class: by luck they rank to 0.95 once in a hundred million times
_BINS = 64  # a number's quantiles, whose rates show what its order does not
_FEW = 2_000  # different values: as many rows of each, in the sample, that a rate can be learned
_REPEATED = 20  # rows a value, before rates are learned from all rows
_PRIOR = 1.0  # rows of the mean rate that are added to each value's
_WORDS = {
    "multiclass": "tells the classes apart with a mean AUC of",
    "multilabel": "ranks a label with an AUC of",
    "regression": "puts pairs of labels in their order, a share of",
}


def find_leaks(subject: Subject) -> list[Finding]:
    """Rank the labels by each column alone; the AUC is the better of three.

    Numbers by their order. Any column by the label's rate in each of its values (of numbers: in
    64 quantiles), learned on one half of the rows and judged on the other; a null is a value, too.
    And by whether there is a value at all, over all rows. The first two go by a sample of 100,000
    rows a class (a standard error of 0.0007 at 0.95), but for columns with more than 2,000
    different values, whose rates are learned from all rows. Columns whose values hardly repeat
    have no rates to be learned. For labels that are not yes or no: `class_leaks.py`.

    Returns:
        A finding for each column above `validation.leak_auc`, the strongest first.
    """
    limit = subject.settings.validation.leak_auc
    binary = subject.label.kind == "binary"
    measure = "ranks the labels with an AUC of" if binary else _WORDS[subject.label.kind]
    found = []
    for name in subject.judged:
        auc, how = _of_yes_and_no(subject, name) if binary else ranked_alone(subject, name)
        if auc <= limit:
            continue
        found.append(
            subject.finding(
                "leak",
                f"the column {name!r} alone {measure} {auc:.3f} (limit "
                f"{limit:g}), {how}: it seems to know them",
                column=name, measured=auc, limit=limit,
                hint="find out whether it is known at prediction time; if it truly is, raise "
                "validation.leak_auc",
            )
        )  # fmt: skip
    return sorted(found, key=lambda finding: (-(finding.measured or 0), finding.column))


def _of_yes_and_no(subject: Subject, name: str) -> tuple[float, str]:
    ways = (_by_null(subject, name), _by_order(subject, name), _by_rate(subject, name))
    return max(ways, key=lambda way: way[0])


def _by_null(subject: Subject, name: str) -> tuple[float, str]:
    how = "by being null or not"
    if min(subject.positives, subject.negatives) < _LEAST:
        return 0.5, how
    _, no, yes = subject.seen[name].known
    positive, negative = yes / subject.positives, no / subject.negatives
    return 0.5 + abs(positive - negative) / 2, how


def _by_order(subject: Subject, name: str) -> tuple[float, str]:
    how = "by its order"
    if kind_of(subject.columns[name]) == "text":
        return 0.5, how
    value = number(name, subject.columns[name])
    groups = (
        f"SELECT {value} AS score, count(*) FILTER ({POSITIVE}) AS positives, "
        f"count(*) FILTER (NOT {POSITIVE}) AS negatives FROM {SAMPLE} "
        f"WHERE {value} IS NOT NULL GROUP BY 1"
    )
    auc = _auc(subject, groups)
    return max(auc, 1 - auc), how


def _by_rate(subject: Subject, name: str) -> tuple[float, str]:
    different, a_row = subject.seen[name].distinct or 0, subject.seen[name].own_value or 0.0
    if kind_of(subject.columns[name]) in ("real", "time") and different > _FEW:
        value = number(name, subject.columns[name])
        binned = (
            f"CASE WHEN {value} IS NULL THEN -1 ELSE floor({_BINS} * "
            f"percent_rank() OVER (ORDER BY {value} NULLS LAST)) END"
        )
        return _rates_auc(subject, binned, SAMPLE), f"by its rate in {_BINS} quantiles"
    how = "by the rate of each of its values"
    if different <= _FEW:
        return _rates_auc(subject, quoted(name), SAMPLE), how
    if a_row * _REPEATED <= 1:
        return _rates_auc(subject, quoted(name), ROWS), how
    return 0.5, how


def _rates_auc(subject: Subject, value: str, source: str) -> float:
    """AUC of the rates that one half of the rows has, on the other half."""
    mean = subject.positives / max(1, subject.positives + subject.negatives)
    if source == SAMPLE:
        (mean,) = subject.one(f"SELECT avg(CAST({POSITIVE} AS INT)) FROM {SAMPLE}")
        mean = mean or 0.0
    learned, judged = f"{PLACE} % 2 = 0", f"{PLACE} % 2 = 1"
    groups = (
        f"SELECT (count(*) FILTER ({learned} AND positive) + {_PRIOR * mean!r}) / "
        f"(count(*) FILTER ({learned}) + {_PRIOR}) AS score, "
        f"count(*) FILTER ({judged} AND positive) AS positives, "
        f"count(*) FILTER ({judged} AND NOT positive) AS negatives FROM "
        f"(SELECT {value} AS value, {POSITIVE} AS positive, {PLACE} FROM {source} "
        f"WHERE {POSITIVE} IS NOT NULL) GROUP BY value"
    )
    return _auc(subject, groups)


def _auc(subject: Subject, groups: str) -> float:
    """Area under the ROC curve of scores with their positives and negatives; ties count half.

    0.5 where too few rows of a class have a score. Mann and Whitney 1947.
    """
    auc, positives, negatives = subject.one(
        "SELECT sum(positives * (below + negatives / 2.0)) / (sum(positives) * sum(negatives)), "
        "sum(positives), sum(negatives) FROM (SELECT positives, negatives, "
        "sum(negatives) OVER (ORDER BY score) - negatives AS below FROM "
        f"(SELECT score, CAST(sum(positives) AS DOUBLE) AS positives, "
        f"CAST(sum(negatives) AS DOUBLE) AS negatives FROM ({groups}) GROUP BY score))"
    )
    if min(positives or 0, negatives or 0) < _LEAST:
        return 0.5
    return float(auc)
