"""What a type does to numbers, pixels and targets is found; what is meant is let through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import check_data_samples as samples
import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from check_data_samples import NUMBERS, Houses, Shapes, images, look, table, using
from torch import Tensor, nn

from training_core.checks.contract import Finding
from training_core.checks.data import InputsBeforeNetwork
from training_core.checks.data.saw_teeth import period_of
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor

Numbers = npt.NDArray[np.float64]
MARKS = np.array([*range(40), 999.0])  # 999: not known
RAW = np.sort(np.random.default_rng(0).normal(0, 10, 80))


# ---- saw-teeth


@pytest.mark.parametrize(
    ("answer", "period"),
    [
        ((RAW * 10).astype(np.int64).astype(np.int8) / 3.7, 25.6),  # rounded, two or three teeth
        ((RAW * 10 + 300).astype(np.int64).astype(np.uint8) - 128.0, 25.6),
        (-np.mod(RAW, 15.0), 15.0),  # exact, falling
        (np.mod(RAW, 15.0) * 1e-3 + 4, 15.0),
    ],
)
def test_numbers_that_begin_again_have_a_period(answer: Numbers, period: float) -> None:
    assert period_of(RAW, np.asarray(answer, dtype=np.float64)) == pytest.approx(period, rel=0.01)


@pytest.mark.parametrize(
    "healthy",
    [
        np.clip(RAW, -8, 8),
        np.floor(RAW),
        np.abs(RAW),
        np.sin(RAW),
        np.sign(RAW) * np.log1p(np.abs(RAW)),
        np.where(np.sort(RAW)[-3] < RAW, 0.0, RAW),  # 999: not known
        np.where(RAW > 10, 0.0, RAW),  # beyond what is believed: not known
        np.random.default_rng(1).permutation(80).astype(float),
        np.array([sorted(range(80), key=str).index(i) for i in range(80)], dtype=float),
        np.zeros(80),
    ],
)
def test_what_is_clipped_stepped_folded_or_marked_is_no_saw_tooth(healthy: Numbers) -> None:
    assert period_of(RAW, healthy) is None


def test_a_mark_for_what_is_not_known_is_no_tooth() -> None:
    assert period_of(MARKS, np.where(MARKS == 999, 20.0, MARKS)) is None


# ---- numbers of a table


class _Hundredths(TabularPreprocessor):
    """Standardised numbers in a byte."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        small = (arrays["numbers"] * 100).round().astype(np.int64).astype(np.int8)
        return {**arrays, "numbers": small.astype(np.float32) / 100}


class _OfAnotherTable(TabularPreprocessor):
    """Other units: nearly all numbers end at the clip."""

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.means = [m + 2 * d for m, d in zip(self.means, self.deviations, strict=True)]
        self.deviations = [d / 100 for d in self.deviations]
        return self


class _FarAway(TabularPreprocessor):
    """Around -6, with a deviation of 0.1: rows hardly differ for the first layer."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        return {**arrays, "numbers": arrays["numbers"] * 0.1 - 6}


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_Hundredths, "begins again every"),
        (_OfAnotherTable, "3 of 3 raw columns of many numbers arrive as one value"),
    ],
)
def test_numbers_that_lost_their_meaning_on_the_way_are_found(
    kind: type[TabularPreprocessor], said: str
) -> None:
    more = np.random.default_rng(1).normal(size=(2, 400))
    task = using(kind, numbers=["age", "height", "weight"])
    finding = look(InputsBeforeNetwork, task, table().assign(height=more[0], weight=more[1]))
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


def test_inputs_far_off_that_a_network_does_not_learn_from_are_found() -> None:
    rate = samples.TRAINING.optimiser.model_copy(update={"lr": 0.01})
    training = samples.TRAINING.model_copy(update={"optimiser": rate})
    settings = samples.CheckSettings(input_steps=60)
    subject = Subject(using(_FarAway), table(), training=training, settings=settings)
    finding = InputsBeforeNetwork().look(subject)
    assert finding.verdict == "fail", finding.message
    assert "of what can be learned of it is not" in finding.message


def test_inputs_far_off_are_a_warning_where_the_network_standardises_them() -> None:
    class Normalised(samples.TableNetwork):
        def __init__(self, preprocessor: TabularPreprocessor) -> None:
            super().__init__(preprocessor)
            self.norm = nn.BatchNorm1d(len(preprocessor.number_columns), eps=1e-12)

        def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
            return super().forward(categories, self.norm(numbers))

    class Task(Houses):
        def preprocessor(self) -> Preprocessor:
            return _FarAway(categories=["kind"], numbers=NUMBERS)

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            assert isinstance(preprocessor, TabularPreprocessor)
            return Normalised(preprocessor)

    finding = look(InputsBeforeNetwork, Task(), table())
    assert finding.verdict == "warn", finding.message


class _Groups(TabularPreprocessor):
    """Each number as one of thirty groups: in each column, 97 % of the rows are 0."""

    @property
    def number_columns(self) -> list[str]:
        return [f"{column} {i}" for column in self.numbers for i in range(30)]

    def transform(self, frame: pd.DataFrame) -> Arrays:
        scaled = super().transform(frame)["numbers"][:, : len(self.numbers)]
        group = np.clip((scaled + 3) * 5, 0, 29).astype(np.int64)
        return {
            "categories": super().transform(frame)["categories"],
            "numbers": np.eye(30, dtype=np.float32)[group].reshape(len(frame), -1),
        }


def test_numbers_in_groups_keep_their_meaning() -> None:
    class Task(Houses):
        def preprocessor(self) -> Preprocessor:
            return _Groups(categories=["kind"], numbers=["area", "age", "distance"])

    finding = look(InputsBeforeNetwork, Task(), table())
    assert finding.verdict == "pass", finding.message


# ---- pixels and lists


def _images(change: Callable[[npt.NDArray[np.uint8]], Any], *, byte: bool = False) -> Finding:
    """What is said of images that are changed on their way."""

    class Changed(samples.ImagePreprocessor):
        def transform(self, frame: pd.DataFrame) -> Arrays:
            image = super().transform(frame.assign(image=[change(i) for i in frame["image"]]))
            raw = image["image"] * self.deviation + self.mean
            return {"image": np.round(raw * 255).astype(np.uint8)} if byte else image

    class Network(samples.ImageNetwork):
        def forward(self, image: Tensor) -> Tensor:
            return super().forward(image.float() / 128 - 1 if byte else image)

    class Task(Shapes):
        def preprocessor(self) -> Preprocessor:
            return Changed()

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return Network()

    return look(InputsBeforeNetwork, Task(), images())


@pytest.mark.parametrize("byte", [False, True])
@pytest.mark.parametrize("factor", [2, 4])
def test_pixels_made_brighter_in_their_byte_are_found(factor: int, byte: bool) -> None:
    finding = _images(lambda image: image * np.uint8(factor), byte=byte)
    assert finding.verdict == "fail", finding.message
    assert f"begins again every {256 // factor}" in finding.message


@pytest.mark.parametrize("byte", [False, True])
def test_pixels_made_brighter_with_care_are_no_fault(byte: bool) -> None:
    finding = _images(lambda image: np.clip(image * 2.0, 0, 255).astype(np.uint8), byte=byte)
    assert finding.verdict == "pass", finding.message


class _Lists:
    """Lists of whole numbers as indices."""

    columns = ["items"]  # noqa: RUF012

    def __init__(self, *, byte: bool = False) -> None:
        self.byte = byte

    def fit(self, train: pd.DataFrame) -> _Lists:
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        items = np.zeros((len(frame), 12), dtype=np.int64)
        for row, each in enumerate(frame["items"]):
            items[row, : len(each[:12])] = each[:12]
        return {"items": items.astype(np.uint8).astype(np.int64) if self.byte else items}

    def state_dict(self) -> dict[str, Any]:
        return {"byte": self.byte}

    @classmethod
    def from_state_dict(cls, state: dict[str, Any]) -> _Lists:
        return cls(**state)


class _Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(1_000, 4)
        self.out = nn.Linear(4, 1)

    def forward(self, items: Tensor) -> Tensor:
        outputs: Tensor = self.out(self.table(items).mean(1)).squeeze(1)
        return outputs


def _lists(preprocessor: _Lists, longest: int) -> Finding:
    class Task(Houses):
        def preprocessor(self) -> Preprocessor:
            return preprocessor

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return _Bag()

    random = np.random.default_rng(0)
    lists = [
        random.integers(1, 1_000, random.integers(3, longest + 1)).tolist() for _ in range(200)
    ]
    return look(
        InputsBeforeNetwork, Task(), pd.DataFrame({"items": lists, "dear": np.arange(200) % 2})
    )


def test_indices_that_pass_through_a_byte_are_found() -> None:
    finding = _lists(_Lists(byte=True), longest=12)
    assert finding.verdict == "fail", finding.message
    assert "begins again every 256" in finding.message


@pytest.mark.parametrize("longest", [4, 12, 40])
def test_lists_of_any_length_are_no_fault(longest: int) -> None:
    finding = _lists(_Lists(), longest=longest)
    assert finding.verdict == "pass", finding.message
