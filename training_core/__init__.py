"""PyTorch training: tasks, batches, loop, checkpoints, evaluation, sanity checks, packaging.

The public names, each loaded when first used (torch takes a second and a half to import).
"""

from importlib import import_module
from typing import Any

_HOME = {
    "BinaryTask": "training_core.task",
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
