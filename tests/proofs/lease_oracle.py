"""What the witnesses of a fight for a lease say, none of whom is the lease."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from tests.proofs.lease_contenders import SECONDS

BAD = ("two_holders", "stale_writes", "tokens_repeated", "late", "broken")
Figures = dict[str, float]


def judged(place: Path) -> Figures:
    """Hear the witnesses of a fight."""
    if not (place / "facts").exists():
        return {"broken": 1, "longest_held": 0.0} | dict.fromkeys(BAD[:-1], 0)
    facts, disturbed = (json.loads((place / name).read_text()) for name in ("facts", "disturbed"))
    beliefs = _lines(place / "beliefs")
    writes = _lines(place / "resource")
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for line in beliefs:
        if line["what"] == "holds":
            token, at = line["token"], line["at"]
            first[token] = min(first.get(token, at), at)
            last[token] = max(last.get(token, at), at)
    tokens = sorted(first)
    pairs = [(a, b) for n, a in enumerate(tokens) for b in tokens[n + 1 :]]
    taken = [line for line in writes if line["taken"]]
    grants = Counter(line["token"] for line in beliefs if line["what"] == "took")
    late, longest = _lateness(
        [json.loads(line) for line in (place / "looks").read_text().splitlines()]
    )
    return {
        **facts,
        "killed": disturbed.get("SIGKILL", 0),
        "stopped": disturbed.get("SIGSTOP", 0) + disturbed.get("stops", 0),
        "replies_lost": sum(line["token"] for line in beliefs if line["what"] == "lost"),
        "holders": sum(grants.values()),
        "taken_over": sum(line["what"] == "took over" for line in beliefs),
        "writes": len(taken),
        "writes_refused": len(writes) - len(taken),
        "two_holders": sum(last[a] >= first[b] for a, b in pairs),
        "stale_writes": sum(
            any(first[b] <= line["at"] for b in tokens if b > line["token"]) for line in taken
        ),
        "tokens_repeated": sum(n - 1 for n in grants.values()),
        "late": late,
        "longest_held": longest,
        "broken": int(disturbed["hung"] > 0),
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, path.read_text().splitlines())) if path.exists() else []


def _lateness(looks: list[list[Any]]) -> tuple[int, float]:
    """Count looks that found held what should have been free; say how old the oldest held one was.

    A version was written before the end of the first look that saw it: a look that began later than
    the lease's time after that must find it free.
    """
    seen: dict[str, float] = {}
    late, longest = 0, 0.0
    for began, ended, version, held, free in looks:
        since = began - seen.setdefault(version, ended)
        if held and not free:
            late += since > SECONDS
            longest = max(longest, since)
    return late, round(longest, 2)
