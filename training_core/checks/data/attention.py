"""Whether attention at real positions answers to what stands at padded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from training_core.evaluation import outputs_of
from training_core.examples import Examples

_SOFTMAX = (torch.softmax, F.softmax, Tensor.softmax)
_ATTENDS = (F.scaled_dot_product_attention, F.multi_head_attention_forward)


def answer_to_padding(
    model: nn.Module, batch: Examples, *, name: str, positions: Tensor, apart: int
) -> float | None:
    """Return by how much attention at real positions changes with the vectors of padded ones.

    In deviations of its result. The tokens stay, and so does every mask that is made of them: only
    what `nn.Embedding` gives for padded positions is exchanged for what it gives for real ones. So
    a head that shares the weights does not change either. Of several attentions the first is
    looked at: what comes before it may be a convolution, but no more.

    Args:
        model: Changed in no way.
        batch: Rows with padding.
        name: The padded array, int [N, T].
        positions: Where it is padded, bool [N, T].
        apart: Padded positions next to the real ones that stay as they are, for convolutions.

    Returns:
        None where no embedding of these tokens, or no attention over T positions, was seen.
    """
    if len(batch) == batch.arrays[name].shape[1]:  # rows and positions must be told apart
        batch, positions = batch.take(slice(1, None)), positions[1:]
    tokens = batch.arrays[name]
    inner = positions.clone()
    if apart:
        inner[:, apart:] &= positions[:, :-apart]
        inner[:, :apart] = False
    real = ~positions
    first, seen = _first_attention(model, batch, tokens, lambda vectors: vectors)
    generator = torch.Generator().manual_seed(0)
    sources = torch.nonzero(real)
    drawn = torch.randint(len(sources), (int(inner.sum()),), generator=generator)
    rows, places = sources[drawn].unbind(1)

    def exchanged(vectors: Tensor) -> Tensor:
        changed = vectors.clone()
        changed[inner] = vectors[rows, places]
        return changed

    if first is None or not seen:
        return None
    second, _ = _first_attention(model, batch, tokens, exchanged)
    chosen = _at(real, first.shape)
    if second is None or chosen is None or second.shape != first.shape:
        return None
    known = first[chosen].double()
    spread = float(known.std())
    return float((second[chosen].double() - known).abs().max()) / max(spread, 1e-6)


def _first_attention(
    model: nn.Module, batch: Examples, tokens: Tensor, change: Callable[[Tensor], Tensor]
) -> tuple[Tensor | None, bool]:
    """Run the model; return what the first attention gives, and whether tokens were embedded."""
    found: list[Tensor] = []
    embedded = []

    def embed(module: nn.Module, inputs: tuple[Any, ...], vectors: Tensor) -> Tensor:
        if inputs and isinstance(inputs[0], Tensor) and torch.equal(inputs[0], tokens):
            embedded.append(True)
            return change(vectors)
        return vectors

    def note(result: Any) -> None:
        attention = result[0] if isinstance(result, tuple) else result
        if isinstance(attention, Tensor):
            found.append(attention.detach().float())

    with _hooked(model, embed), _Attention(note, tokens.shape[1]):
        outputs_of(model, batch, device=tokens.device)
    return (found[0] if found else None), bool(embedded)


class _Attention(TorchFunctionMode):
    """Notes what attention gives, in the order in which it is called."""

    def __init__(self, note: Callable[[Any], None], width: int) -> None:
        super().__init__()
        self.note, self.width = note, width

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        if function in _ATTENDS or (function in _SOFTMAX and self.width in result.shape[1:]):
            self.note(result)
        return result


@contextmanager
def _hooked(model: nn.Module, hook: Callable[..., Tensor]) -> Iterator[None]:
    handles: list[RemovableHandle] = [
        module.register_forward_hook(hook)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _at(real: Tensor, shape: torch.Size) -> Tensor | None:
    """Return which values belong to real positions only, bool of that shape; None: not to say."""
    count, width = real.shape
    if len(shape) < 2:
        return None
    if shape[0] == width and shape[1] == count and width != count:
        swapped = torch.Size((count, width, *shape[2:]))
        turned = _at(real, swapped)
        return None if turned is None else turned.transpose(0, 1)
    if shape[0] != count or width not in shape[1:]:
        return None
    chosen = torch.ones(shape, dtype=torch.bool)
    for axis, size in enumerate(shape[1:], start=1):
        if size == width:
            view = [count if i == 0 else width if i == axis else 1 for i in range(len(shape))]
            chosen &= real.view(view)
    return chosen if chosen.any() else None
