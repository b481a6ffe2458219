"""Choose the best of several again and again: does the holdout show what was predicted?

    python -m tests.proofs.optimism         # 200 simulated trials and 200 trainings
    python -m tests.proofs.optimism 20      # fewer

Simulated: candidates whose true losses are equal, lie on a curve or at random, of 7 to 40 days that
they have in common and on which each has its own luck; every rule in turn. Real: a small network is
trained on some days of flights of 2013, drawn by chance, with a high learning rate, so that its
checkpoints differ; the default rule chooses on 14 other days, among all of them and the mean of the
best or, in every second trial, among the three best, the last one and their mean, which is what a
training keeps; 60 more days are the holdout. Days are drawn: only chance lies between the two.

The last line of stdout is one JSON object. Of each kind: the share of trials where holdout loss
minus validation loss of the chosen one lay inside its predicted interval (`_inside`, promised: 95%)
and the means of what was predicted and measured. What a trial's candidates have in common is taken
off the measured mean: it is 0 in the mean, and a hundred times as large.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Sequence
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor, nn

from components.common.decision_settings import Rule, SelectionSettings
from components.common.optimism import measured_optimism
from components.common.resampling import Draws
from components.select_checkpoint.averaging import averaged
from components.select_checkpoint.candidates import mean_of_best
from components.select_checkpoint.choosing import Place
from components.select_checkpoint.scoring import Score
from components.select_checkpoint.selection import select
from tests.examples.flights_example import prepare, task_module
from tests.proofs.reporting import tell
from training_core import Examples, SingleProcess, Trainer, TrainingSettings, outputs_of
from training_core.determinism import seed_everything

TRIALS, CONFIDENCE, CPU = 200, 0.95, torch.device("cpu")
Floats = npt.NDArray[np.float64]


class Trial(NamedTuple):
    inside: bool
    predicted: float
    measured: float


def judge(
    validation: Floats, holdout: Floats, *, days: tuple[Floats, Floats], rule: Rule,
    places: Sequence[Place], seed: int,
) -> Trial:  # fmt: skip
    """Choose on one set of losses [K, N], and look at the other.

    Args:
        places: Of the K candidates, in order; what the later half of them has in common is taken
            off the measured optimism.
        days: Of the columns of each set.
    """
    draws = Draws.of(days[0], resamples=1000, seed=seed)
    units = draws.totals(np.ones((validation.shape[1], 1)))[:, 0]
    scores = [
        Score(place, total, units, {"loss": float(total.sum() / units.sum())})
        for place, total in zip(places, draws.totals(validation.T).T, strict=True)
    ]
    chosen = select(scores, draws, rule=rule, confidence=CONFIDENCE, damaged=[])
    assert chosen.figures.optimism is not None
    index = list(places).index(chosen.place)
    found = measured_optimism(
        chosen.figures.optimism,
        validation_loss=float(validation[index].mean()),
        holdout_losses=holdout[index],
        draws=Draws.of(days[1], resamples=1000, seed=seed + 1),
        confidence=CONFIDENCE,
    )
    assert found.measured is not None
    assert found.low is not None
    assert found.high is not None
    shared = (holdout.mean(axis=1) - validation.mean(axis=1))[len(places) // 2 :].mean()
    inside = found.low <= found.measured <= found.high
    return Trial(inside, found.expected, float(found.measured - shared))


def simulated(number: int) -> Trial:
    """One trial of made-up losses."""
    random = np.random.default_rng([1, number])
    count, days = int(random.choice([2, 4, 10, 30])), int(random.choice([7, 14, 40]))
    steps = np.arange(count) / count
    truths = [0 * steps, 0.02 * (2 * steps - 1) ** 2, random.normal(0, 0.01, count)]
    truth = truths[number % 3]

    def losses(days: int) -> tuple[Floats, Floats]:
        of_row = np.repeat(np.arange(days), 30)
        common = random.normal(0, 0.1, days)[of_row] + random.normal(0, 0.5, len(of_row))
        own = random.normal(0, 0.03, (count, days))[:, of_row]
        alone = random.normal(0, 0.1, (count, len(of_row)))
        return 0.5 + truth[:, None] + common + own + alone, of_row.astype(np.float64)

    (validation, one), (holdout, other) = losses(days), losses(60)
    rules: tuple[Rule, ...] = get_args(Rule)
    return judge(
        validation, holdout, days=(one, other), rule=rules[number % len(rules)],
        places=[Place(step) for step in range(count)], seed=number,
    )  # fmt: skip


class Flights:
    """The flights of a year as examples, from which days are drawn."""

    def __init__(self) -> None:
        rows = prepare.build(prepare.source_folder())
        rows = rows[rows[prepare.LABEL].notna()]
        self.task = task_module.FlightsTask(task_module.FlightsOptions(hidden=[32]))
        self.preprocessor = self.task.preprocessor().fit(rows)
        self.examples = Examples.from_frame(self.task, self.preprocessor, rows)
        self.days, names = pd.factorize(rows["date"])
        self.count = len(names)

    def trial(self, number: int) -> Trial:
        """Train on 20 days, choose on 14, look at 60."""
        random = np.random.default_rng([2, number])
        drawn = random.permutation(self.count)
        parts = [np.isin(self.days, drawn[a:b]) for a, b in ((0, 20), (20, 34), (34, 94))]
        train, validation, holdout = (
            self.examples.take(torch.from_numpy(np.flatnonzero(part))) for part in parts
        )
        networks = self._trained(train, validation, seed=number)
        losses = {Place(step): self._losses(each, validation) for step, each in networks.items()}
        if number % 2:
            best = sorted(losses, key=lambda place: losses[place].mean())[:3]
            losses = {place: losses[place] for place in sorted({*best, max(losses)})}
        of_mean = mean_of_best(
            [Score(p, v, v, {"loss": float(v.mean())}) for p, v in losses.items()],
            count=SelectionSettings().average,
        )
        assert of_mean is not None
        mean = copy.deepcopy(networks[of_mean.step])
        mean.load_state_dict(averaged(networks[step].state_dict() for step in of_mean.members))
        losses[of_mean] = self._losses(mean, validation)
        places = sorted(losses)
        shown = [
            self._losses(mean if place.members else networks[place.step], holdout)
            for place in places
        ]
        return judge(
            np.stack([losses[place] for place in places]),
            np.stack(shown),
            days=(self.days[parts[1]].astype(float), self.days[parts[2]].astype(float)),
            rule=SelectionSettings().rule,
            places=places,
            seed=number,
        )

    def _trained(self, train: Examples, validation: Examples, *, seed: int) -> dict[int, nn.Module]:
        """Train; return ten networks by step."""
        seed_everything(seed)
        model = self.task.build_model(self.preprocessor)
        found: dict[int, nn.Module] = {}
        Trainer(
            task=self.task,
            model=model,
            train=train,
            validation=validation.take(slice(0, 256)),
            settings=TrainingSettings.model_validate(
                {
                    "epochs": 2, "batch_size": 256, "seed": seed, "threads": 1, "device": "cpu",
                    "optimiser": {"lr": 0.01}, "schedule": {"shape": "constant"},
                }
            ),
            strategy=SingleProcess(CPU),
            on_evaluation=lambda step, _: found.update({step: copy.deepcopy(model)}),
        ).fit()  # fmt: skip
        return found

    def _losses(self, network: nn.Module, examples: Examples) -> Floats:
        outputs: Tensor = outputs_of(network, examples, device=CPU)
        losses: Floats = self.task.loss(outputs, examples.target).double().numpy()
        return losses


def prove(trials: int) -> dict[str, float]:
    """Make the trials of both kinds and return the figures."""
    torch.set_num_threads(1)
    flights = Flights()
    figures: dict[str, float] = {"trials": trials}
    for kind, trial in (("simulated", simulated), ("real", flights.trial)):
        found = []
        for number in range(trials):
            found.append(trial(number))
            if not found[-1].inside:
                print(f"{kind} {number}: outside: {found[-1]}", file=sys.stderr, flush=True)
        figures[f"{kind}_inside"] = round(sum(one.inside for one in found) / trials, 4)
        for name in ("predicted", "measured"):
            values = [getattr(one, name) for one in found]
            figures[f"{kind}_{name}"] = round(float(np.mean(values)), 6)
    return figures


def main() -> int:
    """Print the figures; 0 if at least 90% of both kinds lay inside."""
    parser = argparse.ArgumentParser(description="Hold predicted optimism against measured.")
    parser.add_argument(
        "number", nargs="?", type=int, default=TRIALS, metavar="N", help="trials of each kind"
    )
    parser.add_argument("--count", type=int, help="the same as N")
    arguments = parser.parse_args()
    figures = prove(arguments.count or arguments.number)
    tell("optimism", figures)
    return int(min(figures["simulated_inside"], figures["real_inside"]) < 0.9)


if __name__ == "__main__":
    sys.exit(main())
