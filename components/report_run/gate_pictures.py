"""The picture that decides: one row a gate, right of the line it passes."""

from __future__ import annotations

from markupsafe import Markup

from components.common.decision_figures import EvaluateFigures, Gate
from components.report_run.decision_words import better
from components.report_run.forest import Group, Row, forest, known, reach
from components.report_run.formats import decimals, interval, percent, plain, short, title
from components.report_run.formats import signed as with_sign
from components.report_run.svg import picture
from components.report_run.words import deciding_gate

MOST_GATES = 16
MARKS = {
    "pass": "circle good",
    "fail": "square bad",
    "unsure": "diamond hollow",
    "skipped": "circle hollow",
}
DIFFERENCES = ("champion", "baseline", "slices")
AT_MOST = ("calibration", "size", "latency")
_APART = 4  # times as far: rows of two kinds get two axes


def gates_picture(seen: EvaluateFigures, *, noise: float) -> Markup:
    """Draw every gate; empty where no gate says its number, as in old records.

    Args:
        noise: Deviation of retraining, shaded around zero beside the champion.
    """
    if not any(known(gate.value) for gate in seen.gates):
        return Markup("")
    groups = _groups(seen, noise)
    return picture(
        "gates",
        title="What every gate saw, and what it needs",
        description=" ".join(
            f"{title(g.name)}: {g.outcome}, saw {short(g.observed, 120)}, needs "
            f"{short(g.threshold, 120)}."
            for g in shown(seen)
        ),
        draw=lambda width: forest(groups, width),
    )


def shown(seen: EvaluateFigures) -> list[Gate]:
    """The gates of the picture: where there are too many, those that held back stay."""
    ranked = sorted(seen.gates, key=lambda g: g.outcome not in ("fail", "unsure"))
    kept = {id(gate) for gate in ranked[:MOST_GATES]}
    return [gate for gate in seen.gates if id(gate) in kept]


def _groups(seen: EvaluateFigures, noise: float) -> list[Group]:
    gates, decided = shown(seen), deciding_gate(seen)
    made: list[Group] = []
    differences = [g for g in gates if g.kind in DIFFERENCES and known(g.value)]
    for kinds, unit in _axes(differences):
        rows = [
            _difference(g, g is decided) for g in differences if g.kind in kinds and g.unit == unit
        ]
        words = f"{title(unit) or 'paired'} difference"
        band = noise if "champion" in kinds and unit == seen.metric else 0.0
        made.append(Group(words, rows, ("← challenger worse", "challenger better →"), band=band))
    limits = [g for g in gates if g not in differences and known(g.value) and known(g.limit)]
    if limits:
        rows = [_limit(g, seen, g is decided) for g in limits]
        made.append(Group("distance from its limit", rows, ("← misses it", "keeps it →"),
                          tick=_share))  # fmt: skip
    rest = [g for g in gates if g not in differences and g not in limits]
    if rest:
        made.append(Group("without a number", [_silent(g, g is decided) for g in rest], ("", "")))
    return sorted(made, key=lambda group: not any(row.strong for row in group.rows))


def _axes(gates: list[Gate]) -> list[tuple[list[str], str]]:
    """Which kinds share an axis: those of a unit, unless one would flatten the other."""
    found: list[tuple[list[str], str]] = []
    for unit in dict.fromkeys(g.unit for g in gates):
        sizes: dict[str, float] = {}
        for kind in dict.fromkeys(g.kind for g in gates if g.unit == unit):
            rows = [_difference(g, False) for g in gates if (g.kind, g.unit) == (kind, unit)]
            sizes[kind] = max(abs(end) for end in reach(rows))
        smallest = 0.0
        for name in sorted(sizes, key=lambda k: sizes[k]):
            if smallest and sizes[name] <= _APART * smallest:
                found[-1][0].append(name)
            else:
                found.append(([name], unit))
                smallest = sizes[name]
    return found


def _difference(gate: Gate, strong: bool) -> Row:
    low, high, value = gate.low, gate.high, gate.value or 0.0
    if low is not None and high is not None and known(low) and known(high):
        amount, detail = with_sign(value, decimals(low, high)), interval(low, high)
    else:
        amount, detail = with_sign(value, 4), short(gate.threshold, 60)
    return Row(title(gate.name), value, low, high, gate.limit, MARKS[gate.outcome],
               f"{gate.outcome} {amount}", detail, strong)  # fmt: skip


def _limit(gate: Gate, seen: EvaluateFigures, strong: bool) -> Row:
    """As a share of the limit; above 0 it is kept, whichever way it points."""
    limit, value = gate.limit or 0.0, gate.value or 0.0
    least = gate.kind not in AT_MOST and better(gate.unit, seen.directions) == "higher"
    whole = abs(limit) or abs(value) or 1.0

    def share(number: float | None) -> float | None:
        if number is None or not known(number):
            return None
        return max(-1.0, min(1.0, (number - limit if least else limit - number) / whole))

    unit = f" {gate.unit}" if gate.unit in ("ms", "MB") else ""
    return Row(title(gate.name), share(value), share(gate.low), share(gate.high), None,
               MARKS[gate.outcome], f"{gate.outcome} {_amount(value)}{unit}",
               f"{'at least' if least else 'at most'} {_amount(limit)}{unit}", strong)  # fmt: skip


def _silent(gate: Gate, strong: bool) -> Row:
    detail = short(gate.message or gate.observed, 60)
    return Row(title(gate.name), None, None, None, None, "", gate.outcome, detail, strong)


def _amount(value: float) -> str:
    return plain(value, 4)


def _share(value: float) -> str:
    return "limit" if abs(value) < 1e-9 else percent(value)
