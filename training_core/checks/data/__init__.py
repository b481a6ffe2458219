"""Checks of the rows as the network gets them."""

from training_core.checks.contract import Check
from training_core.checks.data.augmentation_keeps_labels import AugmentationKeepsLabels
from training_core.checks.data.fitted_on_train_rows import FittedOnTrainRows
from training_core.checks.data.inputs_before_network import InputsBeforeNetwork
from training_core.checks.data.label_is_no_input import LabelIsNoInput
from training_core.checks.data.labels_become_targets import LabelsBecomeTargets
from training_core.checks.data.no_shared_rows import NoSharedRows
from training_core.checks.data.padding_counts_for_nothing import PaddingCountsForNothing
from training_core.checks.data.raw_values_arrive import RawValuesArrive
from training_core.checks.data.rows_stay_themselves import RowsStayThemselves

CHECKS: tuple[type[Check], ...] = (
    LabelsBecomeTargets,
    RowsStayThemselves,
    LabelIsNoInput,
    FittedOnTrainRows,
    InputsBeforeNetwork,
    RawValuesArrive,
    PaddingCountsForNothing,
    AugmentationKeepsLabels,
    NoSharedRows,
)
