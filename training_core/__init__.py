"""PyTorch training: tasks, batches, loop, checkpoints, evaluation, sanity checks, packaging.

The public names, each loaded when first used (torch takes a second and a half to import).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for whoever checks the types of a task; at run time `__getattr__` finds them
    from training_core.determinism import seed_everything as seed_everything
    from training_core.errors import ConfigurationError as ConfigurationError
    from training_core.errors import EvertrainError as EvertrainError
    from training_core.errors import StoppedByGate as StoppedByGate
    from training_core.errors import TrainingFailed as TrainingFailed
    from training_core.evaluation import outputs_of as outputs_of
    from training_core.examples import Examples as Examples
    from training_core.loop import Trainer as Trainer
    from training_core.parallel.single import SingleProcess as SingleProcess
    from training_core.settings import TrainingSettings as TrainingSettings
    from training_core.tabular import TabularPreprocessor as TabularPreprocessor
    from training_core.task import BinaryTask as BinaryTask
    from training_core.task import MulticlassTask as MulticlassTask
    from training_core.task import MultilabelTask as MultilabelTask
    from training_core.task import Preprocessor as Preprocessor
    from training_core.task import RegressionTask as RegressionTask
    from training_core.task import SequenceTask as SequenceTask
    from training_core.task import Task as Task

_HOME = {
    "BinaryTask": "training_core.task",
    "MulticlassTask": "training_core.task",
    "MultilabelTask": "training_core.task",
    "RegressionTask": "training_core.task",
    "SequenceTask": "training_core.task",
    "Preprocessor": "training_core.task",
    "Task": "training_core.task",
    "TabularPreprocessor": "training_core.tabular",
    "Examples": "training_core.examples",
    "SingleProcess": "training_core.parallel.single",
    "Trainer": "training_core.loop",
    "outputs_of": "training_core.evaluation",
    "seed_everything": "training_core.determinism",
    "TrainingSettings": "training_core.settings",
    "ConfigurationError": "training_core.errors",
    "EvertrainError": "training_core.errors",
    "StoppedByGate": "training_core.errors",
    "TrainingFailed": "training_core.errors",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
