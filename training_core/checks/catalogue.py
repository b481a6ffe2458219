"""All checks, in the order in which they are made: those that cost little come first.

Those that train may run out of time; what is left out then has cost the most and says the least.
"""

from __future__ import annotations

from training_core.checks import data, dynamics, graph, loss, machinery
from training_core.checks.contract import Check

_GROUPS: tuple[type[Check], ...] = (
    *data.CHECKS,
    *loss.CHECKS,
    *graph.CHECKS,
    *machinery.CHECKS,
    *dynamics.CHECKS,
)
CHECKS: tuple[type[Check], ...] = tuple(
    sorted(_GROUPS, key=lambda check: check.costs == "training")  # stable: groups stay in order
)
