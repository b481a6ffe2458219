"""What `import training_core` gives, and what it does not cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import training_core
from training_core.errors import (
    ConfigurationError,
    EvertrainError,
    StoppedByGate,
    TrainingFailed,
)


@pytest.mark.parametrize("module", ["training_core", "training_core.settings"])
def test_importing_it_imports_no_torch(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'torch', 'pandas', 'numpy'}} & set(sys.modules)))"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(training_core.__file__).parents[1],
    )
    assert ended.stdout.strip() == "[]"


def test_type_checkers_are_shown_every_public_name() -> None:
    tree = ast.parse(Path(training_core.__file__).read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    shown = [
        a.asname for node in block.body if isinstance(node, ast.ImportFrom) for a in node.names
    ]
    assert sorted(map(str, shown)) == training_core.__all__


@pytest.mark.parametrize("name", training_core.__all__)
def test_every_public_name_resolves_to_what_bears_it(name: str) -> None:
    found = getattr(training_core, name)
    assert found.__name__ == name
    assert found.__doc__


def test_another_name_is_an_attribute_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match="'training_core' has no attribute 'Trainr'"):
        training_core.Trainr  # noqa: B018
    assert not hasattr(training_core, "__wrapped__")


@pytest.mark.parametrize(
    ("kind", "code"), [(ConfigurationError, 2), (StoppedByGate, 1), (TrainingFailed, 1)]
)
def test_each_error_carries_its_exit_code_and_its_hint(
    kind: type[EvertrainError], code: int
) -> None:
    assert kind.exit_code == code
    assert str(kind("it broke", hint="mend it")) == "it broke\n\nhint: mend it"
    assert str(kind("it broke")) == "it broke"
