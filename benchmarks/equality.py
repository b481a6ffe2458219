"""Whether two contestants have trained the same model."""

from __future__ import annotations

import torch

from benchmarks.networks import Network
from benchmarks.workloads import Workload, evaluate

# What may differ: rounding, which AdamW amplifies. Seen: 0 in one process, 5e-6 on two ranks;
# another order of samples gives 1e-1, while the loss differs by 2e-4 only.
TOLERANCE = 1e-3


def difference_of(name: str, workload: Workload, model: Network, reference: Network) -> str:
    """Return in words how far a contestant's result is from the reference's.

    Raises:
        SystemExit: The weights are not the same.
    """
    theirs = reference.state_dict()
    differences = [(v - theirs[k]).abs().max().double() for k, v in model.state_dict().items()]
    weights = torch.stack(differences).max().item()  # NaN, if there is one
    loss = abs(evaluate(model, workload) - evaluate(reference, workload))
    words = f"weights {weights:.0e}, loss {loss:.0e}"
    if not weights <= TOLERANCE:
        raise SystemExit(f"error: {name} on {workload.name} trained something else: {words}")
    return words
