"""Checks of how the weights move, how fast, and what the plan will take."""

from training_core.checks.contract import Check
from training_core.checks.dynamics.batch_size_and_speed import BatchSizeAndSpeed
from training_core.checks.dynamics.learning_rate import LearningRate
from training_core.checks.dynamics.loss_falls import LossFalls
from training_core.checks.dynamics.prediction_dynamics import PredictionDynamics
from training_core.checks.dynamics.simple_model_ahead import SimpleModelAhead
from training_core.checks.dynamics.update_health import UpdateHealth

CHECKS: tuple[type[Check], ...] = (
    BatchSizeAndSpeed,
    LossFalls,
    UpdateHealth,
    PredictionDynamics,
    LearningRate,
    SimpleModelAhead,
)
