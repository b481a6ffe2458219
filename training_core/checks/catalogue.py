"""All checks, in the order in which they are made: those that cost little come first.

Those that train may run out of time, and what is left out then says the least for its time.
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
# The first never fails, the others make trainings of their own that no other check shares.
_LAST = ("batch_size_and_speed", "learning_rate", "simple_model_ahead")


def _place(check: type[Check]) -> tuple[bool, bool]:
    return check.costs == "training", check.name in _LAST


CHECKS: tuple[type[Check], ...] = tuple(sorted(_GROUPS, key=_place))  # stable: groups stay in order
