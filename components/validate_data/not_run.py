"""Which checks were not made, and why: where nothing was looked for, nothing was found."""

from __future__ import annotations

from collections.abc import Sequence

from components.common.data_figures import LabelKind, NotRun, Why
from components.common.data_settings import USUAL_LEVELS, CheckName
from components.common.settings import ProjectSettings

CHANGE: tuple[CheckName, ...] = (
    "drift", "new_category", "label_shift", "label_relation", "joint_shift",
)  # fmt: skip
TRUST: tuple[CheckName, ...] = (
    "missing_column", "constant_column", "leak", "id_feature", "future_rows", "near_duplicates",
    "label_noise",
)  # fmt: skip
_YES_OR_NO: tuple[CheckName, ...] = ("label_relation", "label_noise")
# What is measured by the rate of yes, or by ranking labels, where a label is neither.
NOT_OF_KIND: dict[LabelKind, tuple[CheckName, ...]] = {
    "binary": (),
    "multiclass": _YES_OR_NO,
    "multilabel": _YES_OR_NO,
    "regression": _YES_OR_NO,
    "sequence": (*_YES_OR_NO, "leak"),
}


def not_run(
    settings: ProjectSettings,
    *,
    rows: bool,
    readable: bool,
    fits: bool,
    known: bool,
    compared: bool,
    kind: LabelKind,
) -> list[NotRun]:
    """Return the checks that were not made, each once, with the first reason that holds.

    Args:
        settings: The levels, and whether rows have a time.
        rows: Whether any row was let through.
        readable: Whether the data has the row's key.
        fits: Whether the suite let them pass.
        known: Whether there is a reference.
        compared: Whether there are new rows since one.
        kind: Of the label.
    """
    off = [check for check in USUAL_LEVELS if settings.validation.level(check) == "off"]
    reasons: list[tuple[Why, bool, Sequence[CheckName]]] = [
        ("off", True, off),
        ("kind", True, NOT_OF_KIND[kind]),
        ("no_rows", not rows, (*CHANGE, *TRUST)),
        ("refused", not fits, TRUST),
        ("no_key", not readable, (*CHANGE, *TRUST)),
        ("no_time", settings.data.time_column is None, ("future_rows",)),
        ("no_reference", not known, CHANGE),
        ("no_new_rows", not compared, CHANGE),
    ]
    said: set[CheckName] = set()
    found = []
    for why, holds, checks in reasons:
        left = [check for check in checks if holds and check not in said]
        said.update(left)
        if left:
            found.append(NotRun(checks=left, why=why))
    return found
