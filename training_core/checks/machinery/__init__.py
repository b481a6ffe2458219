"""Checks of the trainer, the evaluation, the package and the checkpoint against plain code."""

from training_core.checks.contract import Check

CHECKS: tuple[type[Check], ...] = ()
