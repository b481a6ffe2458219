"""Sentences about the label, whatever its kind: of all rows, and of each part."""

from __future__ import annotations

from components.common.data_figures import Drift, LabelKind, Part, SplitFigures
from components.report_run.formats import count, measured, percent, sentence, short

_NO_LABEL = "Whether the label moved could not be measured."
_MOST = 5  # labels that are told; the table holds the rest
_USUAL: dict[LabelKind, str] = {
    "multiclass": "the most frequent class of {} is {}, before {}",
    "multilabel": "the label {} is yes in {}, before in {}",
    "regression": "the mean of {} is {}, before {}",
    "sequence": "a sequence has {1} tokens in the mean, before {2}",
}
_NAMES: dict[LabelKind, str] = {
    "binary": "Positive labels",
    "multiclass": "Most frequent class",
    "multilabel": "Labels",
    "regression": "Mean label",
    "sequence": "Mean tokens",
}


def label(seen: Drift) -> str:
    """How often the label is positive, now and before; of other kinds what is usual of it."""
    if seen.label_kind != "binary":
        return " ".join(sentence(one) for one in _labels(seen)) or _NO_LABEL
    if seen.label_now is None:
        return _NO_LABEL
    text = f"the label is positive in {percent(seen.label_now)} of the labelled rows"
    if seen.label_before is not None:
        text += f", before in {percent(seen.label_before)}"
    return sentence(text)


def _labels(seen: Drift) -> list[str]:
    """What is usual of the columns that show the label, now and before: the furthest first."""
    told = [c for c in seen.columns if c.column in seen.label_columns and (c.now or c.before)]
    text = _USUAL.get(seen.label_kind, "{} is {}, before {}")
    said = [
        text.format(short(c.column, 40), _usual(seen, c.now), _usual(seen, c.before))
        for c in told[:_MOST]
    ]
    return said + [f"so much for {count(_MOST)} of {count(len(told))} labels"] * (len(told) > _MOST)


def _usual(seen: Drift, value: str) -> str:
    if seen.label_kind == "multilabel" and value:
        return percent(float(value))
    return short(value, 40) or "unknown"


def label_fact(kind: LabelKind, seen: Drift | None) -> tuple[str, str, str]:
    """A name, a value and the value before, for the head of the data's page."""
    name = _NAMES[kind]
    if seen is None:
        return name, "", ""
    if kind == "binary":
        shares = [
            None if each is None else percent(each) for each in (seen.label_now, seen.label_before)
        ]
        return name, shares[0] or "", shares[1] or "" if shares[0] else ""
    told = [c for c in seen.columns if c.column in seen.label_columns]
    if len(told) != 1:
        moved_ones = sum(c.level in ("warn", "block") for c in told)
        return name, f"{count(moved_ones)} of {count(len(told))} moved" if told else "", ""
    return name, told[0].now, told[0].before


def part_label(seen: SplitFigures) -> str:
    """What stands over the labels of the parts."""
    heads = {
        "binary": "Positive", "multiclass": "Classes", "multilabel": "Yes",
        "regression": "Mean label", "sequence": "Mean tokens",
    }  # fmt: skip
    return heads[seen.kind]


def labels_of_part(seen: SplitFigures, part: Part) -> str:
    """The labels of a part: a share, a mean, or the classes with the fewest and the most rows."""
    if seen.kind == "binary":
        return "unknown" if part.positive_rate is None else percent(part.positive_rate)
    if seen.kind == "multilabel":
        shares = [f"{short(name, 30)} {percent(share)}" for name, share in part.labels.items()]
        more = f" and {count(len(shares) - 6)} more" if len(shares) > 6 else ""
        return ", ".join(shares[:6]) + more or "unknown"
    if seen.kind != "multiclass":
        return next((measured(value) for value in part.labels.values()), "unknown")
    if not part.labels:
        return "unknown"
    order = sorted(part.labels, key=lambda name: part.labels[name])
    ends = [order[0], order[-1]] if len(order) > 1 else order
    told = [f"{short(name, 30)} {percent(part.labels[name])}" for name in ends]
    return f"{count(len(order))}: {' to '.join(told)}"
