"""The contract of techniques: things that happen between the steps of a training.

An average of the weights, layers that thaw one after another, an order that follows the losses:
each is a `Technique`, made by `catalogue.techniques_of` where the settings ask for it, and nowhere
else: a training without any runs through two empty loops a step.

A technique that goes on from a checkpoint must do what the undisturbed one would have done. So all
it remembers is in `tensors` and `state_dict`; whatever else it needs follows from the settings, the
seed and the position.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import ClassVar

from torch import Tensor


class Technique:
    """Something that happens between steps; by itself nothing does.

    Class attributes:
        name: Of its state in a checkpoint; lower case, no dots.
    """

    name: ClassVar[str]

    def before_step(self, step: int) -> None:
        """Called before the gradients of a step, counted from 0, and after its rate was set."""

    def after_update(self, step: int) -> None:
        """Called when so many steps have been taken; the weights are those of the newest."""

    def evaluating(self) -> AbstractContextManager[None]:
        """Put the weights in place that are evaluated; afterwards those that are trained."""
        return nullcontext()

    def before_save(self) -> None:
        """Called by all ranks before a checkpoint is begun; what is trained must not change."""

    def tensors(self) -> Mapping[str, Tensor]:
        """Return the large ones of what it remembers, by whole names such as `average.head.bias`.

        Always the same ones, sharded as the weights are or the same on every rank. They are copied
        while the next forward and backward run and loaded in place, so they change in
        `after_update`, `evaluating` and `before_save` only.
        """
        return {}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the small ones: copied while training stands still, the same on every rank."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from such a state."""


class Techniques:
    """Those of one training, one after another in the order of the catalogue."""

    def __init__(self, techniques: Sequence[Technique] = ()) -> None:
        self._all = tuple(techniques)

    def __iter__(self) -> Iterator[Technique]:
        return iter(self._all)

    def before_step(self, step: int) -> None:
        """Tell each of them."""
        for technique in self._all:
            technique.before_step(step)

    def after_update(self, step: int) -> None:
        """Tell each of them."""
        for technique in self._all:
            technique.after_update(step)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Put in place what is evaluated; undone in the other order."""
        with ExitStack() as stack:
            for technique in self._all:
                stack.enter_context(technique.evaluating())
            yield

    def before_save(self) -> None:
        """Tell each of them."""
        for technique in self._all:
            technique.before_save()

    def tensors(self) -> dict[str, Tensor]:
        """Return the large tensors of all."""
        return {name: t for technique in self._all for name, t in technique.tensors().items()}

    def state_dict(self) -> dict[str, Tensor]:
        """Return the small state of all, each name behind the technique's."""
        return {
            f"{technique.name}.{name}": value
            for technique in self._all
            for name, value in technique.state_dict().items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from such a state, in which there may be more."""
        for technique in self._all:
            begin = f"{technique.name}."
            own = {
                name.removeprefix(begin): v for name, v in state.items() if name.startswith(begin)
            }
            technique.load_state_dict(own)
