"""All checks, in the order in which they are made: what is cheap and explains most comes first."""

from __future__ import annotations

from training_core.checks import data, dynamics, graph, loss, machinery
from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = (
    *data.CHECKS,
    *loss.CHECKS,
    *graph.CHECKS,
    *machinery.CHECKS,
    *dynamics.CHECKS,
)
