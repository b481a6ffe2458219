"""The files of the flights example, imported under names of their own."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

EXAMPLE = Path(__file__).parents[2] / "examples" / "flights"


def load(name: str) -> ModuleType:
    """Import a file of the example under a name of its own: `task` is a common word."""
    key = f"flights_{name}"
    if key not in sys.modules:
        spec = importlib.util.spec_from_file_location(key, EXAMPLE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[key] = module
        path, before = list(sys.path), set(sys.modules)
        spec.loader.exec_module(module)  # some of them find the others by their plain names
        sys.path[:] = path
        for plain in set(sys.modules) - before:
            file = getattr(sys.modules[plain], "__file__", None) or ""
            if Path(file).parent == EXAMPLE:
                del sys.modules[plain]
    return sys.modules[key]


prepare = load("prepare")
task_module = load("task")
