"""Faults of the world outside: storage, servers, the machine itself."""


class OutsideError(Exception):
    """Something outside the project failed; the same command may work later (exit code 3).

    Args:
        what: What failed, with the address it was tried at.
        hint: What to do next, ideally a command that can be run.
    """

    exit_code = 3

    def __init__(self, what: str, *, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}\n\nhint: {self.hint}" if self.hint else self.what


class ObjectMissing(OutsideError, LookupError):  # noqa: N818
    """No object has this key."""


class ObjectChanged(OutsideError):  # noqa: N818
    """The object is no longer the one that was asked for."""


class ObjectDamaged(OutsideError):  # noqa: N818
    """The object does not hold what was recorded of it."""


class LeadsOut(OutsideError):  # noqa: N818
    """A link leads out of the folder that the store is in, or nowhere."""


class LeaseLost(OutsideError):  # noqa: N818
    """Another run has the lease by now, so this one must not write any more."""


class StoreFull(OutsideError):  # noqa: N818
    """No space is left where objects are written."""


class Refused(OutsideError):  # noqa: N818
    """The world outside was reached, and will never take what was asked of it (exit code 2)."""

    exit_code = 2
