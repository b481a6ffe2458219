"""Values of pictures that become one are found, and pictures that are mostly empty are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from check_data_samples import Shapes, images

from tests.planted_bugs import healthy_digits
from tests.planted_bugs.preprocessors import ImagePreprocessor, TokenPreprocessor
from training_core.checks.data.levels import of_levels
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject
from training_core.task import Arrays, Preprocessor, Task

SHAPES, DIGITS = images(100), healthy_digits.rows(0, 100)


class _By(ImagePreprocessor):
    def __init__(self, column: str, change: Any) -> None:
        super().__init__(column, standardise=False)
        self.change = change

    def transform(self, frame: pd.DataFrame) -> Arrays:
        pixels = super().transform(frame)["image"]
        return {"image": np.asarray(self.change(pixels), dtype=np.float32)}


def _problems(kind: type[Task], rows: pd.DataFrame, column: str, change: Any) -> list[Problem]:
    class Changed(kind):  # type: ignore[misc, valid-type]
        def preprocessor(self) -> Preprocessor:
            return _By(column, change)

    return list(of_levels(Subject(Changed(), rows)))


def _shapes(change: Any) -> list[Problem]:
    return _problems(Shapes, SHAPES, "image", change)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p // 255,
        lambda p: p // p.max((2, 3), keepdims=True),
        lambda p: np.floor(p / 255),
        lambda p: np.log(np.maximum(p / 255.0, 0.92)),
    ],
    ids=["whole numbers", "of each image", "floor", "logarithm"],
)
def test_values_that_become_one_are_found(change: Any) -> None:
    (problem,) = _shapes(change)
    assert problem.fails
    assert "made of 'image'" in problem.message


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p / 255,
        lambda p: p,
        lambda p: p // 16,
        lambda p: np.maximum(p.astype(float), 20.0),
        lambda p: p[:, :, ::2, ::2],
    ],
    ids=["scaled", "as they are", "levels of sixteen", "a low floor", "every second"],
)
def test_values_that_stay_apart_are_not(change: Any) -> None:
    assert _shapes(change) == []


@pytest.mark.parametrize("change", [lambda p: p > 128, lambda p: p > 30, lambda p: p.clip(30)])
def test_black_and_white_and_a_floor_may_be_meant(change: Any) -> None:
    (problem,) = _shapes(change)
    assert not problem.fails


@pytest.mark.parametrize("change", [lambda p: p, lambda p: p / 255 - 0.3, lambda p: p // 16])
def test_digits_that_are_mostly_empty_from_the_start_are_not(change: Any) -> None:
    assert _problems(healthy_digits.Digits, DIGITS, "pixels", change) == []


def test_padding_is_no_lost_value() -> None:
    words = [[f"w{i}" for i in range(1 + n % 4)] for n in range(100)]

    class Words(Shapes):
        def preprocessor(self) -> Preprocessor:
            return TokenPreprocessor("words", length=40)

    assert list(of_levels(Subject(Words(), SHAPES.assign(words=words)))) == []
    numbers = [list(map(len, each)) for each in words]

    class Numbers(Words):
        def preprocessor(self) -> Preprocessor:
            return TokenPreprocessor("numbers", length=40)

    assert list(of_levels(Subject(Numbers(), SHAPES.assign(numbers=numbers)))) == []
