"""Events, as `kubectl describe` shows them: who tells what of which object."""

from __future__ import annotations

from tests.cluster.kube_store import EVENTS, Content, Store, now, suffix


def tell(
    store: Store, about: Content, reason: str, message: str, *, by: str, warning: bool = False
) -> None:
    """Record an event of an object; the same one again is counted."""
    meta = about["metadata"]
    involved = {
        "kind": about["kind"], "apiVersion": about["apiVersion"], "name": meta["name"],
        "namespace": meta.get("namespace", ""), "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }  # fmt: skip
    namespace = meta.get("namespace", "default")
    for each in store.list(EVENTS, namespace, fields=f"involvedObject.uid={meta['uid']}"):
        if (each["reason"], each["message"]) == (reason, message):

            def again(event: Content) -> None:
                event["count"] += 1
                event["lastTimestamp"] = now()

            store.change(EVENTS, namespace, each["metadata"]["name"], again)
            return
    store.create(
        EVENTS,
        {
            "metadata": {
                "name": f"{meta['name']}.{suffix(16)}", "namespace": namespace,
            },
            "involvedObject": involved, "reason": reason, "message": message,
            "type": "Warning" if warning else "Normal", "count": 1, "firstTimestamp": now(),
            "lastTimestamp": now(), "source": {"component": by}, "reportingComponent": by,
            "reportingInstance": "", "eventTime": None,
        },
    )  # fmt: skip
