"""The update: norm, clipping, skipping what is not finite, the optimisers' step, zeroing."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.nn import Parameter

from training_core.optim.clipping import Clipping
from training_core.optim.flat import FlatParameters
from training_core.optim.flat_adamw import FlatAdamW
from training_core.optim.groups import Part, Parts
from training_core.optim.optimisers import build_optimisers, materialise_state
from training_core.optim.settings import OptimiserSettings
from training_core.optim.shapes import Rate
from training_core.parallel.strategy import Strategy


class Update:
    """Turns the gradients of a step, summed and normalised over all ranks, into new weights.

    A step whose gradient norm is not finite changes nothing: no weight, moment or step counter. The
    norm is that over all ranks, so all skip together, and a loss scale shrinks on all alike.

    Optimisers that can skip by themselves (torch's fused ones) decide on the device. The others
    (nadam, adafactor, muon, sgd on sharded weights) need one look at the norm, for which a GPU has
    to be waited for. On a CPU there is nothing to wait for, so it looks at the norm always.

    Args:
        model: On its device, sharded if it is to be.
        settings: Optimiser and clipping.
        strategy: The processes.
        scaler: Of the loss, under fp16; a disabled one otherwise.
        on_host: Look at the norm; None: where that costs nothing, or has to be.
        parts: What is trained alike, where rates or the time of thawing differ; None: all of it.

    Attributes:
        optimisers: Their state is there from the beginning, in tensors that are updated in place.
        norm_sum: Gradient norms before clipping, added up until someone zeroes it; float32 scalar
            on the device, like the following. What is not finite counts 0.
        skipped: Steps skipped so far.
        finite: 1 if the last step was taken, 0 if it was skipped.
        update_norm: 2-norm of the change of the weights in the last step that was measured.
    """

    def __init__(
        self,
        model: nn.Module,
        settings: OptimiserSettings,
        *,
        strategy: Strategy,
        scaler: torch.amp.GradScaler,
        on_host: bool | None = None,
        parts: Parts | None = None,
    ) -> None:
        self._strategy, self._scaler = strategy, scaler
        self._scaled = scaler.is_enabled()
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        flat = strategy.flat and FlatParameters.fits(model)
        if parts is not None and any(part.level for part in parts.values()):
            flat &= settings.name == "adamw"  # the others must find no gradient where one rests
        self._flat = FlatParameters(model, parts=parts) if flat else None
        self.optimisers = build_optimisers(model, settings, flat=self._flat, parts=parts)
        self._parts = [
            (group, parts[group["params"][0]] if parts else Part())
            for optimiser in self.optimisers
            for group in optimiser.param_groups
        ]
        self._dropped: list[Parameter] = []
        materialise_state(self.optimisers)
        device = strategy.device
        self._on_host = self._must_look() or device.type == "cpu" if on_host is None else on_host
        self._clipping = Clipping(
            norm=settings.clip_norm,
            percentile=settings.clip_percentile,
            history=settings.clip_history,
            device=device,
        )
        self.norm_sum, self.skipped, self.update_norm = torch.zeros(3, device=device).unbind()
        self.finite = torch.ones((), device=device)
        self._steps = [o.update if isinstance(o, FlatAdamW) else o.step for o in self.optimisers]

    @property
    def gradients(self) -> Tensor | None:
        """All gradients in one buffer, if they are."""
        return None if self._flat is None else self._flat.gradients

    def set_rate(self, rate: Rate) -> None:
        """Set what the next step is taken with."""
        for group, part in self._parts:
            group["lr"] = rate.lr * part.lr_factor
            if rate.momentum is not None:
                if "betas" in group:
                    group["betas"] = (rate.momentum, group["betas"][1])
                elif "momentum" in group:
                    group["momentum"] = rate.momentum

    def rest(self, *, beyond: int) -> None:
        """Let parameters of higher levels than this one rest, and all others train.

        What rests has no gradient, counts in no norm, and no optimiser touches it. In one process
        nothing is computed for it either; several compute its gradients and drop them, for DDP and
        FSDP2 settle once which parameters have one.
        """
        resting = [i for i, (_, part) in enumerate(self._parts) if part.level > beyond]
        asleep = {p for i in resting for p in self._parts[i][0]["params"]}
        if self._strategy.flat:
            for parameter in self._parameters:
                parameter.requires_grad_(parameter not in asleep)
        if self._flat is None:
            self._dropped = [p for p in self._parameters if p in asleep]
        for optimiser in self.optimisers:
            if isinstance(optimiser, FlatAdamW):  # the only one, then
                optimiser.rest(resting)

    def step(self, *, measure: bool = False) -> None:
        """Update the weights, and zero the gradients.

        Args:
            measure: Also keep the weights of before, and set `update_norm`.
        """
        for parameter in self._dropped:
            parameter.grad = None
        if self._flat is None:
            gradients = [p.grad for p in self._parameters if p.grad is not None]
        else:
            gradients = [self._flat.collected()]
        norm = self._strategy.gradient_norm(gradients)
        if self._scaled:
            norm = norm / self._scale
        before = self._copies() if measure else []
        if self._on_host:
            self._step_on_host(norm, gradients)
        else:
            self._step_on_device(norm)
        if self._scaled:
            self._adapt_scale()
        if measure:
            self._measure(before)
        self._zero()

    def _step_on_host(self, norm: Tensor, gradients: list[Tensor]) -> None:
        value = norm.item()
        divisor = self._clipping.divisor_of(value, norm)
        if not math.isfinite(value):
            self.finite.zero_()
            self.skipped.add_(1)
            return
        self.finite.fill_(1)
        self.norm_sum.add_(norm)
        if self._scaled:
            divisor *= self._scale.item()
        if divisor != 1:
            torch._foreach_mul_([_local(gradient) for gradient in gradients], 1 / divisor)
        for step in self._steps:
            step()

    def _step_on_device(self, norm: Tensor) -> None:
        self.finite.copy_(torch.isfinite(norm))
        skip = 1 - self.finite
        self.norm_sum.add_(norm.nan_to_num(0.0, 0.0, 0.0))
        self.skipped.add_(skip)
        divisor = self._clipping.divisor(norm)
        if self._scaled:
            divisor = self._scale if divisor is None else divisor * self._scale
        for optimiser, step in zip(self.optimisers, self._steps, strict=True):
            # the fused kernels divide by the one, and leave all alone where the other is 1
            optimiser.grad_scale, optimiser.found_inf = divisor, skip  # type: ignore[attr-defined]
            step()

    def _zero(self) -> None:
        if self._flat is not None:
            self._flat.zero()
            return
        for parameter in self._parameters:
            parameter.grad = None

    def _must_look(self) -> bool:
        return not all(getattr(o, "_step_supports_amp_scaling", False) for o in self.optimisers)

    # ---- loss scale ----------------------------------------------------------------------------

    @property
    def _scale(self) -> Tensor:
        scale = self._scaler._scale
        assert scale is not None  # the loss was scaled
        return scale

    def _adapt_scale(self) -> None:
        """Shrink or grow the scale. A scaler knows what its own `unscale_` has found on this rank;
        here the norm over all ranks tells."""
        found = {self._scale.device: (1 - self.finite).to(self._scale.device)}
        self._scaler._per_optimizer_states[0]["found_inf_per_device"] = found
        self._scaler.update()

    # ---- measuring -----------------------------------------------------------------------------

    def _copies(self) -> list[Tensor]:
        if self._flat is not None:
            return [self._flat.weights.clone()]
        return [p.detach().clone() for p in self._parameters]

    def _measure(self, before: list[Tensor]) -> None:
        now = [p.detach() for p in self._parameters] if self._flat is None else [self._flat.weights]
        changes = [after - old for after, old in zip(now, before, strict=True)]
        self.update_norm.copy_(self._strategy.gradient_norm(changes))

    # ---- state ---------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Tensor]:
        """Return the live tensors, but for those of the optimisers."""
        return {
            "norm_sum": self.norm_sum,
            "skipped": self.skipped,
            **self._clipping.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from such a state."""
        self.norm_sum.copy_(state["norm_sum"])
        self.skipped.copy_(state["skipped"])
        self._clipping.load_state_dict(state)


def _local(gradient: Tensor) -> Tensor:
    return gradient.to_local() if isinstance(gradient, DTensor) else gradient
