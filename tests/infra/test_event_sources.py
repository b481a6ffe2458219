"""The contract of a source of events, as one suite that each kind passes, on real servers."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_plus

import pytest
from loopback import BUCKET, free_ports

from components.common.sources import open_source
from components.snapshot_data.partitions import Pattern
from infra.errors import OutsideError
from infra.events.polling import Polling
from infra.events.source import Event, EventSource
from infra.events.sqs import SqsEvents
from infra.store import ObjectStore, open_store
from pipelines.watch.places import WatchedPlace
from tests.infra.ministack import Ministack, ministack_running

VISIBILITY = 1  # seconds after which a message that nobody confirmed comes again
ODD = ["a b+c.parquet", "ü/é 100%.parquet", "x=1&y#z.parquet", "emoji 😀.parquet"]


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    with ministack_running(tmp_path_factory.mktemp("ministack")) as server:
        yield server


@pytest.fixture
def ministack_environment(ministack: Ministack, monkeypatch: pytest.MonkeyPatch) -> Ministack:
    for name, value in ministack.environment.items():
        monkeypatch.setenv(name, value)
    return ministack


@dataclass
class Case:
    """A source, and where its objects land."""

    store: ObjectStore
    events: EventSource
    again: Callable[[], EventSource]

    def put(self, key: str, content: bytes = b"x") -> None:
        self.store.put(key, content)

    def keys(self, *, seconds: float = 5) -> list[str]:
        """The keys of the next events, waited for."""
        return keys_of(self.wait(seconds=seconds), self.store.uri)

    def wait(self, *, seconds: float = 5) -> list[Event]:
        until = time.monotonic() + seconds
        while True:
            found = self.events.wait(min(1.0, seconds))
            if found or time.monotonic() >= until:
                return found

    def all_keys(self, count: int) -> list[str]:
        """The keys of so many events, each confirmed."""
        found: list[str] = []
        while len(found) < count and (keys := self.keys()):
            found += keys
            self.events.confirm()
        return sorted(found)


def keys_of(events: list[Event], uri: str) -> list[str]:
    return [event.key.removeprefix(f"{uri}/") for event in events]


@pytest.fixture(params=["folder", "bucket", "sqs"])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    pattern = Pattern("*.parquet")
    kind: str = request.param
    if kind in ("folder", "bucket"):
        uri = str(tmp_path / "data")
        if kind == "bucket":
            request.getfixturevalue("s3_environment")
            uri = f"s3://{BUCKET}/{uuid.uuid4().hex}"

        def polling() -> EventSource:
            places = [WatchedPlace(place, pattern) for place in open_source(uri).places]
            source = Polling(places, every=0.2)
            assert source.wait(0) == []
            return source

        return Case(open_store(uri), polling(), polling)
    request.getfixturevalue("ministack_environment")
    server: Ministack = request.getfixturevalue("ministack")
    bucket = f"data-{uuid.uuid4().hex}"
    return _by_queue(bucket, server.notified_bucket(bucket, visibility=VISIBILITY), pattern)


def _by_queue(bucket: str, url: str, pattern: Pattern) -> Case:
    places = [WatchedPlace(p, pattern) for p in open_source(f"s3://{bucket}/in").places]

    def source() -> EventSource:
        return SqsEvents(url, chosen=lambda b, k: any(place.has(b, k) for place in places))

    return Case(open_store(f"s3://{bucket}/in"), source(), source)


def _queue(server: Ministack, name: str) -> str:
    attributes = {"VisibilityTimeout": str(VISIBILITY)}
    queue = server.client("sqs").create_queue(QueueName=name, Attributes=attributes)
    server.allow(queue["QueueUrl"])
    return str(queue["QueueUrl"])


def _through_sns(server: Ministack, bucket: str) -> str:
    url = _queue(server, f"{bucket}-by-sns")
    sns = server.client("sns")
    topic = sns.create_topic(Name=bucket)["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=server.arn_of(url))
    rule = {"TopicArn": topic, "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}
    server.client("s3").put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"TopicConfigurations": [rule]}
    )
    return url


def _through_event_bridge(server: Ministack, bucket: str) -> str:
    url = _queue(server, f"{bucket}-by-eventbridge")
    events = server.client("events")
    pattern = {"source": ["aws.s3"], "detail": {"bucket": {"name": [bucket]}}}
    events.put_rule(Name=bucket, EventPattern=json.dumps(pattern))
    events.put_targets(Rule=bucket, Targets=[{"Id": "queue", "Arn": server.arn_of(url)}])
    server.client("s3").put_bucket_notification_configuration(
        Bucket=bucket, NotificationConfiguration={"EventBridgeConfiguration": {}}
    )
    return url


def test_an_object_that_comes_or_changes_is_an_event(case: Case) -> None:
    case.put("a.parquet")
    found = case.wait()
    assert keys_of(found, case.store.uri) == ["a.parquet"]
    assert found[0].at == 0 or abs(found[0].at - time.time()) < 60
    case.events.confirm()
    case.put("a.parquet", b"another content")
    assert case.keys() == ["a.parquet"]


def test_what_is_confirmed_comes_no_more(case: Case) -> None:
    case.put("a.parquet")
    assert case.keys() == ["a.parquet"]
    case.events.confirm()
    assert case.keys(seconds=VISIBILITY + 1.0) == []
    assert case.events.wait(0) == []


def test_what_is_not_confirmed_comes_again_to_this_source_and_to_another(case: Case) -> None:
    other = case.again()
    case.put("a.parquet")
    assert case.keys() == ["a.parquet"]
    assert case.keys(seconds=VISIBILITY + 3) == ["a.parquet"]
    until = time.monotonic() + VISIBILITY + 3
    while not (found := other.wait(1)):
        assert time.monotonic() < until
    assert keys_of(found, case.store.uri) == ["a.parquet"]


def test_what_is_no_data_and_what_is_deleted_are_no_events(case: Case) -> None:
    case.put("a.parquet")
    assert case.keys() == ["a.parquet"]
    case.events.confirm()
    case.put("_SUCCESS")
    case.put(".hidden.parquet")
    case.put("b.parquet.part")
    case.store.delete("a.parquet")
    assert case.keys(seconds=1.5) == []
    case.events.confirm()
    case.put("c.parquet")
    assert case.keys() == ["c.parquet"]


def test_many_objects_are_as_many_events_whatever_their_keys(case: Case) -> None:
    names = [*(f"{number:03}.parquet" for number in range(21)), *ODD]
    for name in names:
        case.put(name)
    # the server by which the queue is tested does not encode keys as S3 does
    found = [unquote_plus(key) for key in case.all_keys(len(names))]
    assert sorted(found) == sorted(unquote_plus(name) for name in names)


@pytest.mark.parametrize("way", [_through_sns, _through_event_bridge])
def test_messages_that_come_through_another_service_are_read(
    ministack_environment: Ministack, way: Callable[[Ministack, str], str]
) -> None:
    bucket = f"data-{uuid.uuid4().hex}"
    ministack_environment.notified_bucket(bucket)
    case = _by_queue(bucket, way(ministack_environment, bucket), Pattern("*.parquet"))
    case.put("_SUCCESS")
    case.put("a b.parquet")
    assert case.keys() == ["a b.parquet"]
    case.events.confirm()
    case.store.delete("a b.parquet")
    assert case.keys(seconds=1) == []


def test_a_look_that_does_not_wait_returns_at_once(case: Case) -> None:
    before = case.events.looks
    began = time.monotonic()
    assert case.events.wait(0) == []
    assert time.monotonic() - began < 5  # a long poll takes 20
    assert case.events.looks == before + 1


def test_a_queue_that_is_not_there_is_said_to_be(ministack_environment: Ministack) -> None:
    url = f"{ministack_environment.endpoint}/000000000000/nowhere"
    with pytest.raises(OutsideError, match="nowhere") as caught:
        SqsEvents(url, chosen=lambda bucket, key: True).wait(0)
    assert "watch.queue" in caught.value.hint


def test_a_server_that_nobody_reaches_is_an_outside_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    url = f"http://127.0.0.1:{free_ports(1)[0]}/0/queue"
    with pytest.raises(OutsideError, match="cannot read the queue") as caught:
        SqsEvents(url, chosen=lambda bucket, key: True).wait(0)
    assert "AWS_ENDPOINT_URL_SQS" in caught.value.hint
    with pytest.raises(OutsideError, match="no URL of a queue"):
        SqsEvents("my-queue", chosen=lambda bucket, key: True)


def test_a_message_that_nobody_can_read_is_worth_a_look_and_does_not_come_again(
    ministack_environment: Ministack,
) -> None:
    url = _queue(ministack_environment, f"q-{uuid.uuid4().hex}")
    sqs = ministack_environment.client("sqs")
    for body in ("no JSON", "[]", "{}", '{"Records": [{"s3": {}}]}', "null"):
        sqs.send_message(QueueUrl=url, MessageBody=body)
    source = SqsEvents(url, chosen=lambda bucket, key: True)
    assert source.wait(2) == [Event("", 0.0)] * 5
    assert source.unreadable == 5
    source.confirm()
    time.sleep(VISIBILITY + 0.5)
    assert source.wait(0) == []


def test_a_place_that_cannot_be_listed_is_an_outside_error_and_found_again(
    tmp_path: Path,
) -> None:
    places = open_source(str(tmp_path / "new")).places
    source = Polling([WatchedPlace(p, Pattern("*.parquet")) for p in places], every=0.0)
    assert source.wait(0) == []  # no folder yet: nothing is there
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "a.parquet").write_bytes(b"x")
    source.confirm()
    (tmp_path / "new" / "out").symlink_to("/etc")
    with pytest.raises(OutsideError, match="leads out of it"):
        source.wait(0)
    (tmp_path / "new" / "out").unlink()
    assert [event.key for event in source.wait(0)] == [f"{tmp_path}/new/a.parquet"]
