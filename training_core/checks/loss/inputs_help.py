"""Is more learned from inputs than without them, and nothing from inputs of other rows?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding
from training_core.checks.loss.blind import blind_losses, with_inputs_of_other_rows
from training_core.checks.loss.rescaled import Rescaled, wanted_scale
from training_core.checks.losses import losses_of, losses_of_strangers
from training_core.checks.short_training import train_briefly
from training_core.checks.simple_models import Gain, simple_gain
from training_core.checks.subject import Subject
from training_core.evaluation import outputs_of
from training_core.examples import Examples

_HELD_BACK = 4000  # rows scored
_EXPLAINED = 0.02  # of the prior's loss: what inputs explain less of does not belong to them
_TRAIN_ROWS, _TEST_ROWS = 200, 40  # below, a simple model that learns nothing says nothing


@dataclass(frozen=True)
class Won:
    """A gain on held-back rows, paired row by row.

    Attributes:
        mean: A unit.
        error: Its standard error.
    """

    mean: float
    error: float

    @property
    def sure(self) -> bool:
        """Is it more than noise?"""
        return self.mean > 2 * self.error

    @classmethod
    def of(cls, without: Tensor, real: Tensor, units: float) -> Won:
        """Compare losses by row, float64 [N]."""
        gains = without - real
        return cls(float(gains.sum()) / units, float(gains.std()) * math.sqrt(len(gains)) / units)


class InputsHelp(Check):
    """Real inputs against none and against those of other rows."""

    name = "inputs_help"
    looks_at = "what is learned from inputs beats what is learned without, on held-back rows"
    costs = "training"

    def look(self, subject: Subject) -> Finding:
        test = subject.held_back.take(slice(0, _HELD_BACK))
        units = float(len(test) if test.units is None else test.units.sum())
        curves = {"real inputs": subject.trained.curve}
        without, what = blind_losses(subject, test, curves)
        real = losses_of(subject, subject.trained.model, test)
        if not bool(torch.isfinite(real).all()):
            return self.failed(
                "the network's loss on held-back rows is not finite after a short training",
                advice="lower training.optimiser.lr, and look for a logarithm or a division of 0",
                curves=curves,
            )
        won = Won.of(without, real, units)
        words = (
            f"real inputs gain {won.mean:.4g} of loss on {len(test)} held-back rows over {what} "
            f"(two standard errors: {2 * won.error:.4g})"
        )
        said: dict[str, Any] = {"measured": won.mean, "limit": 2 * won.error, "curves": curves}
        if won.sure:
            return self._leak(subject, test, without, won, words, said) or self.passed(
                words, **said
            )
        return self._not_won(subject, test, without, words, said)

    def _leak(
        self,
        subject: Subject,
        test: Examples,
        without: Tensor,
        won: Won,
        words: str,
        said: dict[str, Any],
    ) -> Finding | None:
        """Trained on inputs of other rows, nothing that holds for held-back rows can be learned.

        By chance a little can: what is learned of noise goes with the truth as often as against it.
        So it counts from a quarter of the real gain, of enough rows, and with two different deals.
        With 200 rows chance gives some 7 % of it. Nor does it count where outputs are as good for
        other rows: then what they say on average is nearer to held-back labels, whose rate is
        another one, as it is after months.
        """
        if len(subject.examples) < _TRAIN_ROWS:
            return None
        units = float(len(test) if test.units is None else test.units.sum())
        gains = []
        for seed in (2, 3):
            dealt = with_inputs_of_other_rows(subject.examples, seed=seed)
            mixed = subject.train_briefly(dealt, steps=max(1, subject.short_steps // 2))
            if seed == 2:
                said["curves"]["inputs of other rows"] = mixed.curve
            losses = losses_of(subject, mixed.model, test)
            gains.append(Won.of(without, losses, units).mean)
            for floor in (without, losses_of_strangers(subject, mixed.model, test)):
                gain = Won.of(floor, losses, units)
                if not (gain.mean > 4 * gain.error and gain.mean > 0.25 * won.mean):
                    return None
        return self.failed(
            f"{words}; trained with labels of other rows it still gains {min(gains):.4g}",
            advice="look how the network can know labels of held-back rows: through its loss, its "
            "state, or a target among the inputs",
            **said,
        )

    def _not_won(
        self,
        subject: Subject,
        test: Examples,
        without: Tensor,
        words: str,
        said: dict[str, Any],
    ) -> Finding:
        """It may have learned by heart, be far from the target's scale, or have too few rows."""
        units = float(len(test) if test.units is None else test.units.sum())
        early = _best_on_the_way(subject, test, rescaled=False)
        if (won := Won.of(without, early.losses, units)).mean > 2.5 * won.error:
            return self.passed(
                f"{words}; after {early.step} steps they had gained {won.mean:.4g} (standard error "
                f"{won.error:.2g}): the rest is learned by heart",
                **said,
            )
        best = won
        if subject.task.kind == "regression":
            scaled = _best_on_the_way(subject, test, rescaled=True)
            best = Won.of(without, scaled.losses, units)
            if best.mean > 2.5 * best.error:
                return self.warned(
                    f"{words}; with outputs in units of the target they gain {best.mean:.4g}",
                    advice="standardise the target: the network has far to go to its scale",
                    **said,
                )
        simple = simple_gain(subject.task.kind, subject.examples, test)
        prior = abs(float(without.sum())) / units
        upper = max((w.mean + 2 * w.error) / prior for w in (won, best)) if prior else math.inf
        known = _gain_on_its_own_rows(subject, prior)
        cut = subject.short_steps < subject.settings.input_steps
        rows = len(subject.examples)
        return self._judged_beside(simple, upper, known, rows, words, said, cut=cut)

    def _judged_beside(
        self,
        simple: Gain,
        upper: float,
        known: float,
        rows: int,
        words: str,
        said: dict[str, Any],
        *,
        cut: bool,
    ) -> Finding:
        """What does a simple model learn from the same tensors?

        A training that was `cut` for want of time says nothing against the network.

        A network that knows the rows it was trained on (`known`, a share of the prior's loss) does
        learn from inputs, however little of it holds elsewhere: it needs rows, or regularisation.
        """
        of_simple = (
            f"a simple model gains {simple.share:.1%} of the prior's loss on the same tensors "
            f"(standard error {simple.error:.1%})"
        )
        enough = rows >= _TRAIN_ROWS and simple.rows >= _TEST_ROWS
        behind = max(upper, known) < 0.5 * simple.share and not cut
        if enough and simple.lower > _EXPLAINED and behind:
            return self.failed(
                f"{words}; {of_simple}: the inputs tell, but the network does not learn it",
                advice="look for inputs that do not reach the outputs, a loss that is not about "
                "the labels, an augmentation that parts them, or a learning rate far off",
                **said,
            )
        if enough and not cut and simple.upper < _EXPLAINED and upper < 2 * _EXPLAINED:
            return self.failed(
                f"{words}, and {of_simple}, of {rows} rows: labels do not belong to the inputs",
                advice="are features and labels joined by the right key, in the same order? If "
                "inputs are known to tell so little, set checks.levels.inputs_help to warn",
                **said,
            )
        return self.warned(
            f"{words}; {of_simple}: there are too few rows to tell, or too little to learn",
            advice="give the checks more rows (checks.rows), or train longer "
            "(checks.input_steps, checks.seconds)",
            **said,
        )


@dataclass(frozen=True)
class OnTheWay:
    """The best state of a training on held-back rows.

    Attributes:
        step: How many steps it took.
        losses: By row, float64 [N].
    """

    step: int
    losses: Tensor


def _gain_on_its_own_rows(subject: Subject, prior: float) -> float:
    """Return what the short training gained on rows it has seen, as a share of the prior's loss."""
    seen = subject.batch(1024)
    loss = losses_of(subject, subject.trained.model, seen)
    units = float(len(seen) if seen.units is None else seen.units.sum())
    return 1 - float(loss.sum()) / units / prior if prior else math.inf


def _best_on_the_way(subject: Subject, test: Examples, *, rescaled: bool) -> OnTheWay:
    """Train once more and score at steps 2, 4, 8, …: few rows are soon learned by heart."""
    model = subject.build(1)
    steps = subject.short_steps
    if rescaled:
        some = subject.batch(256)
        with torch.no_grad():
            outputs = outputs_of(model, some, device=subject.device)
        scale, shift = wanted_scale(subject.task, outputs, some)
        model = Rescaled(model, scale=scale, shift=shift)
    found: list[OnTheWay] = []
    scored = {2**power for power in range(1, 12)} | {steps}

    def score(step: int, trained: nn.Module) -> None:
        if step + 1 in scored:
            losses = losses_of(subject, trained, test)
            if bool(torch.isfinite(losses).all()):
                found.append(OnTheWay(step + 1, losses))

    train_briefly(
        subject.task,
        model,
        subject.examples,
        steps=steps,
        batch_size=subject.batch_size,
        training=subject.training,
        seed=1,
        after_step=score,
    )
    if not found:
        found = [OnTheWay(0, torch.full((len(test),), torch.finfo(torch.float32).max).double())]
    return min(found, key=lambda state: float(state.losses.sum()))
