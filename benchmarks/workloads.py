"""What the benchmarks train: the same model, data, order and recipe for every contestant.

| workload | model | data |
|---|---|---|
| mlp | 54 → 128 → 64 → 1, ReLU, 15,361 weights | 57,856 rows labelled by a random teacher |
| cnn | three convolutions with BatchNorm, 24,346 weights | 2,048 images 3×32×32, ten classes |
| gpt | two blocks of width 128, 470,528 weights | 2,048 sequences of 64 from a Markov chain |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor, nn

from benchmarks.networks import CNN, GPT, MLP, Network
from training_core.feeds.order import order

SEED = 0
KEEP_BEST = 3  # checkpoints
CLIP_NORM = 1.0
WEIGHT_DECAY = 0.01  # of matrices; vectors have none
BETAS = (0.9, 0.999)
WARMUP = 0.05  # share of all steps in which the learning rate rises

Loss = Callable[[Tensor, Tensor], Tensor]


def token_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy of each sequence: [N]."""
    losses = F.cross_entropy(outputs.flatten(0, 1), target.flatten(), reduction="none")
    return losses.view(target.shape).mean(1)


def mean_token_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy over all tokens: what is written by hand."""
    return F.cross_entropy(outputs.flatten(0, 1), target.flatten())


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One thing to train.

    Attributes:
        network: The model's class.
        loss: One value an example.
        mean_loss: The same as one mean, as it is written by hand.
        inputs, target: The train split.
        validation: Inputs and target of the validation split, evaluated in one batch.
        batch_size: Examples a step (with several ranks or microbatches: of one microbatch).
        steps: Timed steps.
        warmup: Steps before them.
        evaluate_every: Steps between evaluations; a checkpoint follows each.
    """

    name: str
    network: Callable[[], Network]
    loss: Loss
    mean_loss: Loss
    inputs: Tensor
    target: Tensor
    validation: tuple[Tensor, Tensor]
    batch_size: int
    lr: float
    steps: int
    warmup: int
    evaluate_every: int

    def __post_init__(self) -> None:
        assert len(self.inputs) % self.batch_size == 0, "no short batch: epochs can be joined"

    @property
    def total_steps(self) -> int:
        """Warm-up included."""
        return self.warmup + self.steps

    def build(self) -> Network:
        """Return the model with its initial weights, the same at each call."""
        torch.manual_seed(SEED)
        return self.network()

    def order(self, samples: int) -> Tensor:
        """Return the rows of a run, epoch after epoch: int64 [samples]."""
        count = len(self.inputs)
        epochs = range(-(-samples // count))
        return torch.cat([order(seed=SEED, epoch=e, count=count) for e in epochs])[:samples]

    def shortened(self, *, steps: int, warmup: int, evaluate_every: int) -> Workload:
        """Return the same with fewer steps."""
        return replace(self, steps=steps, warmup=warmup, evaluate_every=evaluate_every)


def optimiser_of(model: nn.Module, lr: float) -> torch.optim.AdamW:
    """The recipe's optimiser, as it is written by hand."""
    matrices = [p for p in model.parameters() if p.ndim >= 2]
    vectors = [p for p in model.parameters() if p.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": WEIGHT_DECAY},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=lr, betas=BETAS, fused=True)


def schedule_of(
    optimiser: torch.optim.Optimizer, steps: int
) -> torch.optim.lr_scheduler.LRScheduler:
    """The recipe's schedule: a linear rise, then half a cosine down to 0 in the last step."""
    rising = round(WARMUP * steps)

    def factor(step: int) -> float:
        if step < rising:
            return (step + 1) / (rising + 1)
        done = min(1.0, (step - rising) / max(1, steps - 1 - rising))
        return (1 + math.cos(math.pi * done)) / 2

    return torch.optim.lr_scheduler.LambdaLR(optimiser, factor)


def evaluate(model: nn.Module, workload: Workload) -> float:
    """Return the mean validation loss, as it is written by hand."""
    model.eval()
    with torch.no_grad():
        inputs, target = workload.validation
        loss = workload.mean_loss(model(inputs), target).item()
    model.train()
    return loss


# ---- the three -----------------------------------------------------------------------------------


@cache
def mlp() -> Workload:
    """Where the cost of a step is the trainer's own."""
    generator = torch.Generator().manual_seed(1)
    count, held_out = 226 * 256, 2048
    inputs = torch.randn(count + held_out, 54, generator=generator)
    hidden = torch.tanh(inputs @ torch.randn(54, 16, generator=generator) / 54**0.5)
    logits = 4 * hidden @ torch.randn(16, generator=generator)
    target = (torch.rand(len(logits), generator=generator) < torch.sigmoid(logits)).float()
    return Workload(
        name="mlp",
        network=MLP,
        loss=lambda outputs, target: F.binary_cross_entropy_with_logits(
            outputs, target, reduction="none"
        ),
        mean_loss=F.binary_cross_entropy_with_logits,
        inputs=inputs[:count],
        target=target[:count],
        validation=(inputs[count:], target[count:]),
        batch_size=256,
        lr=1e-3,
        steps=1000,
        warmup=200,
        evaluate_every=200,
    )


@cache
def cnn() -> Workload:
    """Convolutions and BatchNorm."""
    generator = torch.Generator().manual_seed(2)
    count, held_out = 32 * 64, 64
    target = torch.randint(10, (count + held_out,), generator=generator)
    patterns = torch.randn(10, 3, 32, 32, generator=generator)
    inputs = patterns[target] + 2 * torch.randn(len(target), 3, 32, 32, generator=generator)
    return Workload(
        name="cnn",
        network=CNN,
        loss=lambda outputs, target: F.cross_entropy(outputs, target, reduction="none"),
        mean_loss=F.cross_entropy,
        inputs=inputs[:count],
        target=target[:count],
        validation=(inputs[count:], target[count:]),
        batch_size=64,
        lr=1e-3,
        steps=120,
        warmup=40,
        evaluate_every=40,
    )


@cache
def gpt() -> Workload:
    """A transformer of the smallest useful size."""
    return language_model("gpt", GPT, count=128 * 16, length=64, batch_size=16)


def language_model(
    name: str, network: Callable[[], Network], *, count: int, length: int, batch_size: int
) -> Workload:
    """Sequences in which one of four tokens follows each of 256."""
    generator = torch.Generator().manual_seed(3)
    followers = torch.randint(256, (256, 4), generator=generator)
    tokens = torch.randint(256, (count + 2 * batch_size, 1), generator=generator)
    for _ in range(length):
        choice = torch.randint(4, (len(tokens),), generator=generator)
        tokens = torch.cat([tokens, followers[tokens[:, -1], choice, None]], 1)
    inputs, target = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    return Workload(
        name=name,
        network=network,
        loss=token_loss,
        mean_loss=mean_token_loss,
        inputs=inputs[:count],
        target=target[:count],
        validation=(inputs[count:], target[count:]),
        batch_size=batch_size,
        lr=1e-3,
        steps=120,
        warmup=40,
        evaluate_every=40,
    )


WORKLOADS = {"mlp": mlp, "cnn": cnn, "gpt": gpt}
