"""A training that goes on from its checkpoint against one that was not disturbed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from training_core import loop
from training_core.checkpoints.catalogue import Checkpoints
from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.machinery.memory_store import checkpoints_in_memory
from training_core.checks.machinery.noting import Comparing, numbered
from training_core.checks.machinery.outside_state import outside_state
from training_core.checks.machinery.small_runs import short, state_of, ties_of, trainer
from training_core.checks.subject import Subject
from training_core.determinism import seed_everything
from training_core.examples import Examples

_STEPS, _STOP = 6, 3
_ROWS = 32  # a step
_TOLERANCE = 1e-4  # of a tensor's size, where a training is not repeatable to the bit


class CheckpointEqualsItself(Check):
    """Stops after three steps, goes on with a model of another seed, and compares after six."""

    name = "checkpoint_equals_itself"
    looks_at = "a training that goes on from a checkpoint becomes what the undisturbed one is"

    def look(self, subject: Subject) -> Finding:
        if len(subject.examples) < 4:
            raise NotApplicable(f"{len(subject.examples)} examples are too few for two batches")
        undisturbed = _run(subject)
        undisturbed.fit()
        place = checkpoints_in_memory()
        stopped = _run(subject, place=place)
        stopped.should_stop = lambda: stopped.outcome.steps >= _STOP
        stopped.fit()
        resumed = _run(subject, place=place, seed=1)
        resumed.state.begin()
        at_stop = _different(_everything(stopped), _everything(resumed))
        if at_stop:
            return self._failed(
                f"after step {_STOP} a new training was loaded from its checkpoint, and {at_stop}"
            )
        resumed.fit()
        return (
            self._scaler(subject)
            or self._ties(subject, resumed)
            or self._round_trip(subject, undisturbed.module)
            or self._after(subject, undisturbed, resumed)
        )

    def _failed(self, message: str, **measured: float) -> Finding:
        return self.failed(
            message,
            advice="keep all state in parameters and registered buffers, and let state_dict and "
            "load_state_dict of model, optimiser, schedule and scaler hold all of it",
            **measured,
        )

    def _after(self, subject: Subject, undisturbed: loop.Trainer, resumed: loop.Trainer) -> Finding:
        """Compare after the last step; where it differs, see whether it can be repeated at all."""
        different = _different(_everything(undisturbed), _everything(resumed))
        if not different:
            tensors = len(_everything(resumed))
            return self.passed(
                f"stopped at step {_STOP} and resumed, {tensors} tensors of model and optimiser "
                f"are bit for bit those of the undisturbed training at step {_STEPS}",
                measured=0.0,
                limit=0.0,
            )
        again = _run(subject)
        again.fit()
        moves = _different(_everything(undisturbed), _everything(again))
        close = not _different(_everything(undisturbed), _everything(resumed), share=_TOLERANCE)
        if close:
            return self.passed(
                f"stopped at step {_STOP} and resumed, weights are those of the undisturbed "
                f"training at step {_STEPS} to within rounding",
                limit=_TOLERANCE,
            )
        if moves or _draws_by_itself(subject):
            return self.warned(
                f"stopped at step {_STOP} and resumed, {different}; but the network draws at "
                "random from a source that is not in the checkpoint",
                advice="draw from torch's own generator, whose state is saved",
            )
        return self._failed(
            f"a training that was stopped at step {_STOP} and resumed is not the undisturbed one "
            f"at step {_STEPS}: {different}, though all that was saved at step {_STOP} was loaded"
        )

    def _ties(self, subject: Subject, resumed: loop.Trainer) -> Finding | None:
        """Tied weights are to be one tensor still: trained, loaded, and loaded by torch's way."""
        other = subject.build(1)
        expected = ties_of(other)
        try:
            other.load_state_dict(resumed.module.state_dict())
        except RuntimeError as error:
            return self._failed(f"a new network does not load the state of a trained one: {error}")
        for model, when in ((resumed.module, "by the trainer"), (other, "by load_state_dict")):
            kept = [set(names) for names in ties_of(model)]
            for names in expected:
                if not any(set(names) <= tie for tie in kept):
                    return self.failed(
                        f"{' and '.join(names)} are one tensor in a new network, and two once it "
                        f"was loaded {when}",
                        advice="tie weights by one Parameter under two names, and load in place",
                    )
        return None

    def _round_trip(self, subject: Subject, model: nn.Module) -> Finding | None:
        """Load the state into a network of another seed: outputs are to be the same."""
        other = subject.build(1)
        other.load_state_dict(model.state_dict())
        batch = subject.batch(_ROWS)
        expected, again, found = (_outputs(each, batch) for each in (model, model, other))
        if torch.equal(expected, again) and _far(expected, found) > _TOLERANCE:
            where = outside_state(model, other)
            return self._failed(
                f"a network of another seed, loaded with state_dict, puts out something else "
                f"({_far(expected, found):.1%} of the outputs' size apart)"
                + (f": {where} is not in state_dict" if where else ""),
                measured=_far(expected, found),
                limit=_TOLERANCE,
            )
        return None

    def _scaler(self, subject: Subject) -> Finding | None:
        """Under fp16: with a network that computes nothing, since only the scaler matters."""
        examples = numbered(subject.examples.take(slice(0, 16)))

        def run(place: Checkpoints | None = None) -> loop.Trainer:
            model = Comparing(examples)
            settings = short(
                subject.training, steps=_STEPS, batch_size=8, precision="fp16",
                checkpoints=_settings(subject),
            )  # fmt: skip
            made = trainer(model, model, examples, settings=settings, checkpoints=place)
            made.precision.scaler.set_growth_interval(2)  # so that it has grown when it is saved
            return made

        place = checkpoints_in_memory()
        stopped, resumed = run(place), run(place)
        stopped.should_stop = lambda: stopped.outcome.steps >= _STOP
        stopped.fit()
        try:
            resumed.state.begin()
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            return self._failed(f"a checkpoint of an fp16 training cannot be loaded: {error}")
        saved = stopped.precision.scaler.state_dict()
        loaded = resumed.precision.scaler.state_dict()
        if saved == loaded:
            return None
        name = next(key for key, value in saved.items() if loaded.get(key) != value)
        return self.failed(
            f"the loss scaler of fp16 is not restored: its {name} was {saved[name]:g} and is "
            f"{loaded.get(name, float('nan')):g} after loading",
            advice="save and load the scaler's state with each checkpoint",
        )


def _run(subject: Subject, *, place: Checkpoints | None = None, seed: int = 0) -> loop.Trainer:
    """Return a trainer of six steps, with the planned augmentation and dropout."""
    size = max(2, min(_ROWS, len(subject.examples) // 2))
    settings = short(
        subject.training, steps=_STEPS, batch_size=size, evaluate_every=2,
        checkpoints=_settings(subject),
    )  # fmt: skip
    examples = subject.batch(2 * size)
    return trainer(
        subject.task, subject.build(seed), examples, settings=settings, checkpoints=place
    )


def _settings(subject: Subject) -> Any:
    return subject.training.checkpoints.model_copy(
        update={"asynchronous": False, "every": _STEPS, "keep_last": 9, "metric": "loss"}
    )


def _everything(run: loop.Trainer) -> dict[str, Tensor]:
    """Return copies of all tensors that training changes: model's and optimisers'."""
    state = state_of(run.module)
    names = {id(p): name for name, p in run.module.named_parameters()}
    for optimiser in run.update.optimisers:
        for parameter, values in optimiser.state.items():
            for key, value in values.items():
                if isinstance(value, Tensor):
                    name = f"the optimiser's {key} of {names.get(id(parameter), '?')}"
                    state[name] = value.detach().clone()
    return state


def _different(one: dict[str, Tensor], other: dict[str, Tensor], *, share: float = 0.0) -> str:
    """Say which tensor differs by more than a share of its size; empty: none."""
    missing = sorted(one.keys() ^ other.keys())
    if missing:
        return f"{missing[0]} is in one of them only"
    for name, value in one.items():
        apart = _far(value, other[name])
        if apart > share:
            return f"{name} differs by {apart:.2g} of its size"
    return ""


def _far(one: Tensor, other: Tensor) -> float:
    if one.shape != other.shape:
        return float("inf")
    if torch.equal(one, other):
        return 0.0
    one, other = one.double().nan_to_num(), other.double().nan_to_num()
    apart = float((one - other).norm())
    return apart / max(float(one.norm()), 1e-30)


@torch.no_grad()
def _outputs(model: nn.Module, batch: Examples) -> Tensor:
    model.eval()
    seed_everything(0)
    outputs: Tensor = model(**batch.arrays)
    return outputs.float()


@torch.no_grad()
def _draws_by_itself(subject: Subject) -> bool:
    """Whether train mode draws from a generator that seeding does not reach."""
    model, batch = subject.build().train(), subject.batch(8)
    seen = []
    for _ in range(2):
        seed_everything(0)
        seen.append(model(**batch.arrays).float())
    return not torch.equal(seen[0], seen[1])
