"""The object store in a folder: the embedded default."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from infra.errors import ObjectChanged, ObjectMissing, OutsideError, StoreFull
from infra.folder_listing import NOT_THERE, TEMPORARY, require_inside, version_of, walk
from infra.store import ObjectInfo, Versioned, check_key, check_prefix

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PIECE_BYTES = 4 * 1024 * 1024


class FolderStore:
    """Objects as files below a folder.

    A write goes to a temporary file beside its target, is flushed to disk, and is then renamed
    (`put`) or linked (`create`: link fails if the name exists, on every POSIX file system).

    A symbolic link is followed to what lies below the root and nowhere else. A link to a file that
    leads out, or nowhere, is listed and refused when it is looked at; a link to a folder is passed
    over if it stays inside (what is there is listed where it lies), and refused if it leads out.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.uri = str(self.root)

    def put(self, key: str, data: bytes | memoryview) -> None:
        with self._writing(key) as (temporary, target):
            temporary.write_bytes(data)
            _flush(temporary)
            os.replace(temporary, target)
            _flush(target.parent)

    def put_file(self, key: str, path: Path) -> None:
        with self._writing(key) as (temporary, target):
            shutil.copyfile(path, temporary)
            _flush(temporary)
            os.replace(temporary, target)
            _flush(target.parent)

    def create(self, key: str, data: bytes) -> bool:
        with self._writing(key) as (temporary, target):
            temporary.write_bytes(data)
            _flush(temporary)
            try:
                os.link(temporary, target)
            except FileExistsError:
                # over NFS a lost reply is asked again, and then the name is there: by us
                return target.is_file() and os.path.samefile(temporary, target)
            _flush(target.parent)
            return True

    def replace(self, key: str, data: bytes, *, version: str) -> str | None:
        with self._writing(key) as (temporary, target), _locked(target):
            try:
                if version_of(target.stat()) != version:
                    return None
            except NOT_THERE:
                return None
            temporary.write_bytes(data)
            _flush(temporary)
            written = version_of(temporary.stat())  # a rename keeps it
            os.replace(temporary, target)
            _flush(target.parent)
            return written

    def get(self, key: str) -> bytes:
        with self._reading(key) as path:
            return path.read_bytes()

    def read(self, key: str) -> Versioned:
        with self._reading(key) as path:
            with path.open("rb") as file:
                data, status = file.read(), os.fstat(file.fileno())
            age = _now(path.parent) - status.st_mtime
        return Versioned(data, version_of(status), max(age, 0.0))

    def pieces(self, key: str) -> Iterator[bytes]:
        with self._reading(key) as path, path.open("rb", buffering=0) as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece

    def get_file(self, key: str, path: Path) -> None:
        with self._reading(key) as source, placing(path) as temporary:
            shutil.copyfile(source, temporary)

    def fetch(self, key: str, path: Path, *, version: str = "", version_id: str = "") -> str:
        with self._reading(key) as place, placing(path) as temporary:
            with place.open("rb") as source, temporary.open("wb") as target:
                before = version_of(os.fstat(source.fileno()))
                shutil.copyfileobj(source, target, _PIECE_BYTES)
            if before != (version or before) or version_of(place.stat()) != before:
                raise ObjectChanged(f"{key} in the object store {self.uri} has changed")
        return ""

    def info(self, key: str) -> ObjectInfo | None:
        try:
            with self._reading(key) as path:
                status = path.stat()
        except ObjectMissing:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return ObjectInfo(key, status.st_size, version_of(status))

    def list(self, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
        check_prefix(prefix, self.uri)
        try:
            yield from walk(self.root, prefix, after=after)
        except OSError as error:
            raise OutsideError(f"cannot list the object store {self.uri}: {error}") from error

    def delete(self, key: str) -> None:
        if self.info(key) is None:
            return
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise OutsideError(
                f"cannot delete {key} in the object store {self.uri}: {error}"
            ) from error

    def _path(self, key: str) -> Path:
        check_key(key, self.uri)
        if key.rpartition("/")[2].startswith(TEMPORARY):
            raise OutsideError(f"{key!r} is no key of the object store {self.uri}")
        require_inside(self.root, key)
        return self.root / key

    @contextmanager
    def _writing(self, key: str) -> Iterator[tuple[Path, Path]]:
        target = self._path(key)
        temporary = target.parent / f"{TEMPORARY}{uuid.uuid4().hex}"
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            yield temporary, target
        except OSError as error:
            if error.errno in _FULL:
                raise StoreFull(
                    f"no space left for {key} in the object store {self.uri} ({error.strerror})",
                    hint="free some space and run the same command again: it goes on from there",
                ) from error
            raise OutsideError(
                f"cannot write {key} in the object store {self.uri}: {error}"
            ) from error
        finally:
            _discard(temporary)

    @contextmanager
    def _reading(self, key: str) -> Iterator[Path]:
        path = self._path(key)
        try:
            yield path
        except NOT_THERE as error:
            raise ObjectMissing(f"there is no {key} in the object store {self.uri}") from error
        except OSError as error:
            raise OutsideError(
                f"cannot read {key} in the object store {self.uri}: {error}"
            ) from error


@contextmanager
def placing(path: Path) -> Iterator[Path]:
    """Give a temporary file beside `path`; put it in `path`'s place if the block succeeds.

    Raises:
        StoreFull: No space is left there.
        OutsideError: The place cannot be written.
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with _placing_faults(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with _placing_faults(path):
            os.replace(temporary, path)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StoreFull(
            f"no space left for {path} ({error.strerror})",
            hint="free some space and run the same command again: it goes on from there",
        ) from error
    finally:
        _discard(temporary)


@contextmanager
def _placing_faults(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise
        raise OutsideError(f"cannot write {path}: {error}") from error


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Let one process at a time replace this file; the system lets go of the lock with it."""
    with (target.parent / f"{TEMPORARY}lock-{target.name}").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _now(folder: Path) -> float:
    """The file system's clock, which over a network is not this machine's."""
    with tempfile.TemporaryFile(dir=folder, prefix=TEMPORARY) as file:
        os.utime(file.fileno())
        return os.fstat(file.fileno()).st_mtime


def _discard(temporary: Path) -> None:
    """Remove a temporary file; that there is none, or no folder for one, is no error."""
    with suppress(*NOT_THERE):
        temporary.unlink()


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
