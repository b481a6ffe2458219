"""The files of the other examples, imported under names of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLES = Path(__file__).parents[2] / "examples"
DIGITS, TEXT = EXAMPLES / "digits", EXAMPLES / "text"


def prepare_of(example: Path) -> ModuleType:
    """Import an example's `prepare.py`: each has one."""
    key = f"{example.name}_prepare"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, example / "prepare.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[key] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[key])
    return sys.modules[key]
