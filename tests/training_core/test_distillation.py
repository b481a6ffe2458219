"""Distillation: the loss is the paper's, rows keep their teacher, and it goes on exactly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ensemble_effects import measured
from pydantic import ValidationError
from ranks import run_ranks
from ranks_techniques_worker import TAUGHT, distilled, sales_taught
from torch import Tensor
from training_samples import CPU, Sales, examples_of, largest_difference, settings, trainer, weights

from training_core.distillation.loss import divergence, taught_logits
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.batches import Sharing
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.chunks import RowFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks
from training_core.precision import choose_precision
from training_core.regularisation.loss import loss_of
from training_core.task import (
    PADDING,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    RegressionTask,
    SequenceTask,
)

KINDS: dict[str, tuple[type[Any], tuple[int, ...]]] = {
    "binary": (BinaryTask, (6,)),
    "multiclass": (MulticlassTask, (6, 4)),
    "multilabel": (MultilabelTask, (6, 3)),
    "regression": (RegressionTask, (6,)),
    "sequence": (SequenceTask, (6, 5, 4)),
}


def task_of(kind: str) -> Any:
    base = KINDS[kind][0]
    return type("One", (base,), {"preprocessor": None, "build_model": None, "target": None})()


def target_of(kind: str) -> Tensor:
    draw, shape = torch.Generator().manual_seed(1), KINDS[kind][1]
    if kind == "multiclass":
        return torch.randint(0, 4, shape[:1], generator=draw)
    if kind == "sequence":
        target = torch.randint(0, 4, shape[:2], generator=draw)
        target[0, 2:] = PADDING
        return target
    return torch.randint(0, 2, shape, generator=draw).float()


def taught(kind: str, outputs: Tensor, teacher: Tensor, **given: Any) -> Tensor:
    """The loss of a training with a teacher, of which only the teacher's part counts."""
    asked = {"teacher": "champion", "weight": 1.0, **given}
    chosen = settings(distillation=asked)
    loss = loss_of(task_of(kind), chosen.regularisation, chosen.distillation)
    return loss(outputs, Examples({}, target_of(kind), None, teacher))


# ---- the loss ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_student_that_agrees_with_its_teacher_has_nothing_to_learn_from_it(kind: str) -> None:
    outputs = torch.randn(KINDS[kind][1], generator=torch.Generator().manual_seed(0))
    predictions = task_of(kind).predict(outputs)
    outputs.requires_grad_()
    losses = taught(kind, outputs, taught_logits(predictions, kind))  # type: ignore[arg-type]
    assert losses.shape == (6,)
    assert losses.abs().max() < 1e-6
    losses.sum().backward()
    assert outputs.grad is not None
    assert outputs.grad.abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["multiclass", "sequence"])
@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_classes_have_the_softened_divergence_times_the_squared_temperature(
    kind: str, temperature: float
) -> None:
    draw = torch.Generator().manual_seed(2)
    student, teacher = (torch.randn(KINDS[kind][1], generator=draw) for _ in range(2))
    p, q = (np.exp(each.double().numpy() / temperature) for each in (teacher, student))
    p, q = p / p.sum(-1, keepdims=True), q / q.sum(-1, keepdims=True)
    expected = temperature**2 * (p * (np.log(p) - np.log(q))).sum(-1)
    if kind == "sequence":  # each token that is not padding counts once
        expected = (expected * (target_of(kind).numpy() != PADDING)).sum(1)
    found = taught(kind, student, teacher, temperature=temperature)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-6)


def test_yes_or_no_is_the_same_as_two_classes() -> None:
    student, teacher = torch.linspace(-2, 3, 6), torch.linspace(4, -1, 6)
    of_two = [torch.stack([torch.zeros(6), each], 1) for each in (student, teacher)]
    classes = torch.zeros(6, dtype=torch.int64)
    expected = divergence(*of_two, classes, "multiclass", 2.0)
    found = taught("binary", student, teacher, temperature=2.0)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5)
    many = taught("multilabel", student.view(6, 1).repeat(1, 3), teacher.view(6, 1).repeat(1, 3))
    np.testing.assert_allclose(many.numpy(), expected.numpy(), rtol=1e-5)


def test_numbers_have_the_squared_distance_from_the_teachers() -> None:
    student, teacher = torch.arange(6.0), torch.arange(6.0) * 3
    assert torch.equal(taught("regression", student, teacher), (2 * torch.arange(6.0)).square())


def test_in_the_limit_of_high_temperature_logits_are_matched() -> None:
    """Hinton et al. 2015, equation 4: the gradient becomes (z - v) / C for logits of mean zero."""
    draw = torch.Generator().manual_seed(3)
    student, teacher = (torch.randn(6, 4, generator=draw).double() for _ in range(2))
    student, teacher = (each - each.mean(1, keepdim=True) for each in (student, teacher))
    student.requires_grad_()
    divergence(student, teacher, target_of("multiclass"), "multiclass", 1e3).sum().backward()
    assert student.grad is not None
    torch.testing.assert_close(student.grad, (student - teacher).detach() / 4, rtol=0, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_teacher_that_is_quite_sure_gives_finite_losses_and_gradients(kind: str) -> None:
    sure = torch.zeros(KINDS[kind][1])
    sure[..., 0] = 1.0
    outputs = (100 * torch.randn(KINDS[kind][1])).requires_grad_()
    taught(kind, outputs, taught_logits(sure, kind)).sum().backward()  # type: ignore[arg-type]
    assert outputs.grad is not None
    assert torch.isfinite(outputs.grad).all()


def test_the_parts_are_weighed_and_smoothing_is_of_the_labels_part() -> None:
    student, teacher = torch.randn(6), torch.randn(6)
    asked = {"teacher": "champion", "weight": 0.3, "temperature": 2.0}
    chosen = settings(distillation=asked, regularisation={"label_smoothing": 0.2})
    examples = Examples({}, target_of("binary"), None, teacher)
    whole = loss_of(task_of("binary"), chosen.regularisation, chosen.distillation)
    labels = loss_of(task_of("binary"), chosen.regularisation)(student, examples)
    expected = 0.7 * labels + 0.3 * taught("binary", student, teacher, temperature=2.0)
    torch.testing.assert_close(whole(student, examples), expected)


def test_what_does_not_fit_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="goes without mixup and cutmix"):
        settings(distillation={"teacher": "champion"}, regularisation={"mixup": 0.2})
    with pytest.raises(ValidationError, match="belong together"):
        settings(distillation={"teacher": "file"})
    with pytest.raises(ConfigurationError, match="carry no teacher's predictions"):
        trainer(distillation={"teacher": "champion"}).fit()
    with pytest.raises(ConfigurationError, match=r"shape \[4\], and the network's outputs of \[\]"):
        taught("binary", torch.zeros(6), torch.zeros(6, 4))
    with pytest.raises(ConfigurationError, match="says no kind"):
        loss_of(object(), settings().regularisation, settings(**TAUGHT).distillation)  # type: ignore[arg-type]


# ---- rows keep their teacher -------------------------------------------------------------------


def numbered(count: int, *, units: bool) -> Examples:
    """Examples whose teacher says twice their number."""
    number = torch.arange(count, dtype=torch.float32)
    counted = torch.ones(count) if units else None
    return Examples(
        {"x": number.clone()}, number.clone(), counted, torch.stack([2 * number] * 3, 1)
    )


def feeds(folder: Path, examples: Examples) -> Iterator[RowFeed]:
    yield MemoryFeed(examples)
    write_blocks(folder, [examples.take(slice(0, 30)), examples.take(slice(30, None))])
    yield BlockFeed([open_blocks(folder)], window_blocks=2)


@pytest.mark.parametrize("units", [False, True])
def test_every_feed_hands_each_row_its_own_teacher(tmp_path: Path, units: bool) -> None:
    for feed in feeds(tmp_path / "blocks", numbered(50, units=units)):
        sharing = Sharing.of(batch_size=8, microbatches=2, rank=0, world_size=1, seed=3)
        seen, steps = [], feed.steps(sharing, samples=0)
        for _ in range(7):
            for microbatch in next(steps).microbatches:
                examples = microbatch.examples
                assert examples.teacher is not None
                assert torch.equal(examples.teacher, torch.stack([2 * examples.arrays["x"]] * 3, 1))
                assert (examples.units is not None) == units
                seen += examples.arrays["x"].tolist() if microbatch.weight is None else []
        assert sorted(seen) == list(range(50))
        stored = feed.stored(10, 40)
        assert stored.teacher is not None
        assert torch.equal(stored.teacher[:, 0], 2 * stored.arrays["x"])


def test_blocks_that_were_written_without_a_teacher_have_none(tmp_path: Path) -> None:
    write_blocks(tmp_path, [replace(numbered(5, units=False), teacher=None)])
    assert open_blocks(tmp_path).like.teacher is None


def test_augmented_rows_keep_their_teacher() -> None:
    chosen = {"regularisation": {"gaussian_noise": 0.1}, "distillation": {"teacher": "champion"}}
    run = trainer(train=sales_taught(43), **chosen)
    examples = sales_taught(8)
    changed = run.augment(examples, sample=8, part=0)
    assert not torch.equal(changed.arrays["numbers"], examples.arrays["numbers"])
    assert changed.teacher is examples.teacher
    assert run.fit().stop_reason == "epochs"


# ---- training ----------------------------------------------------------------------------------


def test_without_a_teacher_the_training_is_the_very_same() -> None:
    plain, carrying = trainer(), trainer(train=sales_taught(43))
    plain.fit()
    carrying.fit()
    assert largest_difference(weights(plain.model), weights(carrying.model)) == 0.0


@pytest.mark.parametrize("more", [{}, {"accumulation": 2}])
def test_a_taught_run_that_was_stopped_ends_with_the_very_same_weights(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    def run_in(place: str) -> Any:
        return trainer(tmp_path / place, task=Sales(), train=sales_taught(43), **TAUGHT, **more)

    whole, first = run_in("whole"), run_in("run")
    whole.fit()
    first.should_stop = lambda: first.outcome.steps == 6
    first.fit()
    second = run_in("run")
    assert second.fit().resumed_from == 6
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations
    plain = trainer(task=Sales())
    plain.fit()
    assert largest_difference(weights(plain.model), weights(whole.model)) > 0


def test_it_trains_under_autocast() -> None:
    run = trainer(train=sales_taught(43), precision="bf16", **TAUGHT)
    assert run.precision.name == choose_precision("bf16", CPU).name
    assert np.isfinite(run.fit().evaluations[-1][1]["loss"])


@pytest.mark.smoke
@pytest.mark.slow
def test_ranks_learn_from_the_same_teacher_and_go_on_exactly(tmp_path: Path) -> None:
    found = run_ranks(2, distilled, tmp_path)
    for kind in ("ddp", "fsdp"):
        whole, resumed = found[f"{kind} whole"], found[f"{kind} run"]
        assert resumed["resumed_from"] == 9
        assert largest_difference(resumed["weights"], whole["weights"]) == 0.0, kind
        assert whole["losses"] == pytest.approx(found["alone"], rel=1e-4), kind


@pytest.mark.smoke
def test_an_ensemble_is_better_than_its_members_and_teaches_a_small_network() -> None:
    """No mean of members' losses is less, by Jensen; a student comes nearer to its teacher."""
    found = measured(0, members=3)
    assert found["ensemble log loss"] < found["member log loss"]
    assert found["ensemble log loss"] < found["best member log loss"]
    near, far = (found[f"student of {who}, from the ensemble"] for who in ("ensemble", "labels"))
    assert near < 0.9 * far


def test_a_teachers_predictions_are_kept_as_logits() -> None:
    _, examples = examples_of(Sales(), 5)
    assert examples.teacher is None
    half = taught_logits(torch.tensor([0.5, 0.0, 1.0], dtype=torch.float64), "binary")
    assert half.dtype == torch.float32
    assert half[0] == 0
    assert torch.isfinite(half).all()
