"""Which model is champion, deciding on what is proposed, and going back to an earlier one.

Every command first makes the registry's aliases follow the log: whatever crashed before is mended.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress

from components.common import approval, rollback
from components.common.aliases import repair_aliases
from components.common.champion import PromotionEntry, PromotionLog
from components.common.decision_figures import SmokeFigures
from components.common.layout import home, project_store, tracking_uri
from components.common.project import Project
from components.common.promotion import user_name
from components.common.rehearsal import Rehearsal, rehearse
from infra.errors import OutsideError
from infra.registry import Registry
from training_core.errors import EvertrainError


class Models:
    """A project's promotion log and its registry."""

    def __init__(self, project: Project) -> None:
        settings = project.settings
        self.name = settings.name
        self.log = PromotionLog(project_store(project))
        self.registry = Registry(
            uri=tracking_uri(project), experiment=settings.tracking.experiment or settings.name
        )
        self._cache = home(project) / "cache"

    def repair(self) -> dict[str, str | None]:
        """Make the registry's aliases follow the log; return what was changed."""
        return repair_aliases(self.log, self.registry, self.name)

    def approve(self, version: str, *, reason: str) -> PromotionEntry:
        """Make what was proposed champion.

        Args:
            version: That was proposed; empty: the newest proposal's.
            reason: Kept in the log.

        Raises:
            ConfigurationError: It was never proposed.
            StoppedByGate: It cannot be approved any more, or its package does not work.
        """
        with self._mended() as rehearse_beside:
            return approval.approve(
                self.log,
                self.registry,
                self.name,
                approval.proposal_to_decide(self.log.entries(), version),
                reason=reason,
                who=user_name(),
                rehearse=rehearse_beside,
            )

    def reject(self, version: str, *, reason: str) -> PromotionEntry:
        """Close a proposal; arguments and faults as of `approve`."""
        self.repair()
        return approval.reject(
            self.log,
            self.registry,
            self.name,
            approval.proposal_to_decide(self.log.entries(), version),
            reason=reason,
            who=user_name(),
        )

    def roll_back(self, *, to: str, reason: str) -> PromotionEntry:
        """Make an earlier version champion.

        Args:
            to: The version; empty: the champion before this one.
            reason: Kept in the log.

        Raises:
            ConfigurationError: There is no such version to go back to.
            StoppedByGate: Its package does not work; the champion stays.
        """
        with self._mended() as rehearse_beside:
            return rollback.roll_back(
                self.log,
                self.registry,
                self.name,
                to=to,
                reason=reason,
                who=user_name(),
                rehearse=rehearse_beside,
            )

    @contextmanager
    def _mended(self) -> Iterator[Rehearsal]:
        """Repair the aliases, beside a rehearsal if there is one.

        MLflow takes as long to import as torch does in the rehearsal's process. What starts that
        process is imported before: two imports in one process only wait for each other.

        Yields:
            A rehearsal, which has the aliases repaired when it ends.
        """
        repaired: Future[dict[str, str | None]] | None = None
        with ThreadPoolExecutor(1) as beside:

            def rehearse_beside(entry: PromotionEntry) -> SmokeFigures:
                import components.common.smoke  # noqa: F401

                nonlocal repaired
                repaired = beside.submit(self.repair)
                seen = rehearse(self.log.store, entry, self._cache)
                repaired.result()
                return seen

            try:
                yield rehearse_beside
            except EvertrainError:
                if repaired is None:
                    with suppress(OutsideError):  # the refusal is what has to be said
                        self.repair()
                raise
