"""An alert as JSON, signed: whoever receives it can tell that it is ours, and that it is new.

    Evertrain-Timestamp: 1791072000
    Evertrain-Signature: v1=<hex of HMAC-SHA256(secret, timestamp + "." + body)>
    Idempotency-Key: <run id>

The timestamp is inside the signature, so an old request cannot be sent again as a new one; an
attempt that is repeated is signed anew and has the same key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time

from infra.alerts.alert import Alert
from infra.alerts.post import post


class WebhookChannel:
    """Posts to one URL.

    Args:
        name: What the operator calls it.
        url: http or https; may be a secret.
        secret: Known to the receiver too.
        timeout: Seconds of an attempt.
    """

    def __init__(self, *, name: str, url: str, secret: str, timeout: float) -> None:
        self.name = name
        self._url, self._secret, self._timeout = url, secret, timeout

    def send(self, alert: Alert) -> None:
        body = json.dumps(alert.as_data(), ensure_ascii=False, allow_nan=False).encode()
        instant = int(time.time())
        headers = {
            "Evertrain-Timestamp": str(instant),
            "Evertrain-Signature": signature(self._secret, instant, body),
            "Idempotency-Key": alert.run,
            "User-Agent": "evertrain",
        }
        post(self._url, body, headers=headers, timeout=self._timeout)


def signature(secret: str, instant: int, body: bytes) -> str:
    """Sign a body as of an instant (Unix seconds)."""
    signed = f"{instant}.".encode() + body
    return (
        "v1="
        + hmac.new(secret.encode(errors="surrogateescape"), signed, hashlib.sha256).hexdigest()
    )
