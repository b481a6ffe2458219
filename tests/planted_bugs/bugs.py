"""All planted bugs, by theme."""

from __future__ import annotations

from tests.planted_bugs.bugs_arrivals import ARRIVALS
from tests.planted_bugs.bugs_augmentation import AUGMENTATION
from tests.planted_bugs.bugs_features import FEATURES
from tests.planted_bugs.bugs_gradients import GRADIENTS
from tests.planted_bugs.bugs_graph import GRAPH
from tests.planted_bugs.bugs_labels import LABELS
from tests.planted_bugs.bugs_leaks import LEAKS
from tests.planted_bugs.bugs_loss import LOSS
from tests.planted_bugs.bugs_modes import MODES
from tests.planted_bugs.bugs_outputs import OUTPUTS
from tests.planted_bugs.bugs_plans import PLANS
from tests.planted_bugs.bugs_rows import ROWS
from tests.planted_bugs.bugs_splits import SPLITS
from tests.planted_bugs.bugs_training import ORDER, TRAINING
from tests.planted_bugs.bugs_weights import SAVED, WEIGHTS
from tests.planted_bugs.contract import Bug

THEMES = (
    LABELS,
    AUGMENTATION,
    ROWS,
    LEAKS,
    FEATURES,
    ARRIVALS,
    SPLITS,
    LOSS,
    OUTPUTS,
    GRAPH,
    GRADIENTS,
    MODES,
    WEIGHTS,
    TRAINING,
    PLANS,
    ORDER,
    SAVED,
)
BUGS: tuple[Bug, ...] = tuple(bug for theme in THEMES for bug in theme.bugs)
