"""Images that are cut are told from those that are made smaller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from check_data_samples import Shapes, look

from tests.planted_bugs import healthy_digits
from tests.planted_bugs.preprocessors import ImagePreprocessor
from training_core.checks.data import RawValuesArrive
from training_core.checks.data.patches import of_patches
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject
from training_core.task import Arrays, Preprocessor, Task

RANDOM = np.random.default_rng(0)


def _rows(*shape: int) -> pd.DataFrame:
    photos = [RANDOM.integers(0, 256, shape).astype(np.uint8) for _ in range(40)]
    return pd.DataFrame({"photo": photos, "shape": ["left", "right"] * 20})


PHOTOS, GREY, SERIES = _rows(24, 24, 3), _rows(16, 16), _rows(48, 12)


class _By(ImagePreprocessor):
    def __init__(self, change: Any) -> None:
        super().__init__("photo", standardise=False)
        self.change = change

    def fit(self, train: pd.DataFrame) -> _By:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        images = [np.array([list(row) for row in photo]) for photo in frame["photo"]]
        return {"image": np.stack([self.change(i) for i in images]).astype(np.float32)}


def _task(change: Any, kind: type[Task] = Shapes) -> Task:
    class Changed(kind):  # type: ignore[misc, valid-type]
        def preprocessor(self) -> Preprocessor:
            return _By(change)

    return Changed()


def _found(rows: pd.DataFrame, change: Any) -> Problem | None:
    return of_patches(Subject(_task(change), rows), "photo")


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        (PHOTOS, lambda p: np.resize(p, (12, 12, 3))),
        (GREY, lambda p: np.resize(p, (8, 8))),
        (PHOTOS, lambda p: p[:10, :10]),
        (PHOTOS, lambda p: p.ravel()[:300]),
    ],
    ids=["np.resize", "np.resize of grey", "a corner", "the first pixels"],
)
def test_an_image_of_which_most_is_dropped_is_found(rows: pd.DataFrame, change: Any) -> None:
    problem = _found(rows, change)
    assert problem is not None
    assert problem.fails
    assert "change no tensor" in problem.message


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        (PHOTOS, lambda p: p / 255),
        (PHOTOS, lambda p: p[::2, ::2]),
        (GREY, lambda p: p[::4, ::4]),
        (PHOTOS, lambda p: p[2:22, 2:22]),
        (PHOTOS, lambda p: p.transpose(2, 0, 1).reshape(3, 12, 2, 12, 2).mean((2, 4))),
        (PHOTOS, lambda p: p > 250),
        (GREY, np.ravel),
    ],
    ids=["scaled", "every second", "every fourth", "80 %", "pooled", "bright", "flattened"],
)
def test_an_image_of_which_all_is_looked_at_is_not(rows: pd.DataFrame, change: Any) -> None:
    assert _found(rows, change) is None


@pytest.mark.parametrize(
    ("rows", "change"),
    [
        (PHOTOS, lambda p: p[4:20, 4:20]),
        (PHOTOS, lambda p: p[14:]),
        (SERIES, lambda s: s[-10:]),
    ],
    ids=["the middle", "below the sky", "the last steps"],
)
def test_a_crop_is_doubtful(rows: pd.DataFrame, change: Any) -> None:
    problem = _found(rows, change)
    assert problem is not None
    assert not problem.fails


def test_patches_that_are_the_same_in_all_rows_say_nothing() -> None:
    """Digits are in the middle of what is empty elsewhere."""
    digits = [np.pad(photo[:8, :8], ((8, 8), (8, 8))) for photo in GREY["photo"]]
    assert _found(GREY.assign(photo=digits), lambda p: p[8:16, 8:16]) is None


def test_lists_of_lists_are_images_as_well() -> None:
    nested = GREY.assign(photo=[photo.tolist() for photo in GREY["photo"]])
    assert _found(nested, lambda p: np.resize(p, (8, 8))) is not None
    assert _found(nested, lambda p: p) is None


def test_the_check_names_the_column() -> None:
    finding = look(RawValuesArrive, _task(lambda p: np.resize(p, (12, 12, 3))), PHOTOS)
    assert finding.verdict == "fail"
    assert "'photo'" in finding.message
    assert "np.resize" in finding.advice


def test_healthy_digits_say_nothing() -> None:
    subject = Subject(healthy_digits.Digits(), healthy_digits.rows(0, 100))
    assert of_patches(subject, "pixels") is None
