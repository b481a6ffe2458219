"""Checks of what the loss says, and what can be learned by it."""

from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = ()
