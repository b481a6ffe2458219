"""What one rank puts into its shard, in host memory, laid out as it will be written."""

from __future__ import annotations

from torch import Tensor

from training_core.checkpoints.host import HostCopy
from training_core.checkpoints.layout import Place, append, share, source, table
from training_core.checkpoints.live import LiveState
from training_core.checkpoints.manifest import StoredTensor
from training_core.errors import TrainingFailed
from training_core.parallel.strategy import Strategy

_ROOM = 1 << 20  # bytes beside the weights for the small tensors of a checkpoint


class Snapshot:
    """This rank's part of the state at one step; its memory is used again for the next.

    Who writes what is decided once, at the first checkpoint.

    Args:
        live: The state.
        strategy: The ranks.
    """

    def __init__(self, live: LiveState, strategy: Strategy) -> None:
        self._live, self._strategy = live, strategy
        self._host = HostCopy(strategy.device)
        self._names: set[str] | None = None
        self._shared: list[Place] = []  # of weights, buffers and optimiser state
        self._places: list[Place] = []  # with the small tensors of this checkpoint
        self._now: tuple[list[Tensor], list[Tensor]] = ([], [])  # targets, sources
        self._later: tuple[list[Tensor], list[Tensor]] = ([], [])
        self.hold_updates = self._host.hold_updates

    def begin(self, small: dict[str, Tensor]) -> None:
        """Copy what the next forward changes, and small tensors of this step; all ranks together.

        Raises:
            TrainingFailed: Model or optimiser have other state than at the checkpoint before.
        """
        moved = self._live.refresh()
        names = self._live.tensors.keys()
        if self._names is None:
            self._names, self._shared = set(names), share(self._live.tensors, self._strategy)
        elif names != self._names:
            raise TrainingFailed(
                "model or optimiser got other state while training: "
                f"{min(names ^ self._names)} came or went",
                hint="register buffers and parameters before training begins",
            )
        added = append(self._shared, small)
        self._places = self._shared + added
        if self._host.reserve(self._size(), room=_ROOM) or moved:
            early = self._live.changing_in_forward()
            self._now = self._bind([p for p in self._shared if p.name in early])
            self._later = self._bind([p for p in self._shared if p.name not in early])
        targets, sources = self._now
        self._host.copy_now(
            [*targets, *(place.view(self._host.memory) for place in added)],
            [*sources, *(small[place.name] for place in added)],
        )

    def copy(self) -> None:
        """Copy the rest, in another thread; weights may change when this returns."""
        self._host.copy(*self._later)

    def content(self) -> memoryview:
        """Return the shard's bytes once all copies are made."""
        return self._host.content(self._size())

    def tensors(self, shard: str) -> dict[str, StoredTensor]:
        """Say where each piece lies in a shard of this name."""
        return table(self._places, shard)

    def _size(self) -> int:
        return self._places[-1].end if self._places else 0

    def _bind(self, places: list[Place]) -> tuple[list[Tensor], list[Tensor]]:
        """Return where places are in host memory, and what is copied there."""
        targets = [place.view(self._host.memory) for place in places]
        return targets, [source(place, self._live.tensors) for place in places]
