"""Label and field selectors, as lists and watches take them."""

from __future__ import annotations

import re
from typing import Any

from tests.cluster.kube_errors import Kind, bad_request

_EVERYWHERE = {"metadata.name", "metadata.namespace"}
_FIELDS = {
    "pods": {"spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase"},
    "events": {
        "involvedObject.kind", "involvedObject.name", "involvedObject.namespace",
        "involvedObject.uid", "reason", "type", "reportingComponent",
    },
    "namespaces": {"status.phase"}, "secrets": {"type"}, "jobs": {"status.successful"},
}  # fmt: skip
_SET = re.compile(r"([\w./-]+)\s+(in|notin)\s*\(([^)]*)\)")


def labels_meet(labels: dict[str, str], selector: str) -> bool:
    return all(_label_meets(labels, each) for each in _split(selector))


def check_fields(kind: Kind, selector: str) -> None:
    """Refuse a field that the server keeps no index of."""
    for each in filter(None, selector.split(",")):
        name = re.split(r"!?==?", each, maxsplit=1)[0].strip()
        if name not in _EVERYWHERE | _FIELDS.get(kind.plural, set()):
            raise bad_request(
                f'Unable to find "{kind.api_version}, Resource={kind.plural}" that match label '
                f'selector "", field selector "{selector}": field label not supported: {name}'
            )


def fields_meet(content: dict[str, Any], selector: str) -> bool:
    for each in filter(None, selector.split(",")):
        name, sign, want = re.split(r"(!?==?)", each, maxsplit=1)
        have: Any = content
        for part in name.strip().split("."):
            have = have.get(part) if isinstance(have, dict) else None
        if (str(have or "") == want.strip()) != (not sign.startswith("!")):
            return False
    return True


def _split(selector: str) -> list[str]:
    return [part.strip() for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _label_meets(labels: dict[str, str], wish: str) -> bool:
    if found := _SET.fullmatch(wish):
        name, operator, values = found.groups()
        among = labels.get(name) in {each.strip() for each in values.split(",")}
        return among if operator == "in" else not among
    if "!=" in wish:
        name, value = (each.strip() for each in wish.split("!=", 1))
        return labels.get(name) != value
    if "=" in wish:
        name, value = (each.strip() for each in re.split("==?", wish, maxsplit=1))
        return labels.get(name) == value
    if wish.startswith("!"):
        return wish[1:].strip() not in labels
    if not re.fullmatch(r"[\w./-]+", wish):
        raise bad_request(f"unable to parse requirement: found '{wish}', expected: identifier")
    return wish in labels
