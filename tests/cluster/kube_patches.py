"""Patches of the Kubernetes double: merge, JSON patch; a strategic one merges lists by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.cluster.kube_errors import KubeError
from tests.cluster.kube_store import Content


def merged(old: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            new.pop(name, None)
        else:
            new[name] = merged(new.get(name), value)
    return new


def json_patched(old: Content, operations: list[Content]) -> Content:
    """RFC 6902, of which clients use add, replace, remove and test."""
    for each in operations:
        *way, last = [
            part.replace("~1", "/").replace("~0", "~") for part in each["path"].split("/")[1:]
        ]
        place: Any = old
        try:
            for part in way:
                place = place[int(part)] if isinstance(place, list) else place[part]
            at: Any = last if isinstance(place, dict) else (
                len(place) if last == "-" else int(last))  # fmt: skip
            if each["op"] == "add" and isinstance(place, list):
                place.insert(at, each["value"])
            elif each["op"] == "add":
                place[at] = each["value"]
            elif each["op"] == "replace":
                place[at] = (place[at], each["value"])[1]
            elif each["op"] == "remove":
                del place[at]
            elif each["op"] == "test" and place[at] != each["value"]:
                raise KubeError(422, "Invalid", "the server rejected our request: testing failed")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise KubeError(
                422, "Invalid", f"the server rejected our request due to an error in our request: "
                f"{each['op']} {each['path']}: {error}",
            ) from None  # fmt: skip
    return old


def strategically_merged(old: Any, patch: Any) -> Any:
    """As `merged`, but lists of things with a name are joined by it."""
    if isinstance(patch, list) and isinstance(old, list) and _named(old) and _named(patch):
        new = {each["name"]: each for each in old}
        for each in patch:
            new[each["name"]] = strategically_merged(new.get(each["name"]), each)
        return list(new.values())
    if not isinstance(patch, dict):
        return patch
    joined = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            joined.pop(name, None)
        else:
            joined[name] = strategically_merged(joined.get(name), value)
    return joined


def _named(things: list[Any]) -> bool:
    return all(isinstance(each, dict) and "name" in each for each in things)


STRATEGIC = "application/strategic-merge-patch+json"
PATCHES: dict[str, Callable[[Any, Any], Any]] = {
    "application/json-patch+json": json_patched,
    "application/merge-patch+json": merged,
    STRATEGIC: strategically_merged,
}
