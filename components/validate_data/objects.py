"""Objects that came with nothing in them."""

from __future__ import annotations

from collections.abc import Sequence

from components.common.data_figures import Finding
from components.common.data_settings import ValidationSettings
from components.common.formats import shown
from components.common.tables import LocalObject

_NAMED = 3  # as examples: the last by key, where partitions are dated the newest


def find_empty_objects(
    objects: Sequence[LocalObject], validation: ValidationSettings
) -> list[Finding]:
    """Objects without rows: no check of rows can miss what never came.

    A Parquet file of no row groups and a CSV file of one header are whole, and add nothing.
    """
    level = validation.level("empty_object")
    empty = [o.key for o in objects if not o.rows]
    if not empty or level == "off":
        return []
    named = ", ".join(shown(key) for key in empty[-_NAMED:])
    if len(empty) > _NAMED:
        named = f"among them {named}"
    has = "has" if len(empty) == 1 else "have"
    finding = Finding(
        check="empty_object",
        column="",
        level=level,
        measured=float(len(empty)),
        limit=0.0,
        message=f"{len(empty)} of {len(objects)} objects {has} no rows: {named}",
        hint="ask the feed whether there was nothing to deliver; else have the object written "
        "again",
    )
    return [finding]
