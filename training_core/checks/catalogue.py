"""All checks, in the order in which they are made: those that cost little come first.

Those that train may run out of time, and what is left out then are the longest.
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
# Several trainings of their own each, of networks of all sizes.
_LONGEST = ("inputs_help", "learning_rate", "simple_model_ahead")


def _place(check: type[Check]) -> tuple[bool, bool]:
    return check.costs == "training", check.name in _LONGEST


CHECKS: tuple[type[Check], ...] = tuple(sorted(_GROUPS, key=_place))  # stable: groups stay in order
