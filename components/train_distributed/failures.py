"""Why a rank failed, as plain data: it travels through a file, or through the object store."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

from infra import errors as infra_errors
from infra.errors import OutsideError
from training_core import errors as training_errors
from training_core.errors import EvertrainError, TrainingFailed

_PEER_LOST, _PEER_FAILED = "PeerLost", "PeerFailed"
_INTERRUPTED = "KeyboardInterrupt"

# What gloo, NCCL and the store say when whoever they speak with is gone; their errors are mostly
# plain RuntimeErrors.
_GONE = re.compile(
    r"gloo|nccl|tcpstore|process ?group|connection (was )?(closed|reset|refused)|broken pipe"
    r"|socket (closed|timeout)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Failure:
    """The end of one rank that did not come to the end of its training.

    Attributes:
        kind: Name of the exception's class.
        what, hint: As in `OutsideError`.
        rank: Among all nodes.
        node: That it ran on; "" where there is one.
    """

    kind: str
    what: str
    hint: str = ""
    rank: str = "0"
    node: str = ""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return what this process's rank failed with."""
        rank, node = os.environ.get("RANK", "0"), os.environ.get("GROUP_RANK", "")
        if isinstance(error, (EvertrainError, OutsideError)):
            return cls(type(error).__name__, error.what, error.hint, rank, node)
        kind = _PEER_LOST if _lost_a_peer(error) else type(error).__name__
        return cls(kind, f"{type(error).__name__}: {error}", "", rank, node)

    @property
    def known(self) -> bool:
        """Whether the words say all there is to say: no traceback is needed."""
        return self.interrupted or self.kind == _PEER_LOST or _class_of(self.kind) is not None

    @property
    def interrupted(self) -> bool:
        """Whether it was asked to stop, and has saved."""
        return self.kind == _INTERRUPTED

    @property
    def secondhand(self) -> bool:
        """Whether it failed because another rank did."""
        return self.kind in (_PEER_LOST, _PEER_FAILED)

    @property
    def final(self) -> bool:
        """Whether starting the ranks anew would end the same way."""
        outside = exit_code(self.exception()) == OutsideError.exit_code
        return not (self.interrupted or self.secondhand or outside)

    def exception(self) -> BaseException:
        """Return the exception that it was, or one that says it."""
        if self.interrupted:
            return KeyboardInterrupt()
        if self.kind == _PEER_LOST:
            return OutsideError(
                f"rank {self.rank} lost its peers: {self.what}",
                hint="run the same command again: training goes on from its newest checkpoint",
            )
        known = _class_of(self.kind)
        if known is not None:
            return known(self.what, hint=self.hint)
        return TrainingFailed(
            f"rank {self.rank} failed: {self.what}", hint="its traceback is in the run's log"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Failure:
        """Read what `to_dict` gave, of this or another version."""
        return cls(**{name: str(data.get(name, "")) for name in cls.__dataclass_fields__})


def cause_of(failures: list[Failure]) -> Failure | None:
    """Return the failure that explains the others; None: there is none."""
    firsthand = [f for f in failures if not f.secondhand]
    for candidates in ([f for f in firsthand if f.final], firsthand, failures):
        if candidates:
            return candidates[0]
    return None


def exit_code(error: BaseException) -> int:
    """Return the exit code of the design page for an exception."""
    if isinstance(error, KeyboardInterrupt):
        return 130
    return int(getattr(error, "exit_code", 1))


def _lost_a_peer(error: BaseException) -> bool:
    import torch.distributed as dist

    if isinstance(error, dist.DistError):
        return True
    return type(error) is RuntimeError and bool(_GONE.search(str(error)))


def _class_of(kind: str) -> type[EvertrainError] | type[OutsideError] | None:
    for module in (training_errors, infra_errors):
        found = getattr(module, kind, None)
        if isinstance(found, type) and issubclass(found, (EvertrainError, OutsideError)):
            return found
    return None
