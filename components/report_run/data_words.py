"""Sentences about the data: what came, what changed, what was set aside, what was found."""

from __future__ import annotations

from components.common.data_figures import (
    ColumnDrift,
    ColumnFigures,
    Drift,
    Expectation,
    SnapshotFigures,
    SplitFigures,
    ValidateFigures,
    Why,
)
from components.report_run.formats import (
    MINUS,
    count,
    fixed,
    instant,
    measured,
    percent,
    plain,
    plural,
    sentence,
    short,
    size,
    title,
)

WHY: dict[Why, str] = {
    "off": "validation.levels turns this off",
    "refused": "the suite refused the rows, and what it says comes first",
    "no_key": "the data lacks a column of data.row_key",
    "no_rows": "no row was left to look at",
    "no_time": "data.time_column names no column",
    "no_reference": "there is no champion’s data and no snapshot before this one",
    "kind": "there is no such check of a label of this kind",
    "no_new_rows": "no row is new since the data that would be compared with",
}
MOST_NAMES = 3  # of columns in a sentence; the tables hold the rest


def names(columns: list[str], *, most: int = MOST_NAMES) -> str:
    """The first few names, and that there are more."""
    more = f" and {count(len(columns) - most)} more" if len(columns) > most else ""
    return ", ".join(short(name, 40) for name in columns[:most]) + more


def stated(text: str, columns: list[str]) -> str:
    """As `sentence`, but a column's name at its start stays as it is written."""
    said = sentence(text)
    return text[:1] + said[1:] if any(text.startswith(name) for name in columns if name) else said


def is_warning(expectation: Expectation) -> bool:
    return expectation.severity.lower() != "critical"  # as validate_data decides


def came(seen: SnapshotFigures) -> str:
    """What the snapshot holds and what of it is new."""
    held = f"{plural(seen.rows, 'row')} in {plural(seen.object_count, 'object')}"
    text = f"{held} ({size(seen.size)}); "
    if not seen.new_count:
        return text + "no object is new."
    if seen.new_count == seen.object_count:
        return text + ("it is new." if seen.new_count == 1 else "all of them are new.")
    are = "is" if seen.new_count == 1 else "are"
    new = f"{plural(seen.new_count, 'object')} {are} new since the snapshot before"
    keys = [o.key for o in seen.objects if o.new][-MOST_NAMES:]
    among = "" if len(keys) == seen.new_count else "among them "
    named = f": {among}{', '.join(short(key, 80) for key in keys)}" if keys else ""
    return f"{text}{new}, with {plural(seen.new_rows, 'row')}{named}."


def found(seen: ValidateFigures) -> str:
    """How many findings there are, and what they do."""
    if not seen.findings:
        return f"The checks {'that were made ' if seen.not_run else ''}found nothing."
    every = len(seen.findings)
    blocking = sum(f.level == "block" for f in seen.findings)
    text = plural(every, "finding")
    if blocking in (0, every):
        verb = "block" if blocking else "warn"
        return text + (f", which {verb}s." if every == 1 else f", all of which {verb}.")
    one = "blocks" if blocking == 1 else "block"
    other = "warns" if every - blocking == 1 else "warn"
    return f"{text}: {count(blocking)} {one}, {count(every - blocking)} {other}."


def not_checked(seen: ValidateFigures) -> list[str]:
    """Which checks were not made, and why: a sentence for each reason."""
    return [
        sentence(f"not checked: {', '.join(map(title, one.checks))}; {WHY[one.why]}")
        for one in seen.not_run
    ]


def not_compared(seen: ValidateFigures) -> str:
    """Why there is nothing beside the new rows."""
    nothing = ("no_rows", "no_key", "no_reference", "no_new_rows")
    why = next((WHY[one.why] for one in seen.not_run if one.why in nothing), "")
    return sentence(f"nothing was compared: {why}" if why else "nothing was compared")


def expected(seen: ValidateFigures) -> str:
    """How many expectations held."""
    if not seen.expectations:
        return "The suite has no expectation."
    failed = [e for e in seen.expectations if not e.success]
    warning = sum(is_warning(e) for e in failed)
    held = len(seen.expectations) - len(failed)
    text = f"{count(held)} of {plural(len(seen.expectations), 'expectation')} held"
    if not failed:
        return sentence(text)
    parts = [f"{count(len(failed) - warning)} blocking" * (len(failed) > warning)]
    parts += [f"{count(warning)} as a warning" * (warning > 0)]
    return sentence(f"{text}; failed: {', '.join(part for part in parts if part)}")


def set_aside(seen: ValidateFigures, budget: float | None) -> str:
    """How many rows broke a rule, beside what is allowed."""
    rows = sum(seen.quarantined.values())
    allowed = "" if budget is None else f"the budget of {plain(100 * budget)} %"
    if not rows:
        return "No row was set aside."
    share = f" ({percent(rows / seen.rows)})" if seen.rows else ""
    text = f"{count(rows)} of {plural(seen.rows, 'row')}{share} {'was' if rows == 1 else 'were'}"
    rules = sum(n > 0 for n in seen.quarantined.values())
    text += f" set aside by {plural(rules, 'rule')}"
    if budget is not None and seen.rows:
        text += f", {'more than' if rows > budget * seen.rows else 'within'} {allowed}"
    return sentence(text)


def moved(seen: Drift) -> list[ColumnDrift]:
    """The columns that are not steady, in the order of the figures: the furthest first."""
    return [c for c in seen.columns if c.level in ("warn", "block")]


def drifted(seen: Drift) -> str:
    """How many columns are further from the reference than their threshold."""
    far = moved(seen)
    since = f" since {seen.since}," if seen.since else ""
    compared = f"{plural(seen.rows_now, 'row')}{since} "
    compared += f"against {plural(seen.rows_before, 'row')} of "
    text = compared + short(seen.reference, 160) + ": "
    unknown = [c for c in seen.columns if c.psi is None and c.level in ("steady", "off")]
    off = [c for c in seen.columns if c.psi is not None and c.level == "off"]
    steady = len(seen.columns) - len(unknown) - len(off)
    if not far and (unknown or off):
        parts = [f"{plural(steady, 'column')} steady"] * (steady > 0)
        parts += [f"{count(len(unknown))} not measured"] * bool(unknown)
        parts += [f"{count(len(off))} not judged, for drift is off"] * bool(off)
        return sentence(text + ", ".join(parts))
    if not far:
        return text + f"no column of {count(len(seen.columns))} moved."
    blocking = sum(c.level == "block" for c in far)
    text += f"{count(len(far))} of {plural(len(seen.columns), 'column')} moved"
    text += f", {count(blocking)} of them so far that it blocks" if blocking else ""
    return sentence(f"{text}: {names([c.column for c in far])}")


def since(first: Drift, last: Drift) -> str:
    """Which of the columns that moved against one reference moved after a later one."""
    far = [c.column for c in moved(first)]
    levels = {c.column: c.level for c in last.columns}
    fresh = [name for name in far if levels.get(name) in ("warn", "block")]
    old = [name for name in far if levels.get(name) == "steady"]
    reference = short(last.reference, 160)
    parts = [f"moved since {reference}: {names(fresh)}"] if fresh else []
    parts += [f"moved before that: {names(old)}"] if old else []
    return sentence("; ".join(parts))


def joint(seen: Drift) -> str:
    """How well new rows can be told from old."""
    if seen.classifier_auc is None:
        return "Whether columns moved together was not measured."
    text = f"a classifier tells new rows from old with an AUC of {fixed(seen.classifier_auc, 2)}"
    text += " (0.5 is guessing, 1 is certainty)"
    by = seen.classifier_columns
    return sentence(f"{text}, going by {names(by)}" if by else text)


def column_changed(seen: ColumnDrift) -> str:
    """What a column is now and was before, in words."""
    what = "mean" if seen.kind == "number" else "mostly"
    text = f"{what} {short(seen.now, 40) or 'unknown'}, was {short(seen.before, 40) or 'unknown'}"
    parts = [text] if seen.now or seen.before else []
    if seen.null_now != seen.null_before:
        parts.append(f"nulls {percent(seen.null_now)}, were {percent(seen.null_before)}")
    for word, values in (("new", seen.new_categories), ("gone", seen.vanished_categories)):
        if values:
            parts.append(f"{word}: {names(values)}")
    return " ".join(sentence(part) for part in parts)


def distance(seen: ColumnDrift) -> str:
    """The population stability index beside its threshold."""
    if seen.psi is None:
        return "PSI not measured"
    text = f"PSI {measured(seen.psi)}"
    return text + (f", threshold {measured(seen.threshold)}" if seen.threshold is not None else "")


def extent(seen: ColumnFigures) -> str:
    """From the smallest to the largest value."""
    if not (seen.low or seen.high):
        return "–"
    low, high = (_value(seen, end) for end in (seen.low, seen.high))
    return low if low == high else f"{low} to {high}"


def usual(seen: ColumnFigures) -> str:
    """The median or the most frequent value."""
    return _value(seen, seen.typical)


def _value(seen: ColumnFigures, value: str) -> str:
    if not value:
        return "–"
    if seen.kind == "number":
        return _number(value)
    return short(instant(value) if seen.kind == "time" else value, 40)


def _number(value: str) -> str:
    """A number as the profile wrote it, in few digits; years and hours without commas."""
    try:
        amount = float(value)
    except ValueError:
        return short(value, 40)
    if not amount.is_integer() or abs(amount) >= 1e15:
        return plain(amount, 4)
    return count(int(amount)) if abs(amount) >= 10_000 else f"{amount:.0f}".replace("-", MINUS)


def proved(seen: SplitFigures) -> str:
    """How many claims about the parts were proved."""
    if not seen.proof:
        return "No proof was kept that the parts are apart."
    return f"{plural(len(seen.proof), 'claim')} about the parts, each proved by a query:"
