"""What a step computes: the FLOPs and bytes of each operation, and which of them limits it.

The roofline model (Williams, Waterman and Patterson 2009): an operation takes at least as long as
its FLOPs at the machine's peak, and as its bytes at the machine's bandwidth; the longer of the two
limits it. One whose work is done sooner than it is called is limited by the calling.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry, sdpa_backward_flop_count, sdpa_flop_count

from training_core.profiling.calibration import Machine

Limit = Literal["compute", "memory", "overhead"]
LIMITS: tuple[Limit, ...] = ("compute", "memory", "overhead")
_KINDS = (  # the first that an operation's name contains
    ("attention", ("scaled_dot_product", "flash_attention")),
    ("convolutions", ("conv",)),
    ("optimiser", ("_fused_", "_foreach_")),
    ("matrix products", ("mm",)),
    ("normalisation", ("batch_norm", "layer_norm", "group_norm")),
    ("embeddings", ("embedding",)),
    ("pooling", ("pool",)),
)
_NOTHING = {"aten::empty", "aten::empty_like", "aten::empty_strided", "aten::detach"}
_LOOKING_UP = {"aten::embedding", "aten::index_select", "aten::gather", "aten::index"}
ELSE = "element by element"


@dataclass
class Work:
    """Of all calls of one operation in a step.

    Attributes:
        calls, flops, bytes: Together.
        weights: How its time divides among what limits its calls.
    """

    calls: float = 0.0
    flops: float = 0.0
    bytes: float = 0.0
    weights: dict[Limit, float] = field(default_factory=lambda: dict.fromkeys(LIMITS, 0.0))

    def share(self, limit: Limit) -> float:
        """Of its time, the share of calls that are limited by this."""
        whole = sum(self.weights.values())
        return self.weights[limit] / whole if whole else 0.0


class Counter:
    """Adds up the work of operations as the dispatcher sees them, by name."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.work: dict[str, Work] = defaultdict(Work)

    def add(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Count one call."""
        name = function.name().split(".")[0]
        if function.is_view or name in _NOTHING:
            return
        flops = _flops(function, args, kwargs, result)
        moved = _bytes([] if name in _LOOKING_UP else args, kwargs, result)
        moved *= 2 if name in _LOOKING_UP else 1
        computing = self._machine.seconds_to_compute(flops)
        moving = self._machine.seconds_to_move(moved)
        least, call = max(computing, moving), self._machine.call
        limit: Limit = "compute" if computing > moving else "memory"
        work = self.work[name]
        work.calls += 1
        work.flops += flops
        work.bytes += moved
        work.weights[limit if least > call else "overhead"] += least + call

    def per_step(self, steps: int) -> dict[str, Work]:
        """Return the work of one of so many equal steps."""
        return {
            name: Work(
                work.calls / steps, work.flops / steps, work.bytes / steps, dict(work.weights)
            )
            for name, work in self.work.items()
        }


def kind_of(name: str) -> str:
    """Return what sort of operation it is, for people."""
    bare = name.removeprefix("aten::")
    return next((kind for kind, parts in _KINDS if any(p in bare for p in parts)), ELSE)


def _flops(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> float:
    """A multiplication and an addition are two; of products, convolutions and attention alone."""
    formula = flop_registry.get(function.overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=result))
    name = function.name()
    if "scaled_dot_product" in name:  # the CPU's, of which torch's own counter knows nothing
        shapes = [each.shape for each in args[:4] if isinstance(each, Tensor)]
        if "backward" in name and len(shapes) == 4:
            return float(sdpa_backward_flop_count(*shapes))  # type: ignore[no-untyped-call]
        return float(sdpa_flop_count(*shapes[:3]))  # type: ignore[no-untyped-call]
    return 0.0


def _bytes(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> float:
    """What is read and written at least: each argument and each result once.

    Of a table that rows are looked up in, as much as they are.
    """
    tensors = [each for each in tree_leaves((args, dict(kwargs))) if isinstance(each, Tensor)]
    outputs = [each for each in tree_leaves(result) if isinstance(each, Tensor)]
    return float(sum(each.numel() * each.element_size() for each in (*tensors, *outputs)))
