"""The object store in an S3 bucket: AWS, or any server that speaks S3.

    AWS_ENDPOINT_URL_S3=http://seaweedfs:8333 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… …

Endpoint, region and credentials come from boto3's own environment variables and files.
"""

from __future__ import annotations

import io
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from infra.errors import ObjectChanged, ObjectMissing, OutsideError, StoreFull
from infra.folder import placing
from infra.s3_reading import ATTEMPTS, download, etag, listed
from infra.store import ObjectInfo, Versioned, check_key, check_prefix

_MISSING = {"404", "NoSuchKey", "NoSuchVersion", "NotFound"}
_REFUSED = {"401", "403", "AccessDenied", "ExpiredToken", "Forbidden", "InvalidAccessKeyId"} | {
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
}
_FULL = {"507", "InsufficientStorage", "QuotaExceeded", "XMinioStorageFull"}  # Ceph, MinIO
_WRITER = "writer"
_MULTIPART_BYTES = 16 * 1024 * 1024


class S3Store:
    """Objects below a prefix of a bucket.

    `create` is a PUT with `If-None-Match: *`, `replace` one with `If-Match`. Each call marks what
    it writes with a token of its own in the object's metadata, so a call whose reply was lost, and
    whose repetition therefore finds the condition broken, still knows what it wrote, even if
    another writer sent the same bytes. The answer
    is about this call only: a process that died before it heard it must find a token of its own
    inside the content.

    Where the bucket keeps versions, `fetch` reads one of them, now and later. See `s3_reading` for
    what is checked of a body, and in which order servers list.
    """

    def __init__(self, *, bucket: str, prefix: str = "", client: Any = None) -> None:
        self.bucket = bucket
        self.prefix = prefix.strip("/")
        self.uri = f"s3://{bucket}/{self.prefix}".rstrip("/")
        self._root = f"{self.prefix}/" if self.prefix else ""
        self._bucket_seen = False
        self._endpoint = "an unknown endpoint"
        with self._faults("open", ""):
            if not bucket:
                raise OutsideError(f"{self.uri!r} names no bucket", hint="use s3://bucket/prefix")
            self._client = client if client is not None else _connect()
        self._endpoint = str(self._client.meta.endpoint_url)

    def put(self, key: str, data: bytes | memoryview) -> None:
        with self._faults("write", key):
            if len(data) < _MULTIPART_BYTES:
                self._client.put_object(**self._at(key), Body=bytes(data))
            else:
                self._upload(key, _Reader(data))

    def put_file(self, key: str, path: Path) -> None:
        with self._faults("write", key), path.open("rb") as file:
            self._upload(key, file)

    def create(self, key: str, data: bytes) -> bool:
        with self._faults("create", key):
            return self._put_if(key, data, IfNoneMatch="*") is not None

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        with self._faults("replace", key):
            return self._put_if(key, data, IfMatch=f'"{version}"')

    def get(self, key: str) -> bytes:
        return self._reply(key)[1]

    def read(self, key: str) -> Versioned:
        reply, data = self._reply(key)
        at = parsedate_to_datetime(reply["ResponseMetadata"]["HTTPHeaders"]["date"])
        age = (at - reply["LastModified"]).total_seconds()
        return Versioned(data, etag(reply), max(age, 0.0))

    def pieces(self, key: str) -> Iterator[bytes]:
        info = self.info(key)
        if info is None:
            raise ObjectMissing(f"there is no {key} in the object store {self.uri}")
        for start in range(0, info.size, _MULTIPART_BYTES):
            end = min(start + _MULTIPART_BYTES, info.size) - 1
            yield self._reply(key, Range=f"bytes={start}-{end}", IfMatch=f'"{info.version}"')[1]

    def get_file(self, key: str, path: Path) -> None:
        place = self._at(key)
        with self._faults("read", key), placing(path) as temporary:
            self._client.download_file(place["Bucket"], place["Key"], str(temporary))

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        which = {"VersionId": version_id} if version_id else {}
        if version and not version_id:
            which = {"IfMatch": f'"{version}"'}
        with self._faults("read", key), placing(path) as temporary:
            return download(self._client, {**self._at(key), **which}, temporary)

    def info(self, key: str) -> ObjectInfo | None:
        with self._faults("look at", key):
            head = self._head(key)
        return ObjectInfo(key, head["ContentLength"], etag(head)) if head else None

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix, self.uri)
        with self._faults("list", prefix):
            yield from listed(self._client, self.bucket, self._root, prefix, after=after)

    def delete(self, key: str) -> None:
        with self._faults("delete", key):
            self._client.delete_object(**self._at(key))

    def _put_if(self, key: str, data: bytes, **condition: str) -> str | None:
        """Write on a condition; return the version, or None where the condition does not hold."""
        from botocore.exceptions import ClientError

        writer = uuid.uuid4().hex
        for attempt in range(ATTEMPTS):
            try:
                reply = self._client.put_object(
                    **self._at(key), Body=data, Metadata={_WRITER: writer}, **condition
                )
                return etag(reply)
            except ClientError as error:
                status = _status(error)
                if status == 404 and "IfMatch" in condition:
                    self._require_bucket()
                    return None
                if status == 412:
                    return self._written_by(key, writer)
                if status != 409:  # ConditionalRequestConflict: another write is under way
                    raise
                conflict = error
                time.sleep(random.uniform(0, 0.2 * 2**attempt))  # noqa: S311
        if self.info(key) is None:
            raise conflict
        return self._written_by(key, writer)

    def _reply(self, key: str, **which: str) -> tuple[dict[str, Any], bytes]:
        from botocore.exceptions import BotoCoreError

        with self._faults("read", key):
            for attempt in range(ATTEMPTS):
                reply = self._client.get_object(**self._at(key), **which)
                try:
                    return reply, bytes(reply["Body"].read())
                except BotoCoreError:  # the connection broke in the middle: botocore leaves it
                    if attempt == ATTEMPTS - 1:
                        raise
        raise AssertionError("not reached")

    def _upload(self, key: str, file: Any) -> None:
        from boto3.s3.transfer import TransferConfig

        config = TransferConfig(
            multipart_threshold=_MULTIPART_BYTES,
            multipart_chunksize=_MULTIPART_BYTES,
            max_concurrency=4,
        )
        self._client.upload_fileobj(file, self.bucket, self._at(key)["Key"], Config=config)

    def _at(self, key: str) -> dict[str, str]:
        check_key(key, self.uri)
        return {"Bucket": self.bucket, "Key": self._root + key}

    def _head(self, key: str) -> dict[str, Any] | None:
        from botocore.exceptions import ClientError

        try:
            head: dict[str, Any] = self._client.head_object(**self._at(key))
        except ClientError as error:
            if _status(error) != 404:
                raise
            self._require_bucket()
            return None
        return head

    def _written_by(self, key: str, writer: str) -> str | None:
        """The version of what is there, if this writer wrote it."""
        head = self._head(key)
        return etag(head) if head and head["Metadata"].get(_WRITER) == writer else None

    def _require_bucket(self) -> None:
        """Tell a missing object from a missing bucket, which a HEAD reply does not."""
        if not self._bucket_seen:
            self._client.head_bucket(Bucket=self.bucket)
            self._bucket_seen = True

    @contextmanager
    def _faults(self, doing: str, key: str) -> Iterator[None]:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        what = f"cannot {doing} {key or 'it'} in the object store {self.uri} at {self._endpoint}"
        try:
            yield
        except ClientError as error:
            raise self._explain(error, what, key) from error
        except (BotoCoreError, Boto3Error) as error:
            raise OutsideError(
                f"{what}: {error}",
                hint="is the server up, and are AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL), "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY right? try: "
                f"aws s3 ls s3://{self.bucket}",
            ) from error
        except OSError as error:
            raise OutsideError(f"{what}: {error}") from error

    def _explain(self, error: Any, what: str, key: str) -> OutsideError:
        code = str(error.response.get("Error", {}).get("Code", ""))
        bucket_asked = error.operation_name == "HeadBucket" and _status(error) == 404
        if code == "NoSuchBucket" or bucket_asked:
            return OutsideError(
                f"{what}: there is no bucket {self.bucket!r}",
                hint=f"aws s3 mb s3://{self.bucket}, or another address in AWS_ENDPOINT_URL_S3",
            )
        if code in _MISSING:
            if error.operation_name == "HeadObject" and not self._bucket_seen:
                with self._faults("look at", key):
                    self._require_bucket()
            return ObjectMissing(f"there is no {key} in the object store {self.uri}")
        if error.operation_name == "GetObject" and _status(error) == 412:
            return ObjectChanged(f"{key} in the object store {self.uri} has changed")
        if code in _FULL or _status(error) == 507:
            return StoreFull(f"{what}: no space left ({error})", hint="free some space, run again")
        if code in _REFUSED or _status(error) in (401, 403):
            return OutsideError(
                f"{what}: access refused ({code})",
                hint="check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or AWS_PROFILE) for the "
                f"endpoint {self._endpoint}; without s3:ListBucket a missing key reads as refused",
            )
        return OutsideError(f"{what}: {error}", hint=f"check the server at {self._endpoint}")


class _Reader(io.RawIOBase):
    """A file over bytes that belong to somebody else: nothing is copied but what is read."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data).cast("B")
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: len(self._data)}
        self._position = max(0, base[whence] + offset)
        return self._position

    def readinto(self, target: Any, /) -> int:
        piece = self._data[self._position : self._position + len(target)]
        target[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)


def _connect() -> Any:
    import boto3.session
    from botocore.config import Config

    config = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=16,
    )
    # a session of its own: boto3's default session is not safe to create from many threads
    return boto3.session.Session().client("s3", config=config)


def _status(error: Any) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
