"""Rows that are alike in all but their key, time and label: sent twice, or multiplied."""

from __future__ import annotations

from math import exp, prod

from components.common.data_figures import Finding
from components.common.hashing import alike
from components.validate_data.drawn import POSITIVE, ROWS
from components.validate_data.subject import SAMPLE, Subject

_WORTH_SAYING = 0.005  # share of rows
_OVER_CHANCE = 10.0  # columns that go together make rows meet more often than by chance


def find_near_duplicates(subject: Subject) -> list[Finding]:
    """Count rows that another row equals, and those among them whose labels contradict each other.

    Equal is what `alike` says: numbers to 6 digits, texts but for case and blanks. Where columns
    are few and coarse, rows meet by chance; so their share must be ten times what it would be if
    columns had nothing to do with one another. One grouping by a 64-bit hash, which DuckDB spills.
    """
    content = subject.content
    if not content or subject.rows < 2:
        return []
    twins, contradicting = subject.one(
        "SELECT sum(rows) FILTER (rows > 1), sum(rows) FILTER (rows > 1 AND low < high) FROM "
        "(SELECT count(*) AS rows, min(positive) AS low, max(positive) AS high FROM "
        f"(SELECT {alike(content, subject.columns)} AS alike, {POSITIVE} AS positive FROM {ROWS}) "
        "GROUP BY alike)"
    )
    share = (twins or 0) / subject.rows
    if share <= _WORTH_SAYING:
        return []
    limit = max(_WORTH_SAYING, _OVER_CHANCE * _by_chance(subject, content))
    if share <= limit:
        return []
    words = (
        f"{twins} of {subject.rows} rows ({share:.2%}) equal another row in all but key, time and "
        "label"
    )
    if contradicting:
        words += f"; {contradicting} of them have a twin with the other label"
    finding = subject.finding(
        "near_duplicates",
        words,
        measured=share,
        limit=limit,
        hint="did a feed send rows again under new keys? split.by: group keeps twins together",
    )
    return [finding]


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
