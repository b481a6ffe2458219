"""AdamW on flat buffers: torch's fused kernel on few long tensors instead of many short ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from training_core.errors import ConfigurationError
from training_core.optim.flat import FlatParameters
from training_core.optim.groups import parameter_groups

# What the private operator takes, in torch 2.13. Another signature: the public function is used.
_SIGNATURE = (
    "self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs", "state_steps", "lr", "beta1",
    "beta2", "weight_decay", "eps", "amsgrad", "maximize", "grad_scale", "found_inf",
)  # fmt: skip

Kernel = Callable[..., None]


class FlatAdamW(torch.optim.AdamW):
    """`torch.optim.AdamW(fused=True)` whose state is views of flat buffers: the same bits, sooner.

    Its state dict is torch's: what plain AdamW has saved loads here, and the other way round.
    Loading copies into the buffers, so that tensors once handed out stay the live ones.

    As with torch's fused optimisers, gradients are divided by `grad_scale`, and nothing changes
    where `found_inf` is 1; both are 0-d tensors on the device, or None.

    Args:
        flat: The parameters.
        lr, betas, eps, weight_decay: As torch has them; biases and norms do not decay.
    """

    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None

    def __init__(
        self,
        flat: FlatParameters,
        *,
        lr: float,
        betas: tuple[float, float],
        eps: float,
        weight_decay: float,
    ) -> None:
        groups = parameter_groups(
            flat.decaying, flat.others, weight_decay=weight_decay, parts=flat.parts
        )
        super().__init__(groups, lr=lr, betas=betas, eps=eps, fused=True)
        self.flat = flat
        self._kernel = fused_kernel()
        means, squares = torch.zeros_like(flat.weights), torch.zeros_like(flat.weights)
        means_of, squares_of = flat.views(means), flat.views(squares)
        # A counter for each parameter, as torch has it, equal within a group; they are one buffer.
        self._steps = torch.zeros(len(means_of), dtype=torch.float32, device=flat.weights.device)
        for parameter, step in zip(means_of, self._steps.unbind(), strict=True):
            self.state[parameter] = {
                "step": step,
                "exp_avg": means_of[parameter],
                "exp_avg_sq": squares_of[parameter],
            }
        buffers = (flat.weights, flat.gradients, means, squares)
        self._all_runs = [
            (
                run.group,
                [[buffer[run.start : run.stop]] for buffer in buffers],
                [self.state[self.param_groups[run.group]["params"][0]]["step"]],
            )
            for run in flat.runs
        ]
        self._runs = self._all_runs
        self._counted: Tensor | int = 1

    def rest(self, groups: Collection[int]) -> None:
        """Let these groups rest, and no others: no step, no decay, and their counters stand."""
        self._runs = [run for run in self._all_runs if run[0] not in groups]
        self._counted = 1
        if groups:
            resting = {p for group in groups for p in self.param_groups[group]["params"]}
            self._counted = self._steps.new_tensor([p not in resting for p in self.state])

    def update(self) -> None:
        """Do what `step` does, without the profiler's hook around it (10 of its 30 µs)."""
        scale, found = self.grad_scale, self.found_inf
        counted = self._counted
        self._steps.add_(counted if found is None else (1 - found) * counted)
        for index, (weights, gradients, means, squares), step in self._runs:
            group = self.param_groups[index]
            beta1, beta2 = group["betas"]
            self._kernel(
                weights, gradients, means, squares, [], step,
                lr=group["lr"], beta1=beta1, beta2=beta2, weight_decay=group["weight_decay"],
                eps=group["eps"], amsgrad=False, maximize=False, grad_scale=scale, found_inf=found,
            )  # fmt: skip

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the weights from the gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.update()
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Zero all gradients; they stay views, whatever is asked for."""
        self.flat.zero()

    @torch.no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Copy a state of this or of plain AdamW into the buffers.

        Raises:
            ConfigurationError: Its parameters are at different steps.
        """
        mine = self.state
        try:
            super().load_state_dict(state_dict)
            loaded = self.state
        finally:
            self.state = mine
        by_group = [
            {float(loaded[p]["step"]) for p in group["params"] if p in loaded}
            for group in self.param_groups
        ]
        steps = set().union(*by_group)
        if len(steps) > 1 and (self.flat.parts is None or any(len(own) > 1 for own in by_group)):
            raise ConfigurationError(
                f"parameters in the optimiser's state are at different steps ({sorted(steps)}): "
                "some took no part in every step of the training that wrote it",
                hint="go on with the strategy that wrote it, as training.parallel.strategy says",
            )
        for parameter, state in mine.items():
            for name, tensor in state.items():
                found = loaded.get(parameter, {}).get(name)
                tensor.copy_(found) if found is not None else tensor.zero_()
        for group, own in zip(self.param_groups, by_group, strict=True):
            for parameter in group["params"]:
                mine[parameter]["step"].fill_(max(own, default=0.0))


def fused_kernel() -> Kernel:
    """Return torch's fused operator, or the public function in its clothes."""
    try:
        arguments = torch.ops.aten._fused_adamw_.default._schema.arguments
    except AttributeError:
        return public_kernel
    direct = tuple(argument.name for argument in arguments) == _SIGNATURE
    return torch._fused_adamw_ if direct else public_kernel


def public_kernel(
    weights: list[Tensor],
    gradients: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    largest: list[Tensor],
    steps: list[Tensor],
    **numbers: Any,
) -> None:
    """Update through torch's functional AdamW, which counts the step itself."""
    before = [step - 1 for step in steps]
    adamw(weights, gradients, means, squares, largest, before, fused=True, **numbers)
