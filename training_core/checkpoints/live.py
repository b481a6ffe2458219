"""The state of a training as named tensors: the very ones that training updates in place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
)
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from training_core.errors import ConfigurationError
from training_core.optim.optimisers import materialise_state

MODEL, OPTIMISER, AVERAGE = "model.", "optimiser.", "average."


class LiveState:
    """References to the weights, buffers and optimiser state of one rank.

    They stay valid because optimisers update in place. Where something was replaced all the same
    (a buffer assigned anew, parameters moved by FSDP), `refresh` notices and collects again.
    Hyperparameters are not among them: they follow from the settings and the step.

    Args:
        model: The user's module, not wrapped; sharded by FSDP2 or whole.
        optimisers: Of its parameters, each parameter in one of them.
        others: Gives more of them, by their whole names; they change in the update only.
        constant: Names of the model's that are left out.

    Attributes:
        tensors: By name: `model.<name>`, `optimiser.<parameter>.<what>`, and where weights are
            averaged `average.<name>`; DTensors where sharded.
    """

    def __init__(
        self,
        model: nn.Module,
        optimisers: Sequence[Optimizer],
        others: Callable[[], Mapping[str, Tensor]] = dict,
        *,
        constant: Collection[str] = (),
    ) -> None:
        self.model, self.optimisers, self.others = model, optimisers, others
        self._constant = constant
        self.tensors: dict[str, Tensor] = {}
        self._held: list[tuple[dict[Any, Any], Any]] = []
        self._seen: list[int] = []

    def refresh(self) -> bool:
        """Collect the references if there are none or one of them is stale; say whether it did.

        Raises:
            ConfigurationError: Model or optimiser have state that is no tensor.
        """
        if self._held and self._seen == self._addresses():
            return False
        materialise_state(self.optimisers)
        found: dict[str, Any] = {
            f"{MODEL}{name}": value
            for name, value in get_model_state_dict(self.model).items()
            if name not in self._constant
        }
        stateful = [optimiser for optimiser in self.optimisers if optimiser.state]
        if stateful:
            options = StateDictOptions(flatten_optimizer_state_dict=True)
            flat = get_optimizer_state_dict(self.model, stateful, options=options)
            for name, value in flat.items():
                if name.startswith("state."):  # the rest are hyperparameters
                    found[f"{OPTIMISER}{name.removeprefix('state.')}"] = value
        found |= self.others()
        for name, value in found.items():
            if not isinstance(value, Tensor):
                raise ConfigurationError(
                    f"{name} is {type(value).__name__}, and a checkpoint holds tensors",
                    hint="keep it as a tensor, registered with register_buffer",
                )
        self.tensors = {name: value.detach() for name, value in found.items()}
        self._held = self._places()
        self._seen = self._addresses()
        return True

    def changing_in_forward(self) -> set[str]:
        """Names of the model's buffers: unlike weights, they change before the optimiser's step."""
        with torch.no_grad():
            weights = {local(parameter).data_ptr() for parameter in self.model.parameters()}
            return {
                name
                for name, value in self.tensors.items()
                if name.startswith(MODEL) and local(value).data_ptr() not in weights
            }

    def _places(self) -> list[tuple[dict[Any, Any], Any]]:
        """Every dict and key that holds a tensor of the state."""
        holders: list[dict[Any, Any]] = []
        for module in self.model.modules():
            holders += (module._parameters, module._buffers)
        for optimiser in self.optimisers:
            holders += optimiser.state.values()
        return [(d, key) for d in holders for key, held in d.items() if isinstance(held, Tensor)]

    @torch.no_grad()
    def _addresses(self) -> list[int]:
        """Where the memory of each tensor is that is there now: in a tenth of a millisecond."""
        return [local(holder[key]).data_ptr() for holder, key in self._held]


def local(tensor: Tensor) -> Tensor:
    """Return this rank's part of a sharded tensor, or a whole tensor itself; no copy."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor
