"""Checks of how the weights move, how fast, and what the plan will take."""

from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = ()
