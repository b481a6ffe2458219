"""What S3 writes into a queue: itself, by way of SNS, or by way of EventBridge.

Sources: the S3 user guide, "Event message structure" (Records; `s3:TestEvent`, which comes once
when notifications are set up; keys URL-encoded, with `+` for a space; `sequencer`) and "EventBridge
event message structure" (`detail`; keys as they are); the SNS guide, "Message formats" (an S3
message as text in `Message`, unless the subscription delivers it raw).
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import unquote_plus


class Notice(NamedTuple):
    """One object of which a message tells.

    Attributes:
        key: Decoded, where S3 encodes it.
        written: The key as the message has it: some servers do not encode theirs.
        came: It is new or has another content; else it was deleted, restored, or tagged.
        sequencer: Orders the notices of one object (`is_news`); empty: not said.
        tag: The content's ETag; empty: not said.
        at: When, Unix time; 0: not said.
    """

    bucket: str
    key: str
    written: str
    came: bool
    sequencer: str
    tag: str
    at: float


def notices_of(body: str) -> list[Notice]:
    """Return what a message tells of; nothing, if it is only a test.

    Raises:
        ValueError: It is none of the messages that are known.
    """
    try:
        return _notices(json.loads(body))
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"no message of S3: {type(error).__name__} {error}") from error


def is_news(notice: Notice, before: Notice | None) -> bool:
    """Whether a notice tells of something that an earlier one of its object did not; if in doubt.

    Sequencers are hexadecimal numbers that are compared as texts, the shorter one filled up with
    zeros on the right (S3 user guide, "Event message structure"). Some servers give all the same.
    """
    if before is None or not notice.sequencer or not before.sequencer:
        return True
    width = max(len(notice.sequencer), len(before.sequencer))
    one, other = (n.sequencer.upper().ljust(width, "0") for n in (notice, before))
    return one > other or (one == other and notice.tag != before.tag)


def _notices(message: dict[str, Any]) -> list[Notice]:
    if message.get("Event") == "s3:TestEvent":
        return []
    if message.get("Type") == "Notification" and "Message" in message:
        return _notices(json.loads(message["Message"]))
    if message.get("source") == "aws.s3" and "detail" in message:
        return [_of_event_bridge(message)]
    return [_of_s3(record) for record in message["Records"]]


def _of_s3(record: dict[str, Any]) -> Notice:
    s3 = record["s3"]
    return Notice(
        bucket=str(s3["bucket"]["name"]),
        key=unquote_plus(str(s3["object"]["key"])),
        written=str(s3["object"]["key"]),
        came=str(record["eventName"]).removeprefix("s3:").startswith("ObjectCreated:"),
        sequencer=str(s3["object"].get("sequencer") or ""),
        tag=str(s3["object"].get("eTag") or ""),
        at=_moment(record.get("eventTime")),
    )


def _of_event_bridge(message: dict[str, Any]) -> Notice:
    detail = message["detail"]
    return Notice(
        bucket=str(detail["bucket"]["name"]),
        key=str(detail["object"]["key"]),
        written=str(detail["object"]["key"]),
        came=message["detail-type"] == "Object Created",
        sequencer=str(detail["object"].get("sequencer") or ""),
        tag=str(detail["object"].get("etag") or ""),
        at=_moment(message.get("time")),
    )


def _moment(text: Any) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
