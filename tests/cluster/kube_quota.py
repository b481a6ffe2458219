"""Resource quotas: what `ResourceQuota` objects of a namespace refuse, in the server's words."""

from __future__ import annotations

from tests.cluster.kube_errors import Kind, KubeError, forbidden
from tests.cluster.kube_store import PODS, QUOTAS, Content, Store
from tests.cluster.kube_templates import quantity


def check_quota(store: Store, kind: Kind, content: Content) -> KubeError | None:
    """Why a new object does not fit; None if it does."""
    meta = content["metadata"]
    for quota in store.list(QUOTAS, meta["namespace"]):
        hard = (quota.get("spec") or {}).get("hard") or {}
        name = quota["metadata"]["name"]
        asked = _asked(kind, content)
        missing = [
            each
            for each in hard
            if kind == PODS and each.split(".")[0] in ("requests", "limits") and each not in asked
            and "/" not in each
        ]  # fmt: skip
        if missing:
            why = f"failed quota: {name}: must specify {','.join(sorted(missing))} for: node"
            return forbidden(kind, meta.get("name", ""), why)
        used = _used(store, kind, meta["namespace"])
        over = {
            each: asked[each]
            for each in hard
            if each in asked
            and _number(asked[each]) + _number(used.get(each, 0)) > quantity(hard[each])
        }
        if over:
            names = sorted(over)
            parts = (
                f"{word}: {','.join(f'{each}={_shown(amounts.get(each, 0))}' for each in names)}"
                for word, amounts in (("requested", over), ("used", used), ("limited", hard))
            )
            why = f"exceeded quota: {name}, {', '.join(parts)}"
            return forbidden(kind, meta.get("name", ""), why)
    return None


def _asked(kind: Kind, content: Content) -> Content:
    asked: Content = {f"count/{kind.resource}": 1}
    if kind != PODS:
        return asked
    asked |= {"pods": 1}
    for container in content["spec"]["containers"]:
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        for word, amounts in (("requests", {**limits, **(resources.get("requests") or {})}),
                              ("limits", limits)):  # fmt: skip
            for name, amount in amounts.items():
                key = f"{word}.{name}"
                asked[key] = _milli(_number(asked.get(key, 0)) + quantity(amount))
                if word == "requests" and name in ("cpu", "memory"):
                    asked[name] = asked[key]
    return asked


def _used(store: Store, kind: Kind, namespace: str) -> Content:
    used: Content = {}
    for each in store.list(kind, namespace):
        if kind == PODS and each["status"].get("phase") in ("Succeeded", "Failed"):
            continue
        for name, amount in _asked(kind, each).items():
            used[name] = _milli(_number(used.get(name, 0)) + _number(amount))
    return used


def _number(amount: object) -> int:
    return quantity(amount)


def _milli(thousandths: int) -> object:
    return thousandths // 1000 if thousandths % 1000 == 0 else f"{thousandths}m"


def _shown(amount: object) -> str:
    return str(amount)
