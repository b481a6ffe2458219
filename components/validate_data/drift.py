"""How far a new batch is from a reference, and whether the reference's own past explains it.

Two questions are asked of each column. Is the batch further from all of the reference than chance
and the past explain ("far")? And is it further from the reference's last days than the data has
ever moved at once ("sudden")? A season goes far, but never suddenly; a fault does both.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from components.common.data_figures import Bars, ColumnDrift, Drift, Finding
from components.common.data_settings import DriftSettings
from components.common.settings import ProjectSettings
from components.validate_data import relation
from components.validate_data.distances import (
    chi_square_p,
    jensen_shannon,
    kolmogorov_smirnov,
    psi,
    shares_of,
)
from components.validate_data.drift_words import (
    drift_finding,
    fault_of_columns,
    label_finding,
    new_category_finding,
    relation_findings,
)
from components.validate_data.history import (
    History,
    Past,
    family_quantile,
    history_of,
    past_of,
)
from components.validate_data.profile import ColumnProfile, Counts, Floats, Profile
from components.validate_data.shift import Alarm, Shift

_NAMED = 10  # categories that are told
_LEAST_SHARE = 0.001  # of rows: a rarer new or vanished category is not told
# Correlation of a column's daily height with the day. Flights reach 0.91 (temperature, to July).
_CLOCK = 0.98
_FEWEST_DAYS = 8


def drift_from(
    now: Profile, before: Profile, *, settings: ProjectSettings, reference: str = ""
) -> tuple[Drift, list[Finding]]:
    """Compare a new batch with a reference, column by column.

    Args:
        now: Of the new rows, taken with the reference's cells (`take_profile(…, edges=before)`).
        before: Of the reference.
        settings: `validation.drift` and the levels of drift, new_category, label_shift and
            label_relation.
        reference: In words, for the report.

    Returns:
        The figures, the furthest column first, and what is found.
    """
    validation = settings.validation
    history = history_of(now, before, draws=validation.drift.resamples)
    alike = [
        n
        for n in before.columns
        if n in now.columns and [n] != settings.data.row_key and _comparable(now, before, n)
    ]
    shifts = _shifts(now, before, alike, history, validation.drift)
    columns = []
    findings = fault_of_columns(now, before, validation)
    for name in before.columns:
        if name not in now.columns or now.columns[name].kind != before.columns[name].kind:
            continue  # said by `fault_of_columns`
        shift = shifts.get(name)
        allowed = validation.level("label_shift" if name in before.shows_label else "drift")
        level: Alarm | Literal["off"] = "off" if allowed == "off" else "steady"
        if shift is not None and level != "off":
            level = shift.level(validation.drift, ordered=before.ordered)
            level = "warn" if (level, allowed) == ("block", "warn") else level
        columns.append(_figures(now, before, name, shift, level))
        if shift is not None and level in ("warn", "block"):
            tell = label_finding if name in before.shows_label else drift_finding
            findings.append(tell(columns[-1], shift.far, shift.sudden, now, before))
        if shift is not None and now.columns[name].kind == "category":
            findings += new_category_finding(now.columns[name], now.rows, shift.outside, validation)
    if validation.level("label_relation") != "off":
        findings += _relation(now, before, alike, history, settings)
    columns.sort(key=lambda c: (-(c.psi or 0.0), c.column))
    findings.sort(key=lambda f: f.level != "block")
    drift = Drift(
        reference=reference, rows_now=now.rows, rows_before=before.rows, since=_since(now),
        columns=columns,
        label_now=now.label_mean, label_before=before.label_mean,
        classifier_auc=None, classifier_columns=[],
        label_kind=now.label_kind, label_columns=sorted(now.shows_label & now.columns.keys()),
    )  # fmt: skip
    return drift, findings


def _since(now: Profile) -> str:
    """The first day of the rows; a stray old one among 1,000 is not meant."""
    upto = np.cumsum(now.cluster_rows.sum(axis=0))
    if not now.ordered or not len(upto):
        return ""
    first = int(now.first_days[np.searchsorted(upto, upto[-1] / 1000, side="right")])
    return str(np.datetime64(first, "D"))


def _comparable(now: Profile, before: Profile, name: str) -> bool:
    a, b = now.columns[name], before.columns[name]
    return a.kind == b.kind and a.kind != "time" and a.cells == b.cells and not _clock(b, before)


def _clock(column: ColumnProfile, profile: Profile) -> bool:
    """Whether a number goes up (or down) with the days, as counters and epochs do."""
    if column.kind != "number" or not profile.ordered:
        return False
    counts = column.daily.sum(axis=0)[:, :-1]
    there = counts.sum(axis=1) > 0
    if there.sum() < _FEWEST_DAYS or counts.shape[1] < _FEWEST_DAYS:
        return False
    height = shares_of(counts[there]) @ np.arange(counts.shape[1])
    if not np.ptp(height):
        return False
    return bool(abs(np.corrcoef(height, profile.first_days[there])[0, 1]) > _CLOCK)


def _shifts(
    now: Profile, before: Profile, names: list[str], history: History, settings: DriftSettings
) -> dict[str, Shift]:
    if not names or not len(before.first_days) or not now.rows:
        return {}
    waits = now.has_labels  # some have their label: others may wait for theirs
    counts = {n: _daily(before, n, waits=waits) for n in names}
    rows = before.cluster_rows.sum(axis=0)
    pasts = {n: past_of(counts[n], psi, history, thin=True) for n in names}
    chance = family_quantile([pasts[n].drawn for n in names], settings.false_alarms)
    found = {}
    for name, by_chance in zip(names, chance, strict=True):
        past = pasts[name]
        a, b = now.columns[name], before.columns[name]
        far = float(psi(_totals(now, name, waits=waits), _totals(before, name, waits=waits)))
        limit = max([settings.least_psi, float(by_chance), *past.windows])
        found[name] = Shift(
            far=(far, limit),
            sudden=_sudden(_daily(now, name, waits=waits), counts[name], history, past, settings),
            outside=(_outside(a, b, now.rows), _strangest(b, history, rows)),
        )
    return found


def _daily(profile: Profile, name: str, *, waits: bool) -> Floats:
    """float64 [clusters, bins]: a column's rows; of a label that may wait, those that have one.

    The newest rows often have no label yet, and that these are more now is no shift of it.
    """
    daily: Floats = profile.columns[name].daily.sum(axis=0).astype(np.float64)
    if waits and name in profile.shows_label:
        daily[:, -1] = 0
    return daily


def _totals(profile: Profile, name: str, *, waits: bool) -> Counts:
    """int64 [bins]: the same of all rows, those without a time included."""
    column = profile.columns[name]
    totals = column.cells.merged(column.totals).copy()
    if waits and name in profile.shows_label:
        totals[-1] = 0
    return totals


def _sudden(
    now: Floats, before: Floats, history: History, past: Past, settings: DriftSettings
) -> tuple[float, float] | None:
    if not len(past.steps):
        return None
    head, tail = now[: history.head].sum(axis=0), before[history.tail :].sum(axis=0)
    return float(psi(head, tail)), max([settings.least_psi, *past.steps])


def _outside(now: ColumnProfile, before: ColumnProfile, rows: int) -> float:
    """Share of rows with values that the reference does not have at all."""
    if now.kind == "number":
        return sum(now.beyond) / max(1, rows)
    other = before.totals[-2] if len(before.totals) > 1 else 0
    return float(now.totals[-2]) / max(1, rows) if not other else 0.0


def _strangest(before: ColumnProfile, history: History, rows: Counts) -> float:
    """The largest share of a window of the past whose names had never been seen until then.

    A name's rows are taken to be spread evenly over the days from its first to its last.
    """
    first, last = before.seen
    begins, ends = (history.past if history.past.count else history.steps).now
    if not len(begins) or not before.cells.names:
        return 0.0
    born = (first >= begins[:, None]) & (first < ends[:, None]) & (last >= 0)
    lasting = np.maximum(1, last + 1 - first)
    inside = np.clip(np.minimum(ends[:, None], last + 1) - first, 0, None) / lasting
    new = (born * inside * before.totals[: len(before.cells.names)]).sum(axis=1)
    upto = np.concatenate([[0], np.cumsum(rows)])
    return float((new / np.maximum(1, upto[ends] - upto[begins])).max())


def _figures(
    now: Profile,
    before: Profile,
    name: str,
    shift: Shift | None,
    level: Alarm | Literal["off"],
) -> ColumnDrift:
    a, b = now.columns[name], before.columns[name]
    text = a.kind in ("category", "boolean")
    alike = shift is not None
    vanished = [
        n
        for n, here, there in zip(a.cells.names, a.totals, b.totals, strict=False)
        if text and alike and not here and there > _LEAST_SHARE * before.rows
    ]
    return ColumnDrift(
        column=name, kind=a.kind,
        psi=shift.far[0] if shift else None,
        js=jensen_shannon(a.totals, b.totals) if alike else None,
        ks=kolmogorov_smirnov(a.totals[:-1], b.totals[:-1]) if alike and not text else None,
        chi2_p=chi_square_p(a.totals[:-1], b.totals[:-1]) if alike and text else None,
        threshold=shift.far[1] if shift else None,
        level=level,
        now=_middle(a), before=_middle(b),
        null_now=a.nulls / max(1, now.rows), null_before=b.nulls / max(1, before.rows),
        new_categories=list(a.unseen)[:_NAMED], vanished_categories=vanished[:_NAMED],
        bars=Bars(
            labels=b.bin_labels(),
            now=shares_of(a.cells.merged(a.totals)).tolist(),
            before=shares_of(b.cells.merged(b.totals)).tolist(),
        ) if a.cells == b.cells else Bars(labels=[], now=[], before=[]),
    )  # fmt: skip


def _middle(column: ColumnProfile) -> str:
    if column.kind == "number":
        return "" if column.mean is None else f"{column.mean:.4g}"
    return column.typical


def _relation(
    now: Profile,
    before: Profile,
    alike: list[str],
    history: History,
    settings: ProjectSettings,
) -> list[Finding]:
    """What the columns say of the label, together and one by one."""
    names = [n for n in alike if n != before.label and before.columns[n].cells.bins > 2]
    if not names or now.label_mean in (None, 0.0, 1.0) or before.label_mean in (None, 0.0, 1.0):
        return []  # one class, or none: the label's own shift says so
    counts = {n: _labelled(before.columns[n]) for n in names}
    pasts = {n: past_of(counts[n], relation.compared, history, thin=False) for n in names}
    drawn = relation.slope(np.sum([p.drawn for p in pasts.values()], axis=0))
    windows = relation.slope(np.sum([p.windows for p in pasts.values()], axis=0))
    false_alarms = settings.validation.drift.false_alarms
    limit = float(min([np.quantile(drawn, false_alarms), *windows]))
    found = {
        n: relation.compared(_labelled(now.columns[n]).sum(axis=0), counts[n].sum(axis=0))
        for n in names
    }
    chance = family_quantile([p.drawn[:, 2] for p in pasts.values()], false_alarms)
    limits = {
        n: max([float(q), *pasts[n].windows[:, 2]]) for n, q in zip(names, chance, strict=True)
    }
    slope = float(relation.slope(np.sum(list(found.values()), axis=0)))
    changes = {n: float(f[2]) for n, f in found.items()}
    return relation_findings(slope, limit, changes, limits, settings.validation)


def _labelled(column: ColumnProfile) -> Floats:
    """float64 [clusters, bins, 2]: labelled rows, and those labelled 1."""
    _, no, yes = column.daily
    return np.stack([no + yes, yes], axis=-1).astype(np.float64)
