"""What makes the host wait for the device, or writes, and where: found by watching some steps.

Each is harmless once an epoch. In every step a GPU runs dry behind it, and torch.compile breaks its
graph there. On a CPU it costs little, and is told all the same: it is where a GPU would wait.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import TextIOBase
from typing import Any, TextIO

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from training_core.profiling.places import Place, users_place

# Operations whose result decides what the host does next: a value, or a shape.
_OPERATIONS = {
    "aten::_local_scalar_dense": "a value is read",
    "aten::equal": "a value is read",
    "aten::nonzero": "a shape depends on values",
    "aten::masked_select": "a shape depends on values",
    "aten::_unique2": "a shape depends on values",
    "aten::unique_dim": "a shape depends on values",
    "aten::unique_consecutive": "a shape depends on values",
    "aten::repeat_interleave.Tensor": "a shape depends on values",
}
_INDEXING = {"aten::index.Tensor"}  # with a mask: as nonzero
# What reads whole tensors, of which the dispatcher may see nothing.
_METHODS = {"tolist", "numpy", "cpu", "__array__"}
PRINTS = "something is written"
COPIES = "a tensor is brought to the host"


class Syncs(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes them while `watching`.

    Attributes:
        found: How often, by kind and line of the user's.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: Counter[tuple[str, Place]] = Counter()
        self.operation: Callable[[Any, Any, Any, Any], None] | None = None

    def note(self, kind: str) -> None:
        """Note one where the caller's stack is now, if a line of the user's is on it."""
        place = users_place(sys._getframe(2))
        if place is not None:
            self.found[kind, place] += 1

    def __torch_dispatch__(
        self,
        function: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        name = function.name()
        if name in _OPERATIONS:
            self.note(_OPERATIONS[name])
        elif name in _INDEXING and any(_is_mask(index) for index in args[1]):
            self.note("a shape depends on values")
        if self.operation is not None:
            self.operation(function, args, kwargs or {}, result)
        return result

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what this thread does, and what is written to stdout and stderr."""
        with (
            redirect_stdout(_Noting(sys.stdout, self)),
            redirect_stderr(_Noting(sys.stderr, self)),
            _Methods(self),
            self,
        ):
            yield


class _Methods(TorchFunctionMode):
    def __init__(self, syncs: Syncs) -> None:
        super().__init__()
        self._syncs = syncs

    def __torch_function__(
        self,
        function: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(function, "__name__", "") in _METHODS:
            self._syncs.note(COPIES)
        return function(*args, **(kwargs or {}))


class _Noting(TextIOBase):
    """A stream that passes everything on."""

    def __init__(self, stream: TextIO, syncs: Syncs) -> None:
        self._stream, self._syncs = stream, syncs

    def write(self, text: str) -> int:
        if text.strip():  # print writes its line's end by itself
            self._syncs.note(PRINTS)
        return self._stream.write(text)

    def flush(self) -> None:
        self._stream.flush()


def _is_mask(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)
