"""Label smoothing, mixing and noise: what becomes of examples and loss, and that runs go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from training_samples import Certain, Sales, examples_of, largest_difference, trainer, weights

from training_core.augmentation import augmentation_of
from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.regularisation.loss import loss_of, smoothed_loss
from training_core.regularisation.mixing import Mixed, mixed
from training_core.regularisation.settings import RegularisationSettings
from training_core.task import (
    PADDING,
    BinaryTask,
    MulticlassTask,
    MultilabelTask,
    RegressionTask,
    SequenceTask,
    Task,
)


def settings(**changes: Any) -> RegularisationSettings:
    return RegularisationSettings.model_validate(changes)


def of_kind(base: type[Task], **more: Any) -> Any:
    """A task that has a kind and a loss, and is asked for nothing else."""
    nothing = {name: None for name in Task.__abstractmethods__ if not hasattr(base, name)}
    made = type("Made", (base,), {**nothing, **more})
    made.__abstractmethods__ = frozenset()
    return made()


class Focal:
    """A loss that no soft target goes through: it asks for whole classes."""

    def loss(self, outputs: Tensor, target: Tensor) -> Tensor:
        assert set(target.unique().tolist()) <= {0.0, 1.0, 2.0, 3.0}
        plain = (
            F.cross_entropy(outputs, target, reduction="none")
            if outputs.ndim == 2
            else F.binary_cross_entropy_with_logits(outputs, target, reduction="none")
        )
        return (1 - torch.exp(-plain)).square() * plain


# ---- label smoothing ---------------------------------------------------------------------------


@pytest.mark.parametrize("focal", [False, True])
def test_smoothed_binary_and_multiclass_losses_are_the_mix_over_classes(focal: bool) -> None:
    torch.manual_seed(0)
    more = {"loss": Focal.loss} if focal else {}
    for base, outputs, target, classes in (
        (BinaryTask, torch.randn(6), torch.randint(0, 2, (6,)).float(), 2),
        (MulticlassTask, torch.randn(6, 4), torch.randint(0, 4, (6,)), 4),
    ):
        task = of_kind(base, **more)
        each = [task.loss(outputs, torch.full_like(target, c)) for c in range(classes)]
        expected = 0.8 * task.loss(outputs, target) + 0.2 * torch.stack(each).mean(0)
        assert torch.allclose(smoothed_loss(task, 0.2)(outputs, target), expected, atol=1e-6)


def test_smoothed_losses_of_labels_and_of_tokens_are_torchs() -> None:
    torch.manual_seed(0)
    outputs, target = torch.randn(3, 2), torch.randint(0, 2, (3, 2)).float()
    soft = F.binary_cross_entropy_with_logits(outputs, 0.9 * target + 0.05, reduction="none")
    found = smoothed_loss(of_kind(MultilabelTask), 0.1)(outputs, target)
    assert torch.allclose(found, soft.mean(1))
    logits, tokens = torch.randn(2, 3, 5), torch.tensor([[1, 2, PADDING], [4, PADDING, PADDING]])
    found = smoothed_loss(of_kind(SequenceTask), 0.1)(logits, tokens)
    expected = [
        F.cross_entropy(logits[0, :2], tokens[0, :2], reduction="sum", label_smoothing=0.1),
        F.cross_entropy(logits[1, :1], tokens[1, :1], reduction="sum", label_smoothing=0.1),
    ]
    assert torch.allclose(found, torch.stack(expected))


def test_smoothed_logits_settle_where_the_paper_says() -> None:
    """The least loss is where probabilities are those of the smoothed label."""
    logits = torch.zeros(1, 4, requires_grad=True)
    loss = smoothed_loss(of_kind(MulticlassTask), 0.1)
    optimiser = torch.optim.SGD([logits], lr=1.0)
    for _ in range(4000):
        optimiser.zero_grad()
        loss(logits, torch.tensor([2])).sum().backward()
        optimiser.step()
    apart = float((logits[0, 2] - logits[0, 0]).detach())
    assert apart == pytest.approx(float(np.log((1 - 0.1 + 0.025) / 0.025)), abs=1e-3)


@pytest.mark.parametrize(
    ("task", "changes", "words"),
    [
        (of_kind(RegressionTask), {"label_smoothing": 0.1}, "a regression task"),
        (object(), {"label_smoothing": 0.1}, "which says no kind"),
        (of_kind(SequenceTask, loss=Focal.loss), {"label_smoothing": 0.1}, "loss of its own"),
        (of_kind(SequenceTask), {"mixup": 0.2}, "a sequence task"),
        (of_kind(RegressionTask), {"cutmix": 1.0}, "cutmix is set, and this is a regression"),
    ],
)
def test_what_cannot_be_smoothed_or_mixed_is_refused(
    task: Any, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        loss_of(task, settings(**changes))


# ---- mixing ------------------------------------------------------------------------------------


def images(count: int = 64) -> Examples:
    """Images of which each pixel tells which row it is from."""
    rows = torch.arange(count, dtype=torch.float32)
    return Examples({"image": rows.view(-1, 1, 1, 1).expand(-1, 2, 8, 8).clone()}, rows.long())


def test_mixup_takes_as_much_of_two_examples_as_of_their_losses() -> None:
    examples = images()
    found = mixed(examples, np.random.default_rng(0), settings(mixup=0.4))
    expected = found.share * examples.target + (1 - found.share) * found.other
    assert torch.allclose(found.arrays["image"][:, 0, 0, 0], expected, atol=1e-4)
    assert torch.equal(found.target, examples.target)
    # Beta(0.4, 0.4): mean 0.5, variance 1 / (4 · 1.8)
    many = mixed(images(4096), np.random.default_rng(1), settings(mixup=0.4)).share
    assert float(many.mean()) == pytest.approx(0.5, abs=0.02)
    assert float(many.var()) == pytest.approx(1 / 7.2, abs=0.01)


def test_cutmix_pastes_one_box_and_its_share_is_that_of_the_pixels() -> None:
    examples = images()
    found = mixed(examples, np.random.default_rng(0), settings(cutmix=1.0))
    image = found.arrays["image"]
    for row in range(64):
        foreign = image[row] != row
        assert torch.equal(foreign[0], foreign[1]), "all channels alike"
        if found.other[row] != row:
            assert float(found.share[row]) == pytest.approx(1 - float(foreign.float().mean()))
            assert set(image[row][foreign].tolist()) <= {float(found.other[row])}
        lines, columns = foreign[0].any(1), foreign[0].any(0)
        assert torch.equal(foreign[0], lines[:, None] & columns[None]), "a box"
    assert float((found.share < 1).float().mean()) > 0.1


def test_cutmix_of_tables_takes_each_cell_of_one_of_two_rows() -> None:
    row = torch.arange(128)
    table = Examples(
        {"numbers": row[:, None].float().expand(-1, 6).clone(),
         "categories": row[:, None].expand(-1, 4).clone()},
        row.float(),
    )  # fmt: skip
    found = mixed(table, np.random.default_rng(0), settings(cutmix=1.0))
    cells = torch.cat([found.arrays["numbers"], found.arrays["categories"].float()], 1)
    own, foreign = cells == row[:, None], cells == found.other[:, None]
    assert bool((own | foreign).all())
    differs = found.other != row
    assert torch.allclose(own.float().mean(1)[differs], found.share[differs])


def test_a_share_of_the_examples_stays_whole() -> None:
    found = mixed(images(4096), np.random.default_rng(0), settings(mixup=1.0, mix_probability=0.25))
    assert float((found.share == 1).float().mean()) == pytest.approx(0.75, abs=0.03)


def test_with_both_each_microbatch_gets_one_of_them() -> None:
    by = settings(mixup=1.0, cutmix=1.0)
    whole = [
        float(mixed(images(), np.random.default_rng(seed), by).arrays["image"].frac().abs().max())
        for seed in range(40)
    ]
    assert 8 < sum(value == 0 for value in whole) < 32  # cut pixels are whole numbers


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_the_loss_of_a_mix_has_the_gradient_of_the_mixed_label(kind: str) -> None:
    torch.manual_seed(0)
    shares = torch.rand(5)
    if kind == "multiclass":
        task, outputs = of_kind(MulticlassTask), torch.randn(5, 3, requires_grad=True)
        one, other = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([2, 2, 0, 1, 1])
        soft = shares[:, None] * F.one_hot(one, 3) + (1 - shares[:, None]) * F.one_hot(other, 3)
        expected = F.cross_entropy(outputs, soft, reduction="none")
    else:
        task = of_kind(BinaryTask if kind == "binary" else RegressionTask)
        outputs = torch.randn(5, requires_grad=True)
        one, other = torch.tensor([0.0, 1, 1, 0, 1]), torch.tensor([1.0, 1, 0, 0, 1])
        expected = task.loss(outputs, shares * one + (1 - shares) * other)
    examples = Mixed({}, one, other=other, share=shares)
    found = loss_of(task, settings(mixup=0.2))(outputs, examples)
    gradients = [torch.autograd.grad(x.sum(), outputs)[0] for x in (found, expected)]
    assert torch.allclose(*gradients, atol=1e-6)


def test_mixing_numbers_between_categories_is_refused_and_says_what_to_use() -> None:
    run = trainer(regularisation={"mixup": 0.2})
    with pytest.raises(ConfigurationError, match="categories") as raised:
        run.fit()
    assert "cutmix" in str(raised.value)


# ---- noise -------------------------------------------------------------------------------------


def test_noise_is_gaussian_on_numbers_and_swaps_categories_within_their_columns() -> None:
    count = 4000
    examples = Examples(
        {
            "numbers": torch.zeros(count, 3),
            "categories": torch.arange(2).repeat_interleave(2)[None] * 10
            + torch.randint(0, 5, (count, 4), generator=torch.Generator().manual_seed(0)),
        },
        torch.zeros(count),
    )
    by = settings(gaussian_noise=0.3, swap_noise=0.2)
    augment = augmentation_of(Certain(), seed=0, regularisation=by)
    found = augment(examples, sample=8, part=0)
    assert float(found.arrays["numbers"].std()) == pytest.approx(0.3, rel=0.03)
    before, after = examples.arrays["categories"], found.arrays["categories"]
    changed = (before != after).float().mean(0)
    assert torch.allclose(changed, torch.full((4,), 0.2 * 0.8), atol=0.02)  # a fifth meets its like
    assert int(after[:, :2].max()) < 5 <= 10 <= int(after[:, 2:].min())
    assert torch.equal(before, examples.arrays["categories"])
    again = augment(examples, sample=8, part=0)
    assert torch.equal(again.arrays["numbers"], found.arrays["numbers"])
    other = augment(examples, sample=8, part=1)
    assert not torch.equal(other.arrays["numbers"], found.arrays["numbers"])


def test_tokens_are_not_swapped() -> None:
    with pytest.raises(ConfigurationError, match="swap_noise"):
        augmentation_of(of_kind(SequenceTask), seed=0, regularisation=settings(swap_noise=0.1))


# ---- a whole training --------------------------------------------------------------------------


def test_the_validation_loss_is_the_tasks_own() -> None:
    run = trainer(regularisation={"label_smoothing": 0.3, "gaussian_noise": 0.5}, max_skipped=0)
    plain = trainer(max_skipped=0)
    run.module.load_state_dict(plain.module.state_dict())
    assert run._evaluate() == plain._evaluate()


class Numbers(nn.Module):
    """A network of numbers alone."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 1))

    def forward(self, numbers: Tensor) -> Tensor:
        outputs: Tensor = self.body(numbers)
        return outputs.squeeze(1)


@pytest.mark.parametrize("stop", [8, 9])  # at an evaluation, and between two
@pytest.mark.parametrize(
    "by",
    [
        {"mixup": 0.4, "label_smoothing": 0.1},
        {"cutmix": 1.0, "mix_probability": 0.5},
        {"gaussian_noise": 0.2, "swap_noise": 0.1, "dropout": 0.3},
    ],
)
def test_it_goes_on_as_if_nothing_had_happened(
    tmp_path: Path, by: dict[str, Any], stop: int
) -> None:
    def run_in(place: str) -> Any:
        torch.manual_seed(7)
        more: dict[str, Any] = {}
        if "mixup" in by:
            _, rows = examples_of(Sales(), 43)
            _, held = examples_of(Sales(), 21, seed=1)
            numbers = [Examples({"numbers": e.arrays["numbers"]}, e.target) for e in (rows, held)]
            more = {"model": Numbers(), "train": numbers[0], "validation": numbers[1]}
        return trainer(tmp_path / place, task=Sales(), regularisation=by, **more)

    whole, first = run_in("whole"), run_in("run")
    whole.fit()
    first.should_stop = lambda: first.outcome.steps == stop
    first.fit()
    second = run_in("run")
    assert second.fit().resumed_from == stop
    assert largest_difference(weights(whole.model), weights(second.model)) == 0.0
    assert second.outcome.evaluations == whole.outcome.evaluations
    plain = trainer(task=Sales())
    plain.fit()
    if "mixup" not in by:
        assert largest_difference(weights(plain.model), weights(whole.model)) > 0
