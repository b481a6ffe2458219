"""Nested cells are compared by what they hold, and their axes arrive as axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from check_data_samples import Houses, look, table

from tests.planted_bugs.preprocessors import ImagePreprocessor
from training_core.checks.data import RawValuesArrive
from training_core.checks.data.axes import of_axes
from training_core.checks.data.elements import cell_of
from training_core.checks.data.frames import copy_of, written
from training_core.task import Arrays, Preprocessor


def _nested(array: np.ndarray[Any, Any]) -> Any:
    """As Parquet gives a list of lists: an array of arrays."""
    if array.ndim == 1:
        return array
    cell = np.empty(len(array), dtype=object)
    for place, inner in enumerate(array):
        cell[place] = _nested(inner)
    return cell


@pytest.mark.parametrize("inner", [np.zeros(3), float("nan"), {"a": [None, float("nan")]}, pd.NA])
def test_a_nested_cell_is_written_to_only_if_it_holds_something_else(inner: Any) -> None:
    cell = np.empty(2, dtype=object)
    cell[:] = [inner, [_nested(np.zeros((2, 2)))]]
    frame = pd.DataFrame({"cell": pd.Series([cell, cell], dtype=object)})
    other = copy_of(frame)
    assert written(frame, other) == ([], [])
    other["cell"][1][1][0][0][1] = 7
    assert written(frame, other) == (["cell"], [])


class _Photos(ImagePreprocessor):
    def __init__(self, change: Any) -> None:
        super().__init__("photo", standardise=False)
        self.change = change

    def transform(self, frame: pd.DataFrame) -> Arrays:
        cells = [[np.stack(list(row)) for row in photo] for photo in frame["photo"]]
        return {"image": self.change(np.array(cells, dtype=np.float32))}


def _patches(photos: Any) -> Any:
    cut = photos.reshape(len(photos), 3, 4, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5)
    return cut.reshape(len(photos), 6, 48)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda p: p.reshape(len(p), 3, 12, 8), True),
        (lambda p: p[:, :8, 1:].reshape(len(p), 3, 8, 7), True),
        (lambda p: p.reshape(len(p), 8, 12, 3), True),
        (lambda p: p.transpose(0, 3, 2, 1).reshape(len(p), 12, 8, 3), True),
        (lambda p: p.transpose(0, 3, 1, 2), False),
        (lambda p: p.transpose(0, 3, 2, 1)[:, :, ::-1], False),
        (lambda p: p.reshape(len(p), -1), False),
        (lambda p: p[:, ::2, ::2].transpose(0, 3, 1, 2), False),
        (lambda p: p.reshape(len(p), 6, 2, 4, 2, 3).mean((2, 4)).transpose(0, 3, 1, 2), False),
        (lambda p: p.mean(3).reshape(len(p), 1, 12, 8), False),
        (_patches, False),
    ],
    ids=[
        "channels", "cropped", "sides", "twice", "transposed", "turned", "flat", "every second",
        "pooled", "grey", "patches",
    ],
)  # fmt: skip
def test_a_reshape_where_a_transpose_was_meant_is_found(change: Any, found: bool) -> None:
    random = np.random.default_rng(0)
    photos = [_nested(random.integers(0, 255, (12, 8, 3))) for _ in range(20)]
    frame = pd.DataFrame({"photo": pd.Series(photos, dtype=object)})
    problem = of_axes(_Photos(change), frame, "photo")
    assert (problem is not None) is found


def test_the_check_names_the_column_that_was_reshaped() -> None:
    class Photographed(Houses):
        def preprocessor(self) -> Preprocessor:
            return _Photos(lambda p: p.reshape(len(p), 3, 6, 4))

    random = np.random.default_rng(0)
    photos = [random.integers(0, 255, (6, 4, 3)).tolist() for _ in range(100)]
    finding = look(RawValuesArrive, Photographed(), table(100).assign(photo=photos))
    assert finding.verdict == "fail"
    assert "'photo' of [6, 4, 3] was reshaped to the [3, 6, 4] of 'image'" in finding.message


def test_a_cell_of_lists_stays_one_of_lists() -> None:
    cell = np.empty(2, dtype=object)
    cell[0], cell[1] = [1, 2], [3, 4]
    made = cell_of(cell, [[5, 6], [7, 8], [9, 0]])
    assert made.shape == (3,)
    assert made[2] == [9, 0]
