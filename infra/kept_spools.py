"""Spools in the object store: a pod's disk goes with the pod, and MLflow may be away until then.

    kept = KeptSpools(store, folder)
    kept.bring()          # what pods before this one have left: to be sent from here
    kept.keep(path)       # while MLflow is away
    kept.settle(path)     # at the end: what has been sent goes, what has not stays

A spool that is sent twice is heard once (`spool.py` says why), so nothing has to be locked.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from infra.errors import OutsideError
from infra.store import ObjectStore

_PREFIX = "spools/"


class KeptSpools:
    """Spools of all trainings that a store's trainings could not send.

    Nothing here raises: metrics never stop a training.

    Args:
        store: Where they are kept.
        folder: Of spools on this machine.
    """

    def __init__(self, store: ObjectStore, folder: Path) -> None:
        self._store, self._folder = store, folder
        self._brought: list[str] = []

    def bring(self) -> None:
        """Fetch what is not here."""
        with suppress(OutsideError, OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            for info in list(self._store.list(_PREFIX)):
                name = info.key.removeprefix(_PREFIX)
                if "/" not in name and not (self._folder / name).exists():
                    self._store.get_file(info.key, self._folder / name)
                self._brought.append(name)

    def keep(self, path: Path) -> None:
        """Keep a spool as it is now."""
        with suppress(OutsideError, OSError):
            self._store.put_file(_PREFIX + path.name, path)
            self._brought.append(path.name)

    def settle(self, path: Path) -> None:
        """Keep this one if it has not been sent, and remove those that have been sent."""
        if path.exists():
            self.keep(path)
        for name in set(self._brought):
            if not (self._folder / name).exists():
                with suppress(OutsideError):
                    self._store.delete(_PREFIX + name)
