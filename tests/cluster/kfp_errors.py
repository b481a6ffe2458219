"""Errors as the KFP API server gives them: google.rpc.Status, by grpc-gateway's rules.

Codes: google.golang.org/grpc/codes. What the codes become over HTTP: grpc-gateway's
`HTTPStatusFromCode`. Texts: `backend/src/common/util/error.go` of kubeflow/pipelines.
"""

from __future__ import annotations

from typing import Any

from tests.cluster.http_double import Reply

INVALID, NOT_FOUND, EXISTS, DENIED = 3, 5, 6, 7
ABORTED, UNIMPLEMENTED, INTERNAL, UNAVAILABLE, UNAUTHENTICATED = 10, 12, 13, 14, 16
HTTP = {
    1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429,
    9: 400, 10: 409, 11: 400, 12: 501, 13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip
_CODE = {400: 3, 401: 16, 403: 7, 404: 5, 409: 10, 429: 8, 500: 13, 501: 12, 503: 14, 504: 4}
_PREFIX = {
    INVALID: "Invalid input error: ", NOT_FOUND: "ResourceNotFoundError: ",
    EXISTS: "Already exist error: ", ABORTED: "BadRequestError: ",
    INTERNAL: "InternalServerError: ", DENIED: "PermissionDenied: ",
    UNAUTHENTICATED: "Unauthenticated: ", UNIMPLEMENTED: "", UNAVAILABLE: "",
}  # fmt: skip


class KfpError(Exception):
    """A refusal.

    Args:
        code: Of gRPC.
        said: What the client is told in `details`.
        within: What was being done, outermost first; `message` puts these before.
        hidden: Stands in `message` instead of `said` (an internal error says no more outside).
    """

    def __init__(self, code: int, said: str, *within: str, hidden: str = "") -> None:
        super().__init__(said)
        self.code, self.said = code, said
        self.message = ": ".join([*within, _PREFIX.get(code, "") + (hidden or said)])

    def within(self, *what: str) -> KfpError:
        """The same, met while doing `what`."""
        self.message = ": ".join([*what, self.message])
        return self

    def status(self) -> dict[str, Any]:
        detail = {
            "@type": "type.googleapis.com/google.rpc.Status",
            "code": self.code,
            "message": self.said,
        }
        return {"code": self.code, "message": self.message, "details": [detail]}

    def reply(self) -> Reply:
        return Reply.of(self.status(), status=HTTP[self.code])


def not_found(kind: str, name: str) -> KfpError:
    return KfpError(NOT_FOUND, f"{kind} {name} not found.")


def internal(hidden: str) -> KfpError:
    return KfpError(INTERNAL, "Internal Server Error", hidden=hidden)


def by_status(status: int) -> Reply:
    """What a fault of the script says."""
    code = _CODE.get(status, 2)
    content = {"code": code, "message": "by the script of the test", "details": []}
    return Reply.of(content, status=status)


def upload_error(status: int, text: str) -> Reply:
    """The upload endpoints are no gRPC: their errors have a form of their own."""
    return Reply.of({"error_message": text, "error_details": text}, status=status)
