"""Checks of how the weights move, how fast, and what the plan will take."""

from training_core.checks.contract import Check
from training_core.checks.dynamics.learning_rate import LearningRate
from training_core.checks.dynamics.prediction_dynamics import PredictionDynamics
from training_core.checks.dynamics.update_health import UpdateHealth

CHECKS: tuple[type[Check], ...] = (UpdateHealth, LearningRate, PredictionDynamics)
