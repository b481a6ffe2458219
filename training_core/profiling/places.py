"""Whose line is it? From a stack to the innermost line of the user's own code.

A user's code is what is neither ours, nor torch's, nor of the standard library or an installed
package. It counts only inside the loop: whoever called the profiler is not accused.
"""

from __future__ import annotations

import linecache
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).parents[2]
_OURS = tuple(f"{_ROOT / name}/" for name in ("training_core", "components", "pipelines", "infra"))
_INSTALLED = tuple(
    {f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    | {f"{sys.base_prefix}/lib/"}
)
_LOOP = str(_ROOT / "training_core" / "loop.py")


@dataclass(frozen=True, order=True)
class Place:
    """A line of the user's code.

    Attributes:
        file: Its path.
        line: From 1.
        function: That it is in.
    """

    file: str
    line: int
    function: str

    @property
    def code(self) -> str:
        """The line itself, without its indentation; empty where it cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@cache
def is_users(file: str) -> bool:
    """Whether a file is the user's own."""
    return not (file.startswith("<") or file.startswith(_OURS) or file.startswith(_INSTALLED))


def users_place(frame: FrameType | None, *, most: int = 80) -> Place | None:
    """Return the innermost line of the user's on a stack, up to the loop; None: there is none."""
    for _ in range(most):
        if frame is None or frame.f_code.co_filename == _LOOP:
            return None
        code = frame.f_code
        if is_users(code.co_filename):
            return Place(code.co_filename, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None
