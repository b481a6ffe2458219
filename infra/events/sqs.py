"""Events from an SQS queue that a bucket notifies, directly or through SNS or EventBridge.

    AWS_ENDPOINT_URL_SQS=http://127.0.0.1:4566 …     # another server than AWS

A message stays in the queue until what it says is safe (`confirm`), and comes again if that takes
longer than the queue's visibility timeout. A message that cannot be read is an event of an unknown
object: a look costs little, and the message does not come again and again.
"""

from __future__ import annotations

import math
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

from infra.errors import OutsideError
from infra.events.notices import Notice, is_news, notices_of
from infra.events.source import Event

LONGEST_WAIT = 20  # seconds, of one request; SQS has no longer one
_MOST = 1_000  # messages that are taken at once: a storm is confirmed in pieces
_BATCH = 10  # messages of one request; SQS has no larger one
_REMEMBERED = 10_000  # objects whose last notice is kept
_AWS = re.compile(
    r"^(sqs\.(?P<region>[a-z0-9-]+)|(?P<old>[a-z0-9-]+)\.queue)\.amazonaws\.com(\.cn)?$"
)


class SqsEvents:
    """A source of events in a queue.

    Args:
        url: Of the queue.
        chosen: Says of a bucket and a key in it whether that object matters.
        client: boto3's; None: one for the queue's region, or for the server in its URL.

    Attributes:
        unreadable: Messages that nobody could read, so far.
    """

    name = "sqs"

    def __init__(self, url: str, *, chosen: Callable[[str, str], bool], client: Any = None) -> None:
        self.about = url
        self.looks = 0
        self.unreadable = 0
        self._url = url
        self._chosen = chosen
        with self._faults("open"):
            self._client = client if client is not None else _connect(url)
        self._taken: list[str] = []  # receipts of what was returned last
        self._heard: list[Notice] = []
        self._last: OrderedDict[tuple[str, str], Notice] = OrderedDict()

    def wait(self, seconds: float) -> list[Event]:
        self._taken, self._heard = [], []
        events: list[Event] = []
        patience = min(LONGEST_WAIT, math.ceil(seconds))
        until = time.monotonic() + LONGEST_WAIT
        while len(self._taken) < _MOST and time.monotonic() < until:
            with self._faults("read"):
                messages = self._receive(patience)
            self.looks += 1
            for message in messages:
                self._taken.append(message["ReceiptHandle"])
                events += self._events(message.get("Body", ""))
            if len(messages) < _BATCH:
                break
            patience = 0
        return events

    def confirm(self) -> None:
        for start in range(0, len(self._taken), _BATCH):
            entries = [
                {"Id": str(number), "ReceiptHandle": receipt}
                for number, receipt in enumerate(self._taken[start : start + _BATCH])
            ]
            with self._faults("clear"):  # those that were not deleted come again: no harm
                self._client.delete_message_batch(QueueUrl=self._url, Entries=entries)
        for notice in self._heard:
            self._last[notice.bucket, notice.key] = notice
            self._last.move_to_end((notice.bucket, notice.key))
        while len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)
        self._taken, self._heard = [], []

    def _receive(self, patience: int) -> list[dict[str, Any]]:
        reply = self._client.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=_BATCH, WaitTimeSeconds=patience
        )
        return list(reply.get("Messages", []))

    def _events(self, body: str) -> list[Event]:
        try:
            notices = notices_of(body)
        except ValueError:
            self.unreadable += 1
            return [Event("", 0.0)]
        events = []
        for notice in notices:
            if not notice.came or not self._matters(notice):
                continue
            if not is_news(notice, self._last.get((notice.bucket, notice.key))):
                continue  # delivered twice, or overtaken by one that was heard of
            self._heard.append(notice)
            events.append(Event(f"s3://{notice.bucket}/{notice.key}", notice.at))
        return events

    def _matters(self, notice: Notice) -> bool:
        keys = dict.fromkeys((notice.key, notice.written))
        return any(self._chosen(notice.bucket, key) for key in keys)

    @contextmanager
    def _faults(self, doing: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        what = f"cannot {doing} the queue {self._url}"
        try:
            yield
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", ""))
            raise OutsideError(f"{what}: {code or error}", hint=_hint(code, self._url)) from error
        except BotoCoreError as error:
            raise OutsideError(
                f"{what}: {error}",
                hint="is it in reach? AWS_ENDPOINT_URL_SQS names another server than AWS",
            ) from error


def _hint(code: str, url: str) -> str:
    if "NonExistentQueue" in code or "QueueDoesNotExist" in code:
        return "watch.queue in evertrain.yaml: the URL, as aws sqs get-queue-url prints it"
    if any(word in code for word in ("Access", "Auth", "Token", "Signature", "Forbidden")):
        return (
            "the watcher needs sqs:ReceiveMessage and sqs:DeleteMessage on the queue, and "
            "credentials for the account that it is in"
        )
    return f"try: aws sqs get-queue-attributes --queue-url {url}"


def _connect(url: str) -> Any:
    import boto3.session
    from botocore.config import Config

    parts = urlparse(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not parts.path.strip("/"):
        raise OutsideError(
            f"{url!r} is no URL of a queue",
            hint="watch.queue in evertrain.yaml: the URL, as aws sqs get-queue-url prints it",
        )
    config = Config(
        connect_timeout=5,
        read_timeout=LONGEST_WAIT + 10,
        retries={"mode": "standard", "total_max_attempts": 3},
    )
    session = boto3.session.Session()
    aws = _AWS.match(parts.hostname)
    if aws:
        region = aws.group("region") or aws.group("old")
        return session.client("sqs", region_name=region, config=config)
    return session.client(
        "sqs",
        region_name=session.region_name or "us-east-1",  # other servers have none, and boto3 asks
        endpoint_url=f"{parts.scheme}://{parts.netloc}",
        config=config,
    )
