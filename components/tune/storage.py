"""Optuna's study on the project's object store: a journal that survives whoever writes it.

The only place where a study is opened. Optuna's own snapshots of a journal are pickles, and reading
one would run what it says: there are none here, a study is read from its entries each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import BaseJournalBackend

from infra.journal import Journal
from infra.store import ObjectStore


class ObjectJournal(BaseJournalBackend):
    """Optuna's journal as objects of a store."""

    def __init__(self, store: ObjectStore, prefix: str) -> None:
        self._journal = Journal(store, prefix)

    def read_logs(self, log_number_from: int) -> Iterable[dict[str, Any]]:
        """Return the entries from one on."""
        return self._journal.read(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Add entries, all or none."""
        self._journal.append(logs)


def open_study(
    store: ObjectStore, name: str, *, prefix: str, direction: str = "minimise"
) -> optuna.Study:
    """Return the study of this name, made if there is none.

    Args:
        store: The project's.
        name: Of the study.
        prefix: Of its journal.
        direction: `minimise` or `maximise`.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        storage=JournalStorage(ObjectJournal(store, prefix)),
        study_name=name,
        direction="maximize" if direction == "maximise" else "minimize",
        load_if_exists=True,
    )
