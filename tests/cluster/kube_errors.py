"""Errors as the Kubernetes API server gives them: a `Status` with its reason and words.

Texts: `k8s.io/apimachinery/pkg/api/errors` and the field errors of `util/validation/field`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.cluster.http_double import Reply


@dataclass(frozen=True)
class Kind:
    """A resource that the API knows."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class KubeError(Exception):
    def __init__(
        self, code: int, reason: str, message: str, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.status = {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, **({"details": details} if details else {}),
            "code": code,
        }  # fmt: skip

    def reply(self) -> Reply:
        return Reply.of(self.status, status=int(str(self.status["code"])))


@dataclass(frozen=True)
class Wrong:
    """One field that is refused."""

    field: str
    reason: str  # FieldValueRequired, FieldValueInvalid, FieldValueNotSupported, …
    detail: str
    value: Any = None

    @property
    def message(self) -> str:
        if self.reason == "FieldValueRequired":
            return f"Required value{': ' + self.detail if self.detail else ''}"
        if self.reason == "FieldValueForbidden":
            return f"Forbidden: {self.detail}"
        shown = json.dumps(self.value, separators=(",", ":"))
        return f"Invalid value: {shown}: {self.detail}"


def not_found(kind: Kind, name: str) -> KubeError:
    return KubeError(
        404, "NotFound", f'{kind.resource} "{name}" not found', _about(kind, name)
    )  # fmt: skip


def already_exists(kind: Kind, name: str) -> KubeError:
    return KubeError(
        409, "AlreadyExists", f'{kind.resource} "{name}" already exists', _about(kind, name)
    )


def conflict(kind: Kind, name: str) -> KubeError:
    return KubeError(
        409, "Conflict",
        f'Operation cannot be fulfilled on {kind.resource} "{name}": the object has been '
        "modified; please apply your changes to the latest version and try again",
        _about(kind, name),
    )  # fmt: skip


def invalid(kind: Kind, name: str, wrong: list[Wrong]) -> KubeError:
    said = [f"{each.field}: {each.message}" for each in wrong]
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = [
        {"reason": each.reason, "message": each.message, "field": each.field} for each in wrong
    ]
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}
    return KubeError(
        422, "Invalid", f'{kind.qualified} "{name}" is invalid: {text}', details
    )  # fmt: skip


def denied_by_webhook(webhook: str, wrong: list[Wrong]) -> KubeError:
    """What a validating webhook refuses comes as Forbidden."""
    said = [f"{each.field}: {each.message}" for each in wrong]
    text = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    return KubeError(403, "Forbidden", f'admission webhook "{webhook}" denied the request: {text}')


def forbidden(kind: Kind, name: str, why: str) -> KubeError:
    named = f'{kind.resource} "{name}"' if name else kind.resource
    return KubeError(403, "Forbidden", f"{named} is forbidden: {why}", _about(kind, name))


def unauthorized() -> KubeError:
    return KubeError(401, "Unauthorized", "Unauthorized")


def bad_request(message: str) -> KubeError:
    return KubeError(400, "BadRequest", message)


def expired(since: str, oldest: int) -> KubeError:
    return KubeError(410, "Expired", f"too old resource version: {since} ({oldest})")


def by_status(status: int) -> Reply:
    """What a fault of the script says."""
    reasons = {
        400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound",
        409: "Conflict", 410: "Expired", 422: "Invalid", 429: "TooManyRequests",
        500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
    }  # fmt: skip
    return KubeError(status, reasons.get(status, ""), "by the script of the test").reply()


def truth(told: str | None) -> bool:
    """A flag of a query, as Go reads it: Python's clients write `True`."""
    return told in ("1", "t", "T", "true", "True", "TRUE")


def _about(kind: Kind, name: str) -> dict[str, Any]:
    found = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in found.items() if value}
