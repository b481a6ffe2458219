"""Checks of what depends on what: rows, positions, inputs, parameters, modes."""

from training_core.checks.contract import Check
from training_core.checks.graph.future_does_not_reach_past import FutureDoesNotReachPast
from training_core.checks.graph.inputs_reach_outputs import InputsReachOutputs
from training_core.checks.graph.modes_differ_as_they_should import ModesDifferAsTheyShould
from training_core.checks.graph.outputs_move_freely import OutputsMoveFreely
from training_core.checks.graph.parameters_train import ParametersTrain
from training_core.checks.graph.rows_do_not_mix import RowsDoNotMix
from training_core.checks.graph.train_and_eval_agree import TrainAndEvalAgree

CHECKS: tuple[type[Check], ...] = (
    RowsDoNotMix,
    FutureDoesNotReachPast,
    InputsReachOutputs,
    ParametersTrain,
    OutputsMoveFreely,
    ModesDifferAsTheyShould,
    TrainAndEvalAgree,
)
