"""The candidates of a training as networks: its checkpoints that can be used, and their mean."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
from torch import nn

from components.select_checkpoint.averaging import State, averaged
from components.select_checkpoint.choosing import Place
from components.select_checkpoint.scoring import Score
from training_core.averaging.statistics import estimate_statistics, has_statistics
from training_core.checkpoints.catalogue import Checkpoints, has_average
from training_core.errors import TrainingFailed
from training_core.examples import Examples


class Candidates:
    """Networks of a training's checkpoints, each read when it is asked for.

    Args:
        checkpoints: Of the training, which need not have come to its end.
        build: Makes a network whose weights are then overwritten.
        train: Gives examples of the train split; asked only where statistics are estimated.
        complete: Makes a network's state of what a checkpoint holds; None: it holds all of it.
        still: Names of normalising layers that were frozen: a mean keeps their statistics.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        *,
        build: Callable[[], nn.Module],
        train: Callable[[], Examples],
        complete: Callable[[State], State] | None = None,
        still: Collection[str] = (),
    ) -> None:
        self._checkpoints, self._build, self._train = checkpoints, build, train
        self._complete, self._still = complete, still
        self._manifests = {manifest.step: manifest for manifest in checkpoints.manifests()}

    @property
    def averaged(self) -> bool:
        """Whether its checkpoints hold an average of the weights, which is what is read then."""
        return any(map(has_average, self._manifests.values()))

    def readable(self) -> Iterator[tuple[Place, nn.Module]]:
        """Give every checkpoint that can be used, oldest first; the others are reported."""
        for step in self._manifests:
            state = self._read(step)
            if state is None:
                continue
            network = self._build()
            try:
                network.load_state_dict(state)
            except RuntimeError as error:
                words = " ".join(str(error).split())
                self._checkpoints.report(step, f"step {step} does not fit the network: {words}")
                continue
            yield Place(step), network

    def network(self, place: Place) -> nn.Module:
        """Return the network of a candidate that was readable before.

        Raises:
            TrainingFailed: It no longer is.
        """
        network = self._build()
        network.load_state_dict(averaged(map(self._state, place.members or (place.step,))))
        if place.members and has_statistics(network, still=self._still):
            estimate_statistics(network, self._train(), still=self._still)
        return network

    def finite(self, scores: list[Score]) -> list[Score]:
        """Return those whose losses are all finite; the others are reported, and have no claim."""
        found = []
        for score in scores:
            if np.isfinite(score.totals).all():
                found.append(score)
            elif not score.place.members:
                step = score.place.step
                self._checkpoints.report(
                    step, f"step {step} has losses on the validation split that are not finite"
                )
        return found

    def _read(self, step: int) -> State | None:
        state = self._checkpoints.model_state(self._manifests[step])
        return state if state is None or self._complete is None else self._complete(state)

    def _state(self, step: int) -> State:
        state = self._read(step)
        if state is None:
            raise TrainingFailed(
                f"the checkpoint of step {step} could be read a moment ago and cannot be now: "
                f"{self._checkpoints.damaged[-1]}",
                hint="run the same command again: it chooses among those that are left",
            )
        return state


def mean_of_best(scores: list[Score], *, count: int) -> Place | None:
    """Return which checkpoints' mean is one more candidate; None where fewer than two are there.

    Its members were chosen by the rows that will judge it, which the draws of `optimism` take as
    given: its lead over its members is a little flattered.

    Args:
        scores: Of checkpoints.
        count: At most so many, those of smallest loss.
    """
    best = sorted(scores, key=lambda score: (score.metrics["loss"], score.place))[:count]
    if len(best) < 2:
        return None
    steps = tuple(score.place.step for score in best)
    return Place(max(steps), steps)
