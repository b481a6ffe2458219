"""What every benchmark prints: a table of ratios, and one JSON object as the last line."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def rounded(value: float) -> float:
    """Round to three decimals, and what is smaller than 0.1 to three digits."""
    return round(value, 3) if abs(value) >= 0.1 else float(f"{value:.3g}")


def words_of(values: Sequence[float]) -> str:
    """Return the median and, in brackets, the range."""
    return f"{statistics.median(values):.2f} ({min(values):.2f}–{max(values):.2f})"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def last_line(name: str, figures: Mapping[str, Sequence[float]]) -> str:
    """Return the JSON object: medians, ranges and the commit.

    Args:
        name: Of the benchmark.
        figures: One value a round, by name.
    """
    return json.dumps(
        {
            "name": name,
            "figures": {n: rounded(statistics.median(v)) for n, v in figures.items()},
            "spread": {n: [rounded(min(v)), rounded(max(v))] for n, v in figures.items()},
            "commit": commit(),
        }
    )


def commit() -> str:
    """Return the hash of what is checked out; empty outside a clone."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False
    ).stdout.strip()
