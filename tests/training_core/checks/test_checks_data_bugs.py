"""The data checks find what was planted, name it, and pass what it was planted into."""

from __future__ import annotations

from typing import Any, Self

import check_data_samples as samples
import numpy as np
import pandas as pd
import pytest
import torch
from check_data_samples import (
    HEALTHY,
    NUMBERS,
    Houses,
    Letters,
    Prices,
    Shapes,
    images,
    look,
    table,
)
from torch import Tensor, nn

from training_core.checks.data import (
    CHECKS,
    AugmentationKeepsLabels,
    FittedOnTrainRows,
    InputsBeforeNetwork,
    LabelIsNoInput,
    NoSharedRows,
    PaddingCountsForNothing,
    RowsStayThemselves,
)
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor, Task


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
@pytest.mark.parametrize("healthy", HEALTHY)
def test_no_healthy_task_is_found_fault_with(check: Any, healthy: str) -> None:
    task, rows = HEALTHY[healthy]
    finding = look(check, task(), rows)
    assert finding.verdict in ("pass", "not_applicable"), finding.message


def using(kind: type[TabularPreprocessor], task: type[Task] = Houses, **options: Any) -> Task:
    """The task with another preprocessor."""

    class Broken(task):  # type: ignore[misc, valid-type]
        def preprocessor(self) -> Preprocessor:
            made = {"categories": ["kind"], "numbers": NUMBERS, **options}
            return kind(**made)

    return Broken()  # type: ignore[no-any-return]


# ---- rows_stay_themselves --------------------------------------------------------------------


class _BatchStatistics(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][:, 1] -= arrays["numbers"][:, 1].mean()
        return arrays


class _Sorted(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        return super().transform(frame.sort_values("age"))


class _JoinedByIndex(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        ages = frame["age"].reset_index(drop=True)
        return super().transform(frame.assign(age=ages.reindex(frame.index)))


class _Scaling(TabularPreprocessor):
    """In place: the second call finds scaled numbers."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        frame["area"] = frame["area"] / 100
        return super().transform(frame)


class _Chance(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][np.random.random(len(frame)) < 0.1, 0] = 0
        return arrays


class _Forgetful(TabularPreprocessor):
    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"means": [0.0] * len(self.means)}


class _OnlyInTraining(TabularPreprocessor):
    """Knows the split it was fitted on by its length."""

    rows = 0

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        self.rows = len(train)
        return super().fit(train)

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        if len(frame) != self.rows:
            arrays["numbers"] *= 50
        return arrays


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_BatchStatistics, "'age' (numbers[:, 1])"),
        (_Sorted, "in another order"),
        (_JoinedByIndex, "'age' (numbers[:, 1])"),
        (_Scaling, "asked twice with the same rows, 'area'"),
        (_Chance, "'area'"),
        (_Forgetful, "reloaded from its state"),
        (_OnlyInTraining, "among all rows of their split"),
    ],
)
def test_a_row_that_depends_on_more_than_itself_is_found(
    kind: type[TabularPreprocessor], said: str
) -> None:
    finding = look(RowsStayThemselves, using(kind), table())
    assert finding.verdict == "fail"
    assert said in finding.message


def test_labels_shifted_by_a_row_are_found_and_the_label_named() -> None:
    class Shifted(Houses):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            return np.roll(super().target(frame), 1)

    finding = look(RowsStayThemselves, Shifted(), table())
    assert finding.verdict == "fail"
    assert "the target (column dear)" in finding.message


# ---- label_is_no_input -----------------------------------------------------------------------


def test_the_label_among_the_columns_is_found() -> None:
    task = using(TabularPreprocessor, numbers=[*NUMBERS, "dear"])
    finding = look(LabelIsNoInput, task, table())
    assert finding.verdict == "fail"
    assert "'dear'" in finding.message


class _Peeking(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        if "dear" in frame:
            arrays["numbers"][:, 2] += 0.1 * frame["dear"]
        return arrays


def test_a_tensor_that_changes_with_the_label_is_found() -> None:
    finding = look(LabelIsNoInput, using(_Peeking), table())
    assert finding.verdict == "fail"
    assert "'distance' (numbers[:, 2]) changes with the label" in finding.message


@pytest.mark.parametrize(
    ("task", "copied"),
    [(Houses, lambda rows: 3 - rows["dear"]), (Prices, lambda rows: np.log(rows["price"] + 1e5))],
)
def test_the_target_under_another_name_is_found(task: type[Task], copied: Any) -> None:
    rows = table()
    rows["booked"] = copied(rows)
    broken = using(TabularPreprocessor, task, numbers=[*NUMBERS, "booked"])
    finding = look(LabelIsNoInput, broken, rows)
    assert finding.verdict == "fail"
    assert "'booked'" in finding.message


def test_a_column_that_knows_the_target_almost_is_a_warning() -> None:
    rows = table()
    rows["booked"] = rows["price"] + np.random.default_rng(1).normal(0, 5, len(rows))
    broken = using(TabularPreprocessor, Prices, numbers=[*NUMBERS, "booked"])
    finding = look(LabelIsNoInput, broken, rows)
    assert finding.verdict == "warn"
    assert "'booked'" in finding.message


def test_a_language_model_that_is_to_predict_its_own_input_is_found() -> None:
    class Copying(Letters):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            tokens = samples.TextPreprocessor().transform(frame)["tokens"]
            return np.where(tokens == 0, -100, tokens)

    finding = look(LabelIsNoInput, Copying(), samples.texts())
    assert finding.verdict == "fail"
    assert "the input at that position" in finding.message


# ---- fitted_on_train_rows --------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 9])
def test_statistics_of_all_rows_are_found(seed: int) -> None:
    """With the very rows (seed 0), and with others of the kind."""
    everything = table(400, seed=seed)

    class OfAllRows(TabularPreprocessor):
        def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
            return super().fit(everything)

    finding = look(FittedOnTrainRows, using(OfAllRows), table())
    assert finding.verdict == "fail"
    assert "means[0]" in finding.message
    assert ("mean of 'area' of train and validation" in finding.message) == (seed == 0)


def test_a_fit_that_writes_to_its_rows_is_found() -> None:
    class Writing(TabularPreprocessor):
        def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
            train["area"] = train["area"] / 10
            return super().fit(train)

    finding = look(FittedOnTrainRows, using(Writing), table())
    assert finding.verdict == "fail"
    assert "area" in finding.message


def test_constants_that_somebody_wrote_down_are_no_leak() -> None:
    class Constants(samples.ImagePreprocessor):
        def fit(self, train: pd.DataFrame) -> Self:
            self.mean, self.deviation = 0.1307, 1 / 3.25
            return self

    class Task(Shapes):
        def preprocessor(self) -> Preprocessor:
            return Constants()

    assert look(FittedOnTrainRows, Task(), images()).verdict == "pass"


# ---- inputs_before_network -------------------------------------------------------------------


class _Swapped(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.means[:2] = self.means[1::-1]
        return self


class _Variance(TabularPreprocessor):
    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.deviations = [d**2 for d in self.deviations]
        return self


class _Forgotten(TabularPreprocessor):
    """One column is left as it is."""

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        super().fit(train)
        self.means[2], self.deviations[2], self.clip = 0.0, 1.0, 1e9
        return self


class _Overflow(TabularPreprocessor):
    def _cast(self, frame: pd.DataFrame) -> pd.DataFrame:
        with np.errstate(over="ignore"):
            return frame.assign(distance=frame["distance"].to_numpy().astype(np.int16))

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(self._cast(train))

    def transform(self, frame: pd.DataFrame) -> Arrays:
        return super().transform(self._cast(frame))


class _Bytes(_Overflow):
    def _cast(self, frame: pd.DataFrame) -> pd.DataFrame:
        return frame.assign(distance=frame["distance"].to_numpy().astype(np.uint8))


class _Halves(TabularPreprocessor):
    """float16 ends at 65504."""

    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        with np.errstate(over="ignore"):
            arrays["numbers"][:, 2] = frame["distance"] * 10
            return arrays | {"numbers": arrays["numbers"].astype(np.float16)}


class _Missing(TabularPreprocessor):
    def transform(self, frame: pd.DataFrame) -> Arrays:
        arrays = super().transform(frame)
        arrays["numbers"][:, 3] = np.where(frame["rooms"].isna(), np.nan, arrays["numbers"][:, 3])
        return arrays


class _Unread(TabularPreprocessor):
    """Its vocabulary is written otherwise."""

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(train.assign(kind=train["kind"].str.upper()))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (_Swapped, "mean of 'age'"),
        (_Variance, "variance"),
        (_Forgotten, "'distance' (numbers[:, 2])"),
        (_Overflow, "begins again every 655"),
        (_Bytes, "begins again every 256"),
        (_Halves, "'distance' (numbers[:, 2]) is not a finite number in torch.float16"),
        (_Missing, "'rooms' (numbers[:, 3]) is not a finite number"),
        (_Unread, "'kind'"),
    ],
)
def test_inputs_that_are_not_what_the_rows_say_are_found(
    kind: type[TabularPreprocessor], said: str
) -> None:
    finding = look(InputsBeforeNetwork, using(kind), table())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


@pytest.mark.parametrize(("normalised", "verdict"), [(True, "warn"), (False, "fail")])
def test_pixels_that_are_not_scaled_fail_where_the_network_does_not_scale_them(
    normalised: bool, verdict: str
) -> None:
    class Raw(samples.ImagePreprocessor):
        def transform(self, frame: pd.DataFrame) -> Arrays:
            return {"image": self._stack(frame) * 255}

    class Task(Shapes):
        def preprocessor(self) -> Preprocessor:
            return Raw()

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return samples.ImageNetwork(normalised=normalised)

    finding = look(InputsBeforeNetwork, Task(), images())
    assert finding.verdict == verdict, finding.message


def test_rows_are_shown_raw_beside_what_the_network_gets() -> None:
    rows = look(InputsBeforeNetwork, Houses(), table())
    assert len(rows.samples) == 6
    assert rows.samples[0].raw["kind"] in ("flat", "house", "hut")
    assert "area" in rows.samples[0].network["numbers"]
    picture = look(InputsBeforeNetwork, Shapes(), images()).samples[0].images["image"]
    assert (len(picture), len(picture[0])) == (12, 12)
    assert all(len(pixel) == 7 for line in picture for pixel in line)


# ---- padding_counts_for_nothing --------------------------------------------------------------


def test_attention_and_pooling_without_a_mask_are_found() -> None:
    class Unmasked(samples.Early):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return samples.Attention(1, causal=False, masked=False)

    finding = look(PaddingCountsForNothing, Unmasked(), samples.texts())
    assert finding.verdict == "fail"
    assert "padded positions fewer" in finding.message


def test_padding_in_the_loss_is_found() -> None:
    class Counting(Letters):
        def target(self, frame: pd.DataFrame) -> np.ndarray[Any, Any]:
            tokens = samples.TextPreprocessor().transform(frame)["tokens"]
            return np.concatenate([tokens[:, 1:], 0 * tokens[:, :1]], axis=1)

    finding = look(PaddingCountsForNothing, Counting(), samples.texts())
    assert finding.verdict == "fail"
    assert "the loss counts 100% of the padded positions" in finding.message


# ---- augmentation_keeps_labels ---------------------------------------------------------------

Augmented = tuple[dict[str, Tensor], Tensor]


def _mixed(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    order = torch.randperm(len(target), generator=generator)
    return {name: array[order] for name, array in arrays.items()}, target


def _flipped(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    flip = torch.rand(len(target), generator=generator) < 0.5
    image = arrays["image"]
    image[flip] = image[flip].flip(3)
    return {"image": image}, target


def _relabelled(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    changed = torch.rand(len(target), generator=generator) < 0.3
    return arrays, torch.where(changed, (target + 1) % 3, target)


def _global(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return {"image": arrays["image"] + 0.1 * torch.randn_like(arrays["image"])}, target


def _narrow(arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator) -> Augmented:
    return {"image": arrays["image"][..., 1:]}, target


@pytest.mark.parametrize(
    ("augment", "said"),
    [
        (_mixed, "another example's inputs with their own label"),
        (_flipped, "change places"),
        (_relabelled, "with another label"),
        (_global, "the same generator gives another augmentation"),
        (_narrow, "augment makes float32 [192, 1, 12, 11] of 'image'"),
    ],
)
def test_an_augmentation_that_does_not_keep_labels_is_found(augment: Any, said: str) -> None:
    class Broken(Shapes):
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            result: Augmented = augment(arrays, target, generator)
            return result

    finding = look(AugmentationKeepsLabels, Broken(), images())
    assert finding.verdict == "fail", finding.message
    assert said in finding.message


def test_what_only_a_network_recognises_when_flipped_is_found() -> None:
    """Flipped, these arrows point the other way where no raw arrow is: no neighbour is near."""
    rows = images(500)
    rows["image"] = [np.roll(image, -2, axis=1) for image in rows["image"]]

    class Broken(Shapes):
        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return samples.Anywhere()

        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            return _flipped(arrays, target, generator)

    settings = samples.CheckSettings(input_steps=150)
    rate = samples.TRAINING.optimiser.model_copy(update={"lr": 0.01})
    training = samples.TRAINING.model_copy(update={"optimiser": rate})
    subject = Subject(Broken(), rows, training=training, settings=settings)
    finding = AugmentationKeepsLabels().look(subject)
    assert finding.verdict == "fail", finding.message
    assert "change places" in finding.message


def test_mixing_inputs_and_targets_alike_is_no_fault() -> None:
    class Mixed(Houses):
        def augment(
            self, arrays: dict[str, Tensor], target: Tensor, generator: torch.Generator
        ) -> Augmented:
            order = torch.randperm(len(target), generator=generator)
            share = torch.rand(len(target), generator=generator)
            numbers = arrays["numbers"]
            mixed = share[:, None] * numbers + (1 - share[:, None]) * numbers[order]
            return {**arrays, "numbers": mixed}, share * target + (1 - share) * target[order]

    finding = look(AugmentationKeepsLabels, Mixed(), table())
    assert finding.verdict in ("pass", "warn"), finding.message


# ---- no_shared_rows --------------------------------------------------------------------------


def test_copies_of_train_rows_among_the_held_back_ones_are_found() -> None:
    rows = table()
    copies = pd.concat([rows, rows[:100]], ignore_index=True)
    finding = look(NoSharedRows, Houses(), copies)
    assert finding.verdict == "fail"
    assert "occur in train" in finding.message


def test_validation_rows_that_were_put_into_train_are_found() -> None:
    rows = images()
    task = Shapes()
    subject = Subject(task, rows, validation=rows[:50], training=samples.TRAINING)
    finding = NoSharedRows().look(subject)
    assert finding.verdict == "fail"
    assert finding.measured == 1.0
