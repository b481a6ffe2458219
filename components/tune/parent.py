"""MLflow's run of a whole search, above those of its trials."""

from __future__ import annotations

import sys
from types import TracebackType

from components.common.layout import tracking_uri
from components.common.project import Project
from infra.errors import OutsideError
from infra.tracking import RunStatus, Tracking


class Parent:
    """It is there while the search goes on, and then says how that ended.

    MLflow may be away: trials are then trained all the same, with nothing above them.

    Attributes:
        run_id: MLflow's; "": it could not be reached.
    """

    def __init__(self, project: Project, name: str) -> None:
        settings = project.settings
        experiment = settings.tracking.experiment or settings.name
        self._tracking = Tracking(uri=tracking_uri(project), experiment=experiment)
        self.run_id = ""
        try:
            self.run_id = self._tracking.open_run(
                key=f"tune-{name}", name=f"{settings.name} tune {name[:8]}",
                tags={"evertrain.tune": name},
            )  # fmt: skip
        except OutsideError as error:
            self._warn(error)

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Say how the search ended."""
        if not self.run_id:
            return
        stopped = kind is not None and issubclass(kind, KeyboardInterrupt)
        status: RunStatus = "FINISHED" if kind is None else "KILLED" if stopped else "FAILED"
        try:
            self._tracking.finish(self.run_id, status)
        except OutsideError as failure:
            self._warn(failure)

    def _warn(self, error: OutsideError) -> None:
        print(f"warning: the search is not whole in MLflow: {error.what}", file=sys.stderr)
