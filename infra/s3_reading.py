"""Objects of a bucket as they are listed and as they are brought here.

What is read is held against whatever the server says of it: the length, always; the checksum that
the object was stored with (boto3 computes it: CRC32, CRC32C, SHA-1, SHA-256); and the ETag where it
is the MD5 of the content. An object that was uploaded in parts, with no checksum over the whole,
has neither of the last two: there damage on the way that keeps the length is not noticed.
"""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from infra.errors import OutsideError
from infra.store import ObjectInfo

ATTEMPTS = 4
_PIECE_BYTES = 1024 * 1024


class _DamagedError(Exception):
    """A body is not what the server said that it is."""


def download(client: Any, place: dict[str, str], path: Path) -> str:
    """Write an object's content to a file and return its version's id, or "".

    A reply that breaks off, or whose content is not what the server says of it, is asked for again.

    Args:
        client: boto3's.
        place: Arguments of `get_object`.
        path: The file, overwritten.

    Raises:
        OutsideError: No reply out of four was whole and right.
        ClientError, BotoCoreError: As boto3 has them.
    """
    from botocore.exceptions import BotoCoreError

    for attempt in range(ATTEMPTS):
        try:
            reply = client.get_object(**place)
            _copy(reply, path, place["Bucket"])
        except BotoCoreError:  # the connection broke in the middle, or the checksum is wrong
            if attempt == ATTEMPTS - 1:
                raise
        except _DamagedError as error:
            if attempt == ATTEMPTS - 1:
                raise OutsideError(
                    f"s3://{place['Bucket']}/{place['Key']} arrived damaged {ATTEMPTS} times: "
                    f"{error}",
                    hint="something between here and the server damages data, or the object is "
                    "damaged on the server; write it again, or try from another machine",
                ) from error
        else:
            version_id = str(reply.get("VersionId", ""))
            return "" if version_id == "null" else version_id  # null can be overwritten
        time.sleep(random.uniform(0, 0.2 * 2**attempt))  # noqa: S311
    raise AssertionError("not reached")


def _copy(reply: dict[str, Any], path: Path, bucket: str) -> None:
    digest, length = hashlib.md5(usedforsecurity=False), 0
    with path.open("wb") as file:
        for piece in reply["Body"].iter_chunks(_PIECE_BYTES):
            digest.update(piece)
            length += len(piece)
            file.write(piece)
    if length != reply["ContentLength"]:
        raise _DamagedError(f"{length} bytes, not {reply['ContentLength']}")
    expected = _md5_of(reply, bucket)
    if expected and digest.hexdigest() != expected:
        raise _DamagedError(f"MD5 {digest.hexdigest()}, not {expected}")


def _md5_of(reply: dict[str, Any], bucket: str) -> str:
    """The content's MD5 where the ETag is that: not in parts, not under a customer's or KMS's key.

    Source: the S3 reference, "Object", ETag; directory buckets (`--x-s3`) have random ETags.
    """
    tag = etag(reply)
    encrypted = reply.get("ServerSideEncryption", "AES256") != "AES256"
    own_key = "SSECustomerAlgorithm" in reply
    is_md5 = re.fullmatch("[0-9a-f]{32}", tag) and not bucket.endswith("--x-s3")
    return tag if is_md5 and not encrypted and not own_key else ""


def listed(
    client: Any, bucket: str, root: str, prefix: str, *, after: str = ""
) -> Iterator[ObjectInfo]:
    """Yield the objects below `root` whose keys start with a prefix, in key order, after a key.

    AWS lists general purpose buckets in key order: a page is held at a time, and what is asked for
    begins after the key. Others need not (SeaweedFS puts `a/b` before `a-b`), so their listing is
    whole, and sorted here: some 250 bytes an object.
    """
    host = urlparse(str(client.meta.endpoint_url)).hostname or ""
    if host.endswith((".amazonaws.com", ".amazonaws.com.cn")) and not bucket.endswith("--x-s3"):
        start = {"StartAfter": root + after} if after else {}
        yield from _in_order(_entries(client, bucket, root, prefix, **start), bucket)
        return
    found = (i for i in _entries(client, bucket, root, prefix) if i.key > after)
    # one text an object takes a third of the memory of three fields; \0 sorts before all else
    lines = sorted(f"{info.key}\0{info.size}\0{info.version}" for info in found)
    for line in lines:
        key, size, version = line.split("\0")
        yield ObjectInfo(key, int(size), version)


def _entries(
    client: Any, bucket: str, root: str, prefix: str, **start: str
) -> Iterator[ObjectInfo]:
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=root + prefix, **start
    )
    for page in pages:
        for entry in page.get("Contents", ()):
            key = entry["Key"].removeprefix(root)
            if key and not key.endswith("/"):  # a console's mark for an empty folder
                yield ObjectInfo(key, entry["Size"], etag(entry))


def _in_order(found: Iterator[ObjectInfo], bucket: str) -> Iterator[ObjectInfo]:
    last = ""
    for info in found:
        if info.key <= last:
            raise OutsideError(f"s3://{bucket} lists {info.key!r} after {last!r}: not in key order")
        last = info.key
        yield info


def etag(reply: dict[str, Any]) -> str:
    return str(reply["ETag"]).strip('"')
