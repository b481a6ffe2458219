"""Which parameters are weight matrices: the ones whose relative updates mean something."""

from __future__ import annotations

from torch import nn
from torch.nn import Parameter

# Only the rows of a batch are updated in a table; biases and norms have one number a unit, and
# start at 0 and 1.
_TABLES = (nn.Embedding, nn.EmbeddingBag)


def weight_matrices(model: nn.Module) -> dict[str, Parameter]:
    """Return trained parameters of two and more dimensions by name, without embeddings."""
    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, _TABLES)
        for parameter in module.parameters(recurse=False)
    }
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and parameter.dim() >= 2 and id(parameter) not in tables
    }
