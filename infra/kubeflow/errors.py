"""What Kubeflow may answer, as errors: each ends with the exit code that says if a retry helps."""

from __future__ import annotations

from infra.errors import OutsideError


class NotAllowed(OutsideError):  # noqa: N818
    """401, 403, or a page to log in at: the credentials are missing, old, or of somebody else."""

    exit_code = 2


class NotThere(OutsideError, LookupError):  # noqa: N818
    """404, or a list without what was asked for."""

    exit_code = 2


class Refused(OutsideError):  # noqa: N818
    """400 and the like: asked the same way again, it is refused again."""

    exit_code = 2


class AlreadyThere(OutsideError):  # noqa: N818
    """409: something has this name already, or two were at it at once."""
