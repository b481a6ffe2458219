"""A preprocessor makes the same tensors in another process, or it is said what differs."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from training_core.checks.machinery.another_process import (
    NoProcess,
    Raised,
    rows_apart,
    transformed_elsewhere,
)

SOURCE = """
import numpy as np

TOLD = {}


class Plain:
    def fit(self, train):
        TOLD["seen"] = 1
        return self

    def transform(self, frame):
        return {"word": np.array([len(word) for word in frame["word"]])}

    def state_dict(self):
        return {}

    @classmethod
    def from_state_dict(cls, state):
        return cls()


class Hashed(Plain):
    def transform(self, frame):
        return {"word": np.array([hash(word) % 9973 for word in frame["word"]])}


class InTheModule(Plain):
    def transform(self, frame):
        return {"word": np.full(len(frame), TOLD["seen"])}
"""
ROWS = pd.DataFrame({"word": ["early", "late", "never"]})
Fitted = Callable[[str], Any]


@pytest.fixture
def fitted(tmp_path: Path) -> Iterator[Fitted]:
    """Classes of a file that no other process can import by name."""
    path = tmp_path / "words_features.py"

    def make(name: str, source: str = SOURCE) -> Any:
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("words_features", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["words_features"] = module
        spec.loader.exec_module(module)
        return getattr(module, name)().fit(ROWS)

    yield make
    sys.modules.pop("words_features", None)


def test_texts_hashed_by_python_are_other_numbers_and_plain_code_makes_the_same(
    fitted: Fitted,
) -> None:
    plain, hashed = fitted("Plain"), fitted("Hashed")
    assert not rows_apart(plain.transform(ROWS), transformed_elsewhere(plain, ROWS))
    wrong = rows_apart(hashed.transform(ROWS), transformed_elsewhere(hashed, ROWS))
    assert wrong.startswith("'word' differs in 100% of the rows: at [0")


def test_what_fit_leaves_in_the_module_is_not_there(fitted: Fitted) -> None:
    with pytest.raises(Raised, match="KeyError: 'seen'"):
        transformed_elsewhere(fitted("InTheModule"), ROWS)


def test_a_module_that_cannot_be_imported_there_is_no_process(fitted: Fitted) -> None:
    broken = fitted("Plain")
    Path(sys.modules["words_features"].__file__ or "").write_text("import there_is_no_such_module")
    with pytest.raises(NoProcess, match="there_is_no_such_module"):
        transformed_elsewhere(broken, ROWS)
