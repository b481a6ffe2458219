"""The object store: one small contract, kept by a folder and by S3.

    store = open_store("s3://bucket/prefix")      # or a folder: "/data/store", "file:///data/store"
    store.create("promotions/00000001.json", b"{}")   # True once, False ever after

Keys are relative, with `/` between parts, none of them empty, `.` or `..`; no key is another's
folder. Writes are atomic: a reader sees a whole object or none.
`tests/infra/test_store.py` is the contract as a conformance test that each implementation passes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlparse

from infra.errors import OutsideError


class ObjectInfo(NamedTuple):  # a listing makes millions: four times as fast as a frozen dataclass
    """What a listing says of an object.

    Attributes:
        key: Relative to the store's root.
        size: Bytes.
        version: Changes whenever the content does (S3: ETag; folder: mtime, size and inode), the
            same from `info` and `list`. It is not a content hash: a multipart ETag is none.
    """

    key: str
    size: int
    version: str


class Versioned(NamedTuple):
    """A small object as it was read.

    Attributes:
        data: Its content.
        version: What `replace` compares with; that of `info`.
        age: Seconds since it was written, by the store's own clock, to within a second: no clock
            of a reader takes part.
    """

    data: bytes
    version: str
    age: float


class ObjectStore(Protocol):
    """Objects by key.

    Every method raises `OutsideError` when the store cannot be reached, `ObjectMissing` when the
    key is not there, and `StoreFull` when there is no space left.
    """

    uri: str

    def put(self, key: str, data: bytes | memoryview) -> None:
        """Write an object, replacing what was there; large data is not copied as a whole."""

    def put_file(self, key: str, path: Path) -> None:
        """Write an object from a file, replacing what was there; memory stays bounded."""

    def create(self, key: str, data: bytes) -> bool:
        """Write an object only if none has this key; say whether this call wrote it.

        The answer is about this call. Whoever may die before hearing it, and must know afterwards
        whether an object is theirs, puts a token of their own into the content.
        """

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        """Write an object only if it still has this version (compare and swap).

        An object that is replaced so is never `put`. As with `create`, the answer is about this
        call, and whoever may die before hearing it puts a token of their own into the content. That
        also keeps two contents from being equal, which on S3 have one version.

        Returns:
            The new version; None if the object has another one, or is gone. A write whose reply was
            lost, and which somebody replaced before it could be asked again, is None too.
        """

    def get(self, key: str) -> bytes:
        """Return an object's content."""

    def read(self, key: str) -> Versioned:
        """Return an object's content with its version and age."""

    def pieces(self, key: str) -> Iterator[bytes]:
        """Yield an object's content piece by piece; memory stays bounded.

        If the object is replaced meanwhile, what is yielded is of one of the two, or it raises.
        """

    def get_file(self, key: str, path: Path) -> None:
        """Copy an object to a file, whole or not at all."""

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        """Copy one version of an object to a file, whole or not at all.

        Args:
            key: Of the object.
            path: The file.
            version: As `info` and `list` say it. Empty: whatever is there.
            version_id: What an earlier call returned: that very content is read, whatever was
                written since. Stores that keep no versions pay no heed to it.

        Returns:
            The id by which this content can be read again, "" where the store keeps no versions.

        Raises:
            ObjectChanged: The object has another version, or got it meanwhile.
        """

    def info(self, key: str) -> ObjectInfo | None:
        """Return what is known of an object, or None if there is none."""

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        """Yield every object whose key starts with the prefix, in key order.

        Args:
            prefix: Of the keys.
            after: Only keys that sort behind this text are yielded. A folder, and a bucket of AWS,
                look at little else: of a million objects the last ones cost no more than of few.
        """

    def delete(self, key: str) -> None:
        """Remove an object; removing what is not there is no error."""


def open_store(uri: str | os.PathLike[str]) -> ObjectStore:
    """Open the store at a URI: a folder's path, `file://…` or `s3://bucket/prefix`.

    Raises:
        OutsideError: The scheme is not known.
    """
    text = os.fspath(uri)
    parts = urlparse(text)
    if parts.scheme == "s3":
        from infra.s3 import S3Store

        return S3Store(bucket=parts.netloc, prefix=parts.path.strip("/"))
    if parts.scheme in ("", "file"):
        from infra.folder import FolderStore

        return FolderStore(Path(parts.path if parts.scheme else text))
    raise OutsideError(
        f"cannot open the object store {text!r}: the scheme {parts.scheme!r} is not known",
        hint="use a folder's path or s3://bucket/prefix",
    )


def check_key(key: str, uri: str) -> None:
    """Refuse a key that would mean different objects in different stores, or leave the store."""
    if any(part in ("", ".", "..") for part in key.split("/")) or "\0" in key:
        raise OutsideError(f"{key!r} is no key of the object store {uri}")


def check_prefix(prefix: str, uri: str) -> None:
    """Refuse a listing's prefix that no key can have."""
    if prefix:
        check_key(prefix.removesuffix("/") if prefix != "/" else "", uri)
