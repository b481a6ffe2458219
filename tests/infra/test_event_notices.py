"""What S3 writes into queues, as its guide and SNS' and EventBridge's have it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from infra.events.notices import Notice, is_news, notices_of
from infra.events.sqs import SqsEvents

AT = datetime(2026, 11, 22, 12, 30, 1, 250_000, tzinfo=UTC)


def record(key: str = "in/day+1%2B2.parquet", **changes: Any) -> dict[str, Any]:
    """One of the records of a message of S3, version 2.1."""
    return {
        "eventVersion": "2.1", "eventSource": "aws:s3", "awsRegion": "eu-west-1",
        "eventTime": "2026-11-22T12:30:01.250Z", "eventName": "ObjectCreated:Put",
        "userIdentity": {"principalId": "AWS:AIDAEXAMPLE"},
        "requestParameters": {"sourceIPAddress": "192.0.2.1"},
        "responseElements": {"x-amz-request-id": "C3D13FE58DE4C810"},
        "s3": {
            "s3SchemaVersion": "1.0", "configurationId": "evertrain",
            "bucket": {"name": "data", "ownerIdentity": {"principalId": "A3NL1KOZZKExample"},
                       "arn": "arn:aws:s3:::data"},
            "object": {"key": key, "size": 1024, "eTag": "d41d8cd98f00b204e9800998ecf8427e",
                       "versionId": "096fKKXTRTtl3on89fVO", "sequencer": "0055AED6DCD90281E5"},
        },
    } | changes  # fmt: skip


def message(*records: dict[str, Any]) -> str:
    return json.dumps({"Records": list(records)})


def by_event_bridge(**changes: Any) -> str:
    detail = {
        "version": "0", "bucket": {"name": "data"},
        "object": {"key": "in/day 1+2.parquet", "size": 5, "etag": "b1946ac92492d234",
                   "sequencer": "617f08299329d189"},
        "request-id": "N4N7GDK58NMKJ12R", "requester": "123456789012", "reason": "PutObject",
    }  # fmt: skip
    return json.dumps(
        {
            "version": "0", "id": "17793124", "detail-type": "Object Created", "source": "aws.s3",
            "account": "111122223333", "time": "2026-11-22T12:30:01Z", "region": "eu-west-1",
            "resources": ["arn:aws:s3:::data"], "detail": detail,
        } | changes
    )  # fmt: skip


def by_sns(body: str) -> str:
    return json.dumps(
        {
            "Type": "Notification", "MessageId": "22b80b92", "TopicArn": "arn:aws:sns:1:1:t",
            "Subject": "Amazon S3 Notification", "Message": body, "Timestamp": "2026-11-22",
            "SignatureVersion": "1", "Signature": "…", "UnsubscribeURL": "https://…",
        }
    )  # fmt: skip


def test_keys_are_decoded_as_s3_encodes_them() -> None:
    (found,) = notices_of(message(record()))
    assert found == Notice(
        bucket="data", key="in/day 1+2.parquet", written="in/day+1%2B2.parquet", came=True,
        sequencer="0055AED6DCD90281E5", tag="d41d8cd98f00b204e9800998ecf8427e", at=AT.timestamp(),
    )  # fmt: skip
    (odd,) = notices_of(message(record("in/%C3%BC%F0%9F%98%80%25.parquet")))
    assert odd.key == "in/ü😀%.parquet"


def test_keys_of_event_bridge_are_as_they_are() -> None:
    (found,) = notices_of(by_event_bridge())
    assert (found.bucket, found.key, found.came) == ("data", "in/day 1+2.parquet", True)
    assert found.at == AT.timestamp() - 0.25


@pytest.mark.parametrize("body", [message(record()), by_event_bridge()])
def test_what_came_through_sns_is_the_same(body: str) -> None:
    assert notices_of(by_sns(body)) == notices_of(body)


def test_a_message_may_tell_of_several_objects_or_be_only_a_test() -> None:
    found = notices_of(message(record("a"), record("b"), record("c")))
    assert [notice.key for notice in found] == ["a", "b", "c"]
    test = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "data"}
    assert notices_of(json.dumps(test)) == []
    assert notices_of(by_sns(json.dumps(test))) == []


@pytest.mark.parametrize(
    ("name", "came"),
    [
        ("ObjectCreated:Put", True), ("ObjectCreated:CompleteMultipartUpload", True),
        ("s3:ObjectCreated:Copy", True), ("ObjectRemoved:Delete", False),
        ("ObjectRemoved:DeleteMarkerCreated", False), ("ObjectRestore:Completed", False),
        ("ObjectTagging:Put", False), ("LifecycleExpiration:Delete", False),
    ],
)  # fmt: skip
def test_only_what_makes_an_object_has_come(name: str, came: bool) -> None:
    assert notices_of(message(record(eventName=name)))[0].came is came
    if name == "ObjectRemoved:Delete":
        deleted = by_event_bridge(**{"detail-type": "Object Deleted"})
        assert notices_of(deleted)[0].came is False


@pytest.mark.parametrize(
    "body", ["", "no JSON", "7", "null", "[]", "{}", '{"Records": 7}', '{"Records": [{"s3": 1}]}',
             '{"Type": "Notification", "Message": "no JSON"}', "[" * 100_000,
             '{"source": "aws.s3", "detail": {}}'],
)  # fmt: skip
def test_what_is_none_of_these_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match="no message of S3"):
        notices_of(body)


def notice(sequencer: str, tag: str = "one") -> Notice:
    return Notice("data", "k", "k", True, sequencer, tag, 0.0)


def test_sequencers_are_compared_as_s3_says() -> None:
    """As texts, the shorter one filled up with zeros on the right."""
    old, new = notice("0055AED6DCD90281E5"), notice("0055aed6dcd90281e6")
    assert is_news(new, old)
    assert not is_news(old, new)
    assert not is_news(old, old), "delivered twice"
    assert not is_news(notice("0055AED6DCD90281E500"), old), "the same, written longer"
    assert is_news(notice("0055AED6DCD90281E501"), old)
    assert is_news(notice("1"), notice("0FFF"))
    for unknown in (notice(""), None):
        assert is_news(old, unknown)
    assert is_news(notice("0", "two"), notice("0")), "a server that gives all the same"


class Queue:
    """boto3's client of a queue that gives what it is told to, and remembers what is deleted."""

    def __init__(self, *batches: list[str]) -> None:
        self.batches = [
            [{"ReceiptHandle": f"{n}-{m}", "Body": body} for m, body in enumerate(batch)]
            for n, batch in enumerate(batches)
        ]
        self.waits: list[int] = []
        self.deleted: list[str] = []

    def receive_message(self, **asked: Any) -> dict[str, Any]:
        self.waits.append(asked["WaitTimeSeconds"])
        return {"Messages": self.batches.pop(0)} if self.batches else {}

    def delete_message_batch(self, **asked: Any) -> None:
        assert len(asked["Entries"]) <= 10
        self.deleted += [entry["ReceiptHandle"] for entry in asked["Entries"]]


def events_of(queue: Queue) -> SqsEvents:
    return SqsEvents(
        "https://sqs.eu-west-1.amazonaws.com/1/q", chosen=lambda b, k: True, client=queue
    )


def test_full_batches_are_followed_by_more_without_waiting_and_all_is_deleted_when_confirmed() -> (
    None
):
    queue = Queue(
        *([message(record(f"{n}-{m}")) for m in range(10)] for n in range(2)),
        [message(record("x"))],
    )
    source = events_of(queue)
    assert len(source.wait(12.3)) == 21
    assert queue.waits == [13, 0, 0]
    assert queue.deleted == []
    source.confirm()
    assert len(queue.deleted) == 21
    source.confirm()
    assert len(queue.deleted) == 21


def test_an_older_notice_of_an_object_that_was_heard_of_is_no_event_but_is_deleted() -> None:
    def at(sequencer: str) -> str:
        body = record()
        body["s3"]["object"]["sequencer"] = sequencer
        return message(body)

    queue = Queue([at("05")], [at("05")], [at("05"), at("04")], [at("06")])
    source = events_of(queue)
    assert len(source.wait(0)) == 1
    assert len(source.wait(0)) == 1, "what was not confirmed counts again"
    source.confirm()
    assert source.wait(0) == []
    source.confirm()
    assert queue.deleted == ["1-0", "2-0", "2-1"]
    assert len(source.wait(0)) == 1
