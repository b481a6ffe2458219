"""What is said of a batch that moved."""

from __future__ import annotations

from components.common.data_figures import ColumnDrift, Finding
from components.common.data_settings import Level, ValidationSettings
from components.validate_data.profile import ColumnProfile, Profile

_LEAST_SHARE = 0.001  # of rows: rarer new categories are shown, not warned of
_LEAST_CHANGE = 0.005  # share of the label's variance: a smaller change of relation is no finding
_FACTOR = 1.5  # over its limit: one column alone is worth a finding only when it is clear
_LEAST_LOSS = 0.05  # of what columns said: 82 % where the past explains 82.3 % is no news
_TOLD = 3
_HINT = (
    "look at its picture in the report: a season, a new product and a broken feed look different; "
    "if it is meant, set validation.levels"
)
_LABEL_HINTS = {
    "binary": "were labels flipped, delayed, or is one class missing?",
    "regression": "has its unit changed, its source, or what it measures?",
    "sequence": "were sequences cut, joined, or read in another way?",
}


def fault_of_columns(
    now: Profile, before: Profile, validation: ValidationSettings
) -> list[Finding]:
    """Columns that came, went, or changed their kind."""
    level = validation.level("drift")
    if level == "off":
        return []
    found = []
    for name, old in before.columns.items():
        if name not in now.columns:
            found.append(_column_fault(name, level, "the reference has it, the new rows do not"))
        elif now.columns[name].kind != old.kind:
            kinds = f"it was a {old.kind} ({old.type}) and is a {now.columns[name].kind}"
            found.append(_column_fault(name, level, f"{kinds} ({now.columns[name].type})"))
    found += [
        _column_fault(name, "warn", "the new rows have it, the reference does not")
        for name in now.columns
        if name not in before.columns
    ]
    return found


def _column_fault(name: str, level: Level, message: str) -> Finding:
    return Finding(
        check="drift", column=name, level="block" if level == "block" else "warn",
        measured=None, limit=None, message=f"{name}: {message}",
        hint="write the objects again with the usual columns, or start a new reference",
    )  # fmt: skip


def drift_finding(
    column: ColumnDrift,
    far: tuple[float, float],
    sudden: tuple[float, float] | None,
    now: Profile,
    before: Profile,
) -> Finding:
    """A column moved further than its past explains."""
    measured, limit = _worst(far, sudden)
    parts = [_distances(far, sudden)]
    if column.now != column.before:
        words = "mean" if column.kind == "number" else "most frequent"
        parts.append(f"{words} {column.before or 'none'} before, {column.now or 'none'} now")
    if abs(column.null_now - column.null_before) > 0.01:
        parts.append(f"nulls {column.null_before:.1%} before, {column.null_now:.1%} now")
    below, above = now.columns[column.column].beyond
    if below + above > _LEAST_SHARE * now.rows:
        known = before.columns[column.column]
        parts.append(
            f"{(below + above) / now.rows:.1%} of the rows outside {_number(known.least)} to "
            f"{_number(known.most)}"
        )
    return Finding(
        check="drift", column=column.column, level="block" if column.level == "block" else "warn",
        measured=measured, limit=limit,
        message=f"{column.column} moved: {'; '.join(parts)}", hint=_HINT,
    )  # fmt: skip


def _number(value: float | None) -> str:
    if value is None:
        return "nothing"
    return f"{value:.0f}" if value.is_integer() else f"{value:.4g}"


def _worst(far: tuple[float, float], sudden: tuple[float, float] | None) -> tuple[float, float]:
    """The distance that is the more over its limit."""
    return max((pair for pair in (far, sudden) if pair), key=lambda pair: pair[0] / pair[1])


def _distances(far: tuple[float, float], sudden: tuple[float, float] | None) -> str:
    words = f"PSI {far[0]:.3g} (its own past explains {far[1]:.3g})"
    if sudden is not None:
        words += f", {sudden[0]:.3g} against the last days ({sudden[1]:.3g})"
    return words


def label_finding(
    column: ColumnDrift,
    far: tuple[float, float],
    sudden: tuple[float, float] | None,
    now: Profile,
    before: Profile,
) -> Finding:
    """The label moved further than its past explains."""
    measured, limit = _worst(far, sudden)
    message = f"{_label_moved(column, now, before)}: {_distances(far, sudden)}"
    if abs(column.null_now - column.null_before) > 0.01:
        message += f"; unlabelled {column.null_before:.1%} before, {column.null_now:.1%} now"
    return Finding(
        check="label_shift", column=column.column,
        level="block" if column.level == "block" else "warn",
        measured=measured, limit=limit, message=message,
        hint=_LABEL_HINTS.get(now.label_kind, _LABEL_HINTS["binary"]),
    )  # fmt: skip


def _label_moved(column: ColumnDrift, now: Profile, before: Profile) -> str:
    if now.label_kind == "binary":
        means = [
            "no label" if mean is None else f"{mean:.1%}"
            for mean in (before.label_mean, now.label_mean)
        ]
        return f"the label's mean was {means[0]} and is {means[1]}"
    one = "the label" if len(now.shows_label) == 1 else f"the label {column.column}"
    if column.kind == "number":
        what = "mean number of tokens" if now.label_kind == "sequence" else "mean"
        return f"{one}'s {what} was {column.before or 'unknown'} and is {column.now or 'unknown'}"
    if column.before == column.now:
        return f"{one}'s classes moved (most frequent as before: {column.now or 'none'})"
    was, is_now = column.before or "none", column.now or "none"
    return f"{one}'s most frequent class was {was} and is {is_now}"


def new_category_finding(
    column: ColumnProfile, rows: int, outside: tuple[float, float], validation: ValidationSettings
) -> list[Finding]:
    """Values that the reference never had, where windows of its own past had clearly fewer."""
    level = validation.level("new_category")
    share, usual = outside
    limit = max(_LEAST_SHARE, 1.25 * usual)
    if level == "off" or share <= limit:
        return []
    named = ", ".join(f"{n!r} ({r / rows:.2%})" for n, r in list(column.unseen.items())[:_TOLD])
    return [
        Finding(
            check="new_category", column=column.column,
            level="block" if level == "block" else "warn", measured=share,
            limit=limit,
            message=f"{share:.2%} of the rows have values of {column.column} that the reference "
            f"never had: {named}",
            hint="a new product is fine; another spelling, case or encoding is not",
        )
    ]  # fmt: skip


def relation_findings(
    slope: float,
    limit: float,
    changes: dict[str, float],
    limits: dict[str, float],
    validation: ValidationSettings,
) -> list[Finding]:
    """What columns say of the label: together, then those that changed most.

    Together they block below 1 / `block_factor` of what they said; one alone only warns.
    """
    found = []
    moved = [n for n in changes if changes[n] > max(_LEAST_CHANGE, _FACTOR * limits[n])]
    moved.sort(key=lambda n: -changes[n] / limits[n])
    if slope < limit - _LEAST_LOSS:
        lost = slope < 1 / validation.drift.block_factor
        blocks = lost and validation.level("label_relation") == "block"
        said = "the opposite of what" if slope < -limit / 2 else f"{max(0.0, slope):.0%} of what"
        found.append(
            Finding(
                check="label_relation", column="", level="block" if blocks else "warn",
                measured=slope, limit=limit,
                message=f"the columns say {said} they said of the label; the past explains "
                f"{limit:.0%}" + (f"; most changed: {', '.join(moved[:_TOLD])}" if moved else ""),
                hint="were labels shuffled, flipped, or joined to the wrong rows?",
            )
        )  # fmt: skip
    return found + [
        Finding(
            check="label_relation", column=name, level="warn",
            measured=changes[name], limit=limits[name],
            message=f"{name} says something else of the label than before: a change of "
            f"{changes[name]:.1%} of the label's variance, where its past explains "
            f"{limits[name]:.1%}",
            hint="has the meaning of the column changed, or that of the label?",
        )
        for name in moved
    ]  # fmt: skip
