"""Rows that are alike in all but their key, time and label: sent twice, or multiplied."""

from __future__ import annotations

from math import exp, prod

from components.common.data_figures import Finding
from components.common.hashing import alike
from components.common.tables import quoted
from components.validate_data import drawn
from components.validate_data.drawn import DRAWN, POSITIVE, ROWS, lowest
from components.validate_data.subject import SAMPLE, Subject

_WORTH_SAYING = 0.005  # share of rows
_OVER_CHANCE = 10.0  # columns that go together make rows meet more often than by chance
_AT_ONCE = 2_000_000  # rows; of more, a part of about so many says whether to count them all


def find_near_duplicates(subject: Subject) -> list[Finding]:
    """Count rows that another row equals, and those among them whose labels contradict each other.

    Equal is what `alike` says: numbers to 6 digits, texts but for case and blanks. Where columns
    are few and coarse, rows meet by chance; so their share must be ten times what it would be if
    columns had nothing to do with one another. One grouping by a 64-bit hash, which DuckDB spills;
    it takes half as long to see that many rows have next to no twins.
    """
    content = subject.content
    if not content or subject.rows < 2 or not _worth_counting(subject, content):
        return []
    _, twins, contradicting = _twins(subject, content, ROWS)
    share = twins / subject.rows
    if share <= _WORTH_SAYING:
        return []
    limit = max(_WORTH_SAYING, _OVER_CHANCE * _by_chance(subject, content))
    if share <= limit:
        return []
    words = (
        f"{twins} of {subject.rows} rows ({share:.2%}) equal another row in all but key"
        f"{' and time' if subject.label.is_input else ', time and label'}"
    )
    if contradicting:
        other = "the other" if subject.label.kind == "binary" else "another"
        words += f"; {contradicting} of them have a twin with {other} label"
    finding = subject.finding(
        "near_duplicates",
        words,
        measured=share,
        limit=limit,
        hint="did a feed send rows again under new keys? split.by: group keeps twins together",
    )
    return [finding]


def _twins(
    subject: Subject, content: list[str], source: str, *, among: str = "true"
) -> tuple[int, int, int]:
    """Rows, those that have a twin among them, and those that have one with the other label."""
    rows, twins, contradicting = subject.one(
        "SELECT sum(rows), sum(rows) FILTER (rows > 1), "
        "sum(rows) FILTER (rows > 1 AND low < high) FROM "
        "(SELECT count(*) AS rows, min(positive) AS low, max(positive) AS high FROM "
        f"(SELECT *, {alike(content, subject.columns)} AS alike, {_truth(subject)} AS positive "
        f"FROM {source}) WHERE {among} GROUP BY alike)"
    )
    return rows or 0, twins or 0, contradicting or 0


def _truth(subject: Subject) -> str:
    """SQL: what must not differ between twins; numbers and sequences of twins may."""
    if subject.label.kind == "multiclass":
        return quoted(subject.label.shown[0])
    return POSITIVE


def _worth_counting(subject: Subject, content: list[str]) -> bool:
    """Whether rows may have enough twins to say so, from some of them.

    Pairs show among rows whose hashes fall into one class of many, for they come with all their
    twins. A multitude of twins may be in no such class, but shows among rows that were drawn.
    """
    classes = subject.rows // _AT_ONCE
    if classes < 2:
        return True
    _, pairs, _ = _twins(subject, content, ROWS, among=f"alike % {classes} = 0")
    some, multitudes, _ = _twins(subject, content, DRAWN, among=lowest(drawn.SAMPLE, subject.rows))
    share = max(pairs * classes / subject.rows, multitudes / max(1, some))
    return share > _WORTH_SAYING / 2


def _by_chance(subject: Subject, content: list[str]) -> float:
    """Share of rows that would have a twin if columns were independent of one another."""
    meets = []
    for name in content:
        value = alike([name], subject.columns)
        (meet,) = subject.one(
            "SELECT sum(rows * (rows - 1.0)) / (sum(rows) * (sum(rows) - 1.0)) FROM "
            f"(SELECT count(*) AS rows FROM {SAMPLE} GROUP BY {value})"
        )
        meets.append(1.0 if meet is None else float(meet))
    return 1 - exp(-(subject.rows - 1) * prod(meets))
