"""What an ensemble is made of, gains and costs, in words: for the report and the model card."""

from __future__ import annotations

from components.common.ensemble_figures import EnsembleFigures
from components.report_run.formats import fixed, number, plain, plural, seconds, size, title

MOST = 20  # members that are named


def summary(seen: EnsembleFigures) -> str:
    """What it is, and what the mean is worth on the validation split."""
    metric = title(seen.metric)
    return (
        f"The candidate is the mean of {plural(len(seen.members), 'model')}. On the validation "
        f"split its {metric} is {fixed(seen.value, 4)}, and its members' "
        f"{fixed(seen.mean, 4)} in the mean."
    )


def members(seen: EnsembleFigures) -> list[tuple[str, str]]:
    """Each member, and its value on the validation split."""
    return [(member.what, fixed(member.value, 4)) for member in seen.members[:MOST]]


def costs(seen: EnsembleFigures) -> list[tuple[str, str, str, str]]:
    """What costs what: of one model, of all, and how many times as much."""
    one, whole = seen.one, seen.all
    rows = [
        ("parameters", f"{one.parameters:,}", f"{whole.parameters:,}",
         _times(one.parameters, whole.parameters)),
        ("package", size(one.size), size(whole.size), _times(one.size, whole.size)),
    ]  # fmt: skip
    if one.training_seconds is not None and whole.training_seconds is not None:
        times = _times(one.training_seconds, whole.training_seconds)
        told = [seconds(each.training_seconds or 0.0) for each in (one, whole)]
        rows.append(("training in this run", told[0], told[1], times))
    for what, first, second in (
        ("predicting one row", one.row_ms, whole.row_ms),
        ("predicting 1,000 rows", one.rows_ms, whole.rows_ms),
    ):
        rows.append((what, f"{number(first)} ms", f"{number(second)} ms", _times(first, second)))
    return rows


def _times(one: float, whole: float) -> str:
    return f"× {plain(whole / one, 2)}" if one else "–"
