"""What ensembles and distillation do on a small real case: scikit-learn's digits, 8 x 8 pixels.

    OMP_NUM_THREADS=1 python tests/training_core/ensemble_effects.py [REPETITIONS [APART]]

Each repetition draws 300 rows to train on and holds 900 back; where APART says so, teachers learn
from so many other rows instead, as a champion of a longer past has. Five networks of two wide
layers that differ by their seed are the ensemble; a small network of 16 hidden units is the
student: it is trained with the labels alone, with the ensemble's mean, and with one of its members.
Printed are means over the repetitions, and paired differences with their standard errors.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from technique_effects import CPU, Case, Digits, Wide, data
from torch import Tensor, nn

from training_core.distillation.loss import taught_logits
from training_core.evaluation import outputs_of
from training_core.examples import Examples
from training_core.loop import Trainer
from training_core.parallel.single import SingleProcess
from training_core.settings import TrainingSettings

MEMBERS = 5
TAUGHT = {"teacher": "file", "file": "-", "weight": 0.7, "temperature": 3.0}


class Small(nn.Module):
    """The student: a twentieth of a teacher's parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10)
        )  # fmt: skip

    def forward(self, image: Tensor) -> Tensor:
        outputs: Tensor = self.body(image)
        return outputs


def trained(
    model: type[nn.Module], train: Examples, held: Examples, seed: int, **more: Any
) -> nn.Module:
    """Train one network."""
    settings = TrainingSettings.model_validate(
        {"epochs": 60, "batch_size": 32, "device": "cpu", "evaluate_every": 10**6, "seed": seed,
         "optimiser": {"lr": 3e-3}, **more}
    )  # fmt: skip
    torch.manual_seed(seed)
    trainer = Trainer(
        task=Digits(), model=model(), train=train, validation=held, settings=settings,
        strategy=SingleProcess(CPU),
    )  # fmt: skip
    trainer.fit()
    return trainer.module


def predicted(network: nn.Module, examples: Examples) -> Tensor:
    """Return probabilities, float64 [N, 10]."""
    return outputs_of(network, examples, device=CPU).double().softmax(1)


def log_loss(predictions: Tensor, examples: Examples) -> float:
    rows = torch.arange(len(examples))
    return float(-predictions[rows, examples.target].clamp(min=1e-12).log().mean())


def error(predictions: Tensor, examples: Examples) -> float:
    return float((predictions.argmax(1) != examples.target).double().mean())


def apart(teacher: Tensor, student: Tensor) -> float:
    """Return the mean divergence of the student's predictions from the teacher's."""
    return float((teacher * (teacher.log() - student.log())).sum(1).mean())


def measured(seed: int, members: int = MEMBERS, *, apart_rows: int = 0) -> dict[str, float]:
    """Return the figures of one repetition.

    Args:
        seed: Of the rows and networks.
        members: Of the ensemble.
        apart_rows: Teachers learn from so many rows that the students do not have; 0: from theirs.
    """
    rows, held = data(Case({}, rows=300 + apart_rows), seed)
    train = rows.take(slice(0, 300))
    others = rows.take(slice(300, None)) if apart_rows else train
    networks = [trained(Wide, others, held, 100 * seed + i) for i in range(members)]
    told, on_train = ([predicted(n, part) for n in networks] for part in (held, train))
    mean, taught = (torch.stack(each).mean(0) for each in (told, on_train))
    found = {
        "member log loss": float(np.mean([log_loss(each, held) for each in told])),
        "best member log loss": min(log_loss(each, held) for each in told),
        "ensemble log loss": log_loss(mean, held),
        "member error": float(np.mean([error(each, held) for each in told])),
        "ensemble error": error(mean, held),
    }
    for name, teacher in (("labels", None), ("ensemble", taught), ("one model", on_train[0])):
        known, more = train, {}
        if teacher is not None:
            known = replace(train, teacher=taught_logits(teacher, "multiclass"))
            more = {"distillation": TAUGHT}
        student = predicted(trained(Small, known, held, seed, **more), held)
        found |= {
            f"student of {name}, log loss": log_loss(student, held),
            f"student of {name}, error": error(student, held),
            f"student of {name}, from the ensemble": apart(mean, student),
        }
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seeds", type=int, nargs="?", default=8)
    parser.add_argument("apart", type=int, nargs="?", default=0, help="rows for the teacher alone")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    count = asked.seeds
    each = [measured(seed, apart_rows=asked.apart) for seed in range(count)]
    for name in each[0]:
        values = np.array([one[name] for one in each])
        print(f"{name:45} {values.mean():.4f} ± {values.std(ddof=1) / count**0.5:.4f}")
    pairs = [("ensemble log loss", "member log loss"), ("ensemble error", "member error")]
    pairs.append(("ensemble log loss", "best member log loss"))
    for figure in ("log loss", "error", "from the ensemble"):
        for who in ("ensemble", "one model"):
            pairs.append((f"student of {who}, {figure}", f"student of labels, {figure}"))
    for first, second in pairs:
        values = np.array([one[first] - one[second] for one in each])
        print(f"{first} - {second}: {values.mean():+.4f} ± {values.std(ddof=1) / count**0.5:.4f}")
