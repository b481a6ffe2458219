"""What only a store in a bucket must do: faults of servers and networks."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from loopback import BUCKET, S3Server, free_ports

from infra.errors import ObjectMissing, OutsideError
from infra.s3 import S3Store


def test_an_endpoint_that_nobody_listens_on_is_said_quickly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endpoint = f"http://127.0.0.1:{free_ports(1)[0]}"
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "someone")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "something")
    store = S3Store(bucket=BUCKET)
    started = time.monotonic()
    with pytest.raises(OutsideError) as caught:
        store.get("a")
    assert time.monotonic() - started < 20
    assert endpoint in caught.value.what
    assert "AWS_ENDPOINT_URL_S3" in caught.value.hint


def test_wrong_credentials_are_said_to_be_wrong(
    s3_environment: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-the-secret")
    (tmp_path / "source").write_bytes(b"x")
    store = S3Store(bucket=BUCKET)
    calls: list[Any] = [lambda: store.get("a"), lambda: store.info("a"), lambda: list(store.list())]
    calls += [lambda: store.create("a", b""), lambda: store.put_file("a", tmp_path / "source")]
    calls += [lambda: store.get_file("a", tmp_path / "target")]
    for call in calls:
        with pytest.raises(OutsideError, match="access refused") as caught:
            call()
        assert not isinstance(caught.value, ObjectMissing)
        assert "AWS_SECRET_ACCESS_KEY" in caught.value.hint


def test_a_missing_bucket_is_not_taken_for_a_missing_object(
    s3_environment: S3Server, tmp_path: Path
) -> None:
    store = S3Store(bucket="no-such-bucket", prefix="p")
    calls: list[Any] = [lambda: store.get("a"), lambda: store.info("a")]
    calls += [lambda: store.get_file("a", tmp_path / "target"), lambda: store.put("a", b"")]
    for call in calls:
        with pytest.raises(OutsideError, match="there is no bucket 'no-such-bucket'") as caught:
            call()
        assert not isinstance(caught.value, ObjectMissing)


@pytest.mark.parametrize("rival", [False, True])
def test_a_create_whose_reply_was_lost_still_knows_whose_the_object_is(
    s3_environment: S3Server, rival: bool
) -> None:
    """The connection breaks after the server has written; the repetition finds the key taken."""
    from botocore.exceptions import ConnectionClosedError

    store = S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex)
    other = S3Store(bucket=BUCKET, prefix=store.prefix)
    replies: list[int] = []

    def lose(http_response: Any = None, **_: Any) -> None:
        replies.append(http_response.status_code)
        if len(replies) == 1:
            raise ConnectionClosedError(endpoint_url="lost")

    send = store._client._endpoint.http_session.send

    def lossy(request: Any) -> Any:
        if rival and not replies:
            assert other.create("a", b"same") is True
        response = send(request)
        lose(http_response=response)
        return response

    store._client._endpoint.http_session.send = lossy
    assert store.create("a", b"same") is not rival
    assert replies[:2] == ([412, 412] if rival else [200, 412])


def test_a_replace_whose_reply_was_lost_still_knows_that_it_wrote(
    s3_environment: S3Server,
) -> None:
    from botocore.exceptions import ConnectionClosedError

    store = S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex)
    store.put("a", b"first")
    seen, replies = store.read("a").version, []
    send = store._client._endpoint.http_session.send

    def lossy(request: Any) -> Any:
        response = send(request)
        replies.append(response.status_code)
        if len(replies) == 1:
            raise ConnectionClosedError(endpoint_url="lost")
        return response

    store._client._endpoint.http_session.send = lossy
    assert store.replace("a", b"second", version=seen) == store.read("a").version
    assert replies[:2] == [200, 412]
    assert store.get("a") == b"second"


class _AsAws:
    """A client that says that it speaks with AWS, which lists in key order."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.meta = type("Meta", (), {"endpoint_url": "https://s3.eu-west-1.amazonaws.com"})

    def get_paginator(self, name: str) -> Any:
        return self._client.get_paginator(name)


def test_on_aws_a_listing_after_a_key_does_not_ask_for_those_before_it(
    s3_environment: S3Server,
) -> None:
    plain = S3Store(bucket=BUCKET, prefix=uuid.uuid4().hex)
    names = [f"2025-01/{number:04}" for number in range(12)] + ["2025-02/0000", "2025-03/0000"]
    for name in names:
        plain.put(name, b"x")
    client = _AsAws(plain._client)
    store = S3Store(bucket=BUCKET, prefix=plain.prefix, client=client)
    served: list[int] = []
    plain._client.meta.events.register(
        "after-call.s3.ListObjectsV2", lambda parsed, **_: served.append(parsed["KeyCount"])
    )
    assert [info.key for info in store.list(after="2025-01/0010")] == names[11:]
    assert served == [3]
    assert [info.key for info in store.list("2025-0", after="2025-01/zzz")] == names[12:]
    assert [info.key for info in store.list()] == names
    assert served == [3, 2, 14]
