"""AdamW on flat buffers: torch's fused kernel on few long tensors instead of many short ones."""

from __future__ import annotations

from collections.abc import Callable
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
        groups = parameter_groups(flat.decaying, flat.others, weight_decay=weight_decay)
        super().__init__(groups, lr=lr, betas=betas, eps=eps, fused=True)
        self.flat = flat
        self._kernel = fused_kernel()
        means, squares = torch.zeros_like(flat.weights), torch.zeros_like(flat.weights)
        means_of, squares_of = flat.views(means), flat.views(squares)
        # A counter for each parameter, as torch has it; they are one buffer, and always equal.
        self._steps = torch.zeros(len(means_of), dtype=torch.float32, device=flat.weights.device)
        self._step = [self._steps[0]]
        for parameter, step in zip(means_of, self._steps.unbind(), strict=True):
            self.state[parameter] = {
                "step": step,
                "exp_avg": means_of[parameter],
                "exp_avg_sq": squares_of[parameter],
            }
        buffers = (flat.weights, flat.gradients, means, squares)
        self._runs = [
            (0 if run.decays else -1, [[buffer[run.start : run.stop]] for buffer in buffers])
            for run in flat.runs
        ]

    def update(self) -> None:
        """Do what `step` does, without the profiler's hook around it (10 of its 30 µs)."""
        scale, found = self.grad_scale, self.found_inf
        self._steps.add_(1) if found is None else self._steps.add_(1 - found)
        for index, (weights, gradients, means, squares) in self._runs:
            group = self.param_groups[index]
            beta1, beta2 = group["betas"]
            self._kernel(
                weights, gradients, means, squares, [], self._step,
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
        steps = {float(state["step"]) for state in loaded.values()}
        if len(steps) > 1:
            raise ConfigurationError(
                f"parameters in the optimiser's state are at different steps ({sorted(steps)}): "
                "some took no part in every step of the training that wrote it",
                hint="go on with the strategy that wrote it, as training.parallel.strategy says",
            )
        for parameter, state in mine.items():
            for name, tensor in state.items():
                found = loaded.get(parameter, {}).get(name)
                tensor.copy_(found) if found is not None else tensor.zero_()
        self._steps.fill_(steps.pop() if steps else 0.0)


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
