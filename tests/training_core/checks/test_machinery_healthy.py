"""On healthy tasks of every kind the machinery is what plain code is."""

from __future__ import annotations

import pytest
import torch
from check_machinery_samples import TASKS, Network, Yes, found, subject_of
from torch import Tensor, nn

from training_core.checks.contract import Check
from training_core.checks.machinery import CHECKS
from training_core.checks.machinery.plain_schedule import planned_momentum, planned_rate
from training_core.checks.machinery.ranks_agree import RanksAgree
from training_core.checks.machinery.samples_in_order import SamplesInOrder
from training_core.checks.machinery.schedule_as_planned import ScheduleAsPlanned
from training_core.checks.machinery.steps_equal_plain_code import StepsEqualPlainCode
from training_core.checks.runner import make
from training_core.task import Preprocessor


@pytest.mark.smoke
@pytest.mark.parametrize("kind", TASKS)
def test_every_check_passes_on_a_healthy_task_and_leaves_it_as_it_was(kind: str) -> None:
    subject = subject_of(TASKS[kind]())
    model = subject.trained.model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    examples, rows, mode = subject.examples.clone(), subject.train.copy(), model.training
    findings = [make(check(), subject) for check in CHECKS]
    said = [f.message for f in findings]
    assert {f.name: f.verdict for f in findings} == {f.name: "pass" for f in findings}, said
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert model.training is mode
    assert all(torch.equal(a, subject.examples.arrays[n]) for n, a in examples.arrays.items())
    assert torch.equal(examples.target, subject.examples.target)
    assert rows.astype(str).equals(subject.train.astype(str))


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd", "nadam", "adafactor", "muon"])
def test_plain_code_knows_every_optimiser(name: str) -> None:
    finding = found(StepsEqualPlainCode(), Yes(), optimiser={"name": name, "lr": 0.01})
    assert finding.verdict == "pass", finding.message


class _WithSpare(Yes):
    """A layer that no output needs, as the pooler of a pretrained model may be."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = super().build_model(preprocessor)
        model.spare = nn.Linear(3, 3)
        return model


def test_what_no_gradient_reaches_decays_in_plain_code_as_in_the_trainer() -> None:
    finding = found(StepsEqualPlainCode(), _WithSpare(), optimiser={"weight_decay": 0.1})
    assert finding.verdict == "pass", finding.message


@pytest.mark.parametrize(
    "shape",
    ["constant", "linear", "cosine", "step", "one_cycle", "triangular", "triangular2",
     "inverse_sqrt", "plateau"],
)  # fmt: skip
@pytest.mark.parametrize("changes", [{}, {"warmup": 0.0, "final": 0.1}, {"warmup": 0.3}])
def test_plain_code_knows_every_schedule(shape: str, changes: dict[str, float]) -> None:
    finding = found(ScheduleAsPlanned(), Yes(), schedule={"shape": shape, **changes})
    assert finding.verdict == "pass", finding.message


def test_the_plain_schedule_is_torchs_own_where_torch_has_it() -> None:
    planned = subject_of(Yes(), schedule={"shape": "one_cycle"}).training
    optimiser = torch.optim.AdamW([torch.zeros(1, requires_grad=True)], lr=0.01)
    torchs = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=0.01, total_steps=48, final_div_factor=1e12, max_momentum=0.9
    )
    for step in range(48):
        group = optimiser.param_groups[0]
        place = {"steps": 48, "step": step}
        rate = planned_rate(planned.schedule, planned.optimiser, **place)
        assert rate == pytest.approx(group["lr"], rel=1e-6, abs=1e-9)
        momentum = planned_momentum(planned.schedule, planned.optimiser, **place)
        assert momentum == pytest.approx(group["betas"][0], rel=1e-6)
        optimiser.step()
        torchs.step()


class _Private(nn.Module):
    """Draws from a generator of its own, and in a functional dropout."""

    def __init__(self, inner: Network) -> None:
        super().__init__()
        self.inner, self.generator = inner, torch.Generator().manual_seed(0)

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if self.training:
            numbers = numbers + torch.randn(numbers.shape, generator=self.generator)
        numbers = nn.functional.dropout(numbers, 0.1, self.training)
        outputs: Tensor = self.inner(categories, numbers)
        return outputs


class _Noisy(Yes):
    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        return _Private(Network(preprocessor))


def test_a_network_that_draws_from_its_own_generator_fails_no_check() -> None:
    subject = subject_of(_Noisy())
    verdicts = {f.name: f.verdict for f in (make(c(), subject) for c in CHECKS)}
    assert verdicts.pop("checkpoint_equals_itself") == "warn"  # its state is not saved
    assert set(verdicts.values()) == {"pass"}, verdicts


@pytest.mark.parametrize("check", CHECKS)
def test_four_examples_are_looked_at_or_said_to_be_too_few(check: type[Check]) -> None:
    finding = found(check(), Yes(), count=5)
    assert finding.verdict in ("pass", "warn", "not_applicable"), finding.message


def test_large_batches_of_many_rows_are_in_order() -> None:
    finding = found(SamplesInOrder(), Yes(), count=3_000, batch_size=1_024)
    assert finding.verdict == "pass", finding.message


class _Unused(Yes):
    """DDP refuses what takes no part in the loss; one process does not mind."""

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        model = Network(preprocessor)
        model.spare = nn.Linear(2, 2)
        return model


@pytest.mark.parametrize(("processes", "verdict"), [(1, "warn"), (2, "fail")])
def test_what_two_processes_cannot_train_fails_only_where_two_are_planned(
    processes: int, verdict: str
) -> None:
    finding = found(RanksAgree(), _Unused(), processes=processes)
    assert finding.verdict == verdict, finding.message
    assert "two processes cannot train the network" in finding.message
