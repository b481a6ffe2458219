"""Checks of the rows as the network gets them."""

from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = ()
