"""Checks of the trainer, the evaluation, the package and the checkpoint against plain code."""

from training_core.checks.contract import Check
from training_core.checks.machinery.checkpoint_equals_itself import CheckpointEqualsItself
from training_core.checks.machinery.evaluation_equals_plain_code import EvaluationEqualsPlainCode
from training_core.checks.machinery.package_equals_model import PackageEqualsModel
from training_core.checks.machinery.ranks_agree import RanksAgree
from training_core.checks.machinery.samples_in_order import SamplesInOrder
from training_core.checks.machinery.schedule_as_planned import ScheduleAsPlanned
from training_core.checks.machinery.steps_equal_plain_code import StepsEqualPlainCode

CHECKS: tuple[type[Check], ...] = (
    ScheduleAsPlanned,
    SamplesInOrder,
    StepsEqualPlainCode,
    EvaluationEqualsPlainCode,
    CheckpointEqualsItself,
    RanksAgree,
    PackageEqualsModel,
)
