"""Watches of the Kubernetes double: the log of writes, as a client with selectors sees it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.cluster.kube_errors import Kind, expired
from tests.cluster.kube_selectors import fields_meet, labels_meet
from tests.cluster.kube_store import Change, Content, Store


@dataclass(frozen=True)
class Target:
    """What a path names."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def watched(
    store: Store, target: Target, query: dict[str, str], *, closing: Callable[[float], bool]
) -> Iterator[bytes]:
    """The lines of a watch, from `resourceVersion` on, or from all there is now."""
    since = query.get("resourceVersion") or "0"
    seen = int(since)
    end = time.monotonic() + float(query.get("timeoutSeconds") or 3600)
    with store.lock:
        oldest = store.log[0].version if store.log else store.version + 1
        if seen and seen + 1 < oldest and seen < store.version:
            yield _line("ERROR", expired(since, oldest).status)
            return
        if not seen:
            seen = store.version
            present = store.list(
                target.kind, target.namespace, labels=query.get("labelSelector", ""),
                fields=query.get("fieldSelector", ""),
            )  # fmt: skip
        else:
            present = []
    yield from (_line("ADDED", each) for each in present)
    while time.monotonic() < end and not closing(0):
        with store.changed:
            news = [change for change in store.log if change.version > seen]
            if not news:
                store.changed.wait(0.2)
                continue
        seen = news[-1].version
        for change in news:
            if change.kind == target.kind:
                yield from _told(change, target, query)


def _told(change: Change, target: Target, query: dict[str, str]) -> Iterator[bytes]:
    """A change as a watch with selectors sees it: what leaves the selection was deleted."""

    def within(content: Content | None) -> bool:
        if content is None:
            return False
        meta = content["metadata"]
        return (
            meta.get("namespace", "") == (target.namespace or meta.get("namespace", ""))
            and labels_meet(meta.get("labels", {}), query.get("labelSelector", ""))
            and fields_meet(content, query.get("fieldSelector", ""))
        )

    after = within(change.content) and change.type != "DELETED"
    before = within(change.before)
    if after:
        yield _line("MODIFIED" if before else "ADDED", change.content)
    elif before:
        yield _line("DELETED", change.content)


def _line(form: str, content: Content) -> bytes:
    return json.dumps({"type": form, "object": content}).encode() + b"\n"
