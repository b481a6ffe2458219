"""The bias set from the prior: mean predictions are the labels' averages, or it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from check_loss_samples import Bars, FarValue, Three, Two, Value, Words, YesNo, subject_of
from torch import Tensor, nn

from components.train_distributed.feeding import first_examples
from training_core.errors import ConfigurationError
from training_core.feeds.blocks import BlockFeed
from training_core.feeds.memory import MemoryFeed
from training_core.feeds.npy import open_blocks, write_blocks
from training_core.prior_bias import set_prior_bias
from training_core.task import PADDING, Preprocessor, Task
from training_core.untrained import untrained_outputs


@pytest.mark.parametrize("task", [YesNo, Three, Two, FarValue, Value, Bars])
def test_the_mean_prediction_is_the_mean_label(task: type[Task]) -> None:
    subject = subject_of(task(), 400)
    model, examples = subject.build(), subject.examples
    before = {name: value.clone() for name, value in model.state_dict().items()}
    name = set_prior_bias(subject.task, model, examples)
    outputs = untrained_outputs(model, examples)
    mean = subject.task.predict(outputs).mean(0)
    truth = examples.target
    if subject.task.kind == "multiclass":
        truth = nn.functional.one_hot(truth, 3)
    assert torch.allclose(mean, truth.float().mean(0), rtol=1e-3)
    after = model.state_dict()
    assert {key for key in after if not torch.equal(after[key], before[key])} == {name}


def test_of_a_sequence_padding_counts_for_nothing() -> None:
    subject = subject_of(Words(), 400)
    model, examples = subject.build(), subject.examples
    assert set_prior_bias(subject.task, model, examples) == "bias"
    real = examples.target != PADDING
    mean = untrained_outputs(model, examples)[real].softmax(-1).mean(0)
    shares = torch.bincount(examples.target[real], minlength=len(mean)) / real.sum()
    assert torch.allclose(mean, shares, atol=2e-3)


class _Squashed(YesNo):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        class Ends(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.last = nn.Linear(6, 1)

            def forward(self, numbers: Tensor) -> Tensor:
                return torch.tanh(self.last(numbers)).squeeze(1)

        return Ends()


class _WithoutBias(Three):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        model.head = nn.Linear(32, 3, bias=False)
        return model


@pytest.mark.parametrize("task", [_Squashed, _WithoutBias])
def test_without_such_a_bias_it_is_refused_and_nothing_changed(task: type[Task]) -> None:
    subject = subject_of(task(), 400)
    model = subject.build()
    before = [value.clone() for value in model.state_dict().values()]
    with pytest.raises(ConfigurationError, match="no bias of") as refusal:
        set_prior_bias(subject.task, model, subject.examples)
    assert "leave bias_from_prior out" in refusal.value.hint
    assert all(map(torch.equal, before, model.state_dict().values()))


def test_a_subject_builds_its_models_with_it() -> None:
    plain = subject_of(FarValue(), 400).build()
    subject = subject_of(FarValue(), 400, bias_from_prior=True)
    assert plain.head.bias.item() == pytest.approx(0, abs=1)  # type: ignore[arg-type, union-attr]
    mean = float(subject.examples.target.mean())
    assert subject.build().head.bias.item() == pytest.approx(mean, rel=1e-3)  # type: ignore[arg-type, union-attr]


def test_a_feed_in_memory_and_one_on_disk_give_a_random_sample(tmp_path: Path) -> None:
    examples = subject_of(FarValue(), 400).examples
    write_blocks(tmp_path / "blocks", [examples])
    for feed in (MemoryFeed(examples), BlockFeed([open_blocks(tmp_path / "blocks")])):
        sample = first_examples(feed, seed=3)
        assert torch.equal(sample.target.sort().values, examples.target.sort().values)
        again = first_examples(feed, seed=3)
        assert torch.equal(sample.arrays["numbers"], again.arrays["numbers"])
