"""Checks of what the loss says, and what can be learned by it."""

from training_core.checks.contract import Check
from training_core.checks.loss.initial_loss import InitialLoss
from training_core.checks.loss.inputs_help import InputsHelp
from training_core.checks.loss.loss_function import LossFunction
from training_core.checks.loss.one_batch import OneBatch

CHECKS: tuple[type[Check], ...] = (InitialLoss, LossFunction, OneBatch, InputsHelp)
