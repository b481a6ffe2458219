"""Checks of what depends on what: rows, positions, inputs, parameters, modes."""

from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = ()
