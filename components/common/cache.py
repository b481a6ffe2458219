"""Local copies of objects, named after their content, shared by all processes on this machine.

    cache = Cache(context.cache, limit=bytes_of("20GB"))
    cache.need(names)              # from here on, and until this process ends, nobody removes them
    path = cache.place(name)       # where a copy lies, or belongs
    cache.make_room()              # removes what was used least recently, until the limit is kept

A file is there whole or not at all: it is written beside its place and renamed. Its time of change
says when it was last used. What a process needs it says in a lease, a file that it holds a lock on;
the lock is the kernel's, so it goes when the process does, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_STALE_SECONDS = 24 * 3600
_UNITS = {"M": 10**6, "G": 10**9}
_TEMPORARY = (".writing-", "reading-", "converting-")

# One lease a process and folder, its file and an open handle that holds the lock.
_leases: dict[tuple[int, str], tuple[Path, int]] = {}
_lease_lock = threading.Lock()


def bytes_of(text: str) -> int:
    """Return the bytes of a size such as `20GB` or `1.5MB`; 0 of an empty text."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([MG])B", text)
    return int(float(found[1]) * _UNITS[found[2]]) if found else 0


class Cache:
    """A folder of local copies.

    Args:
        folder: Created where it is missing.
        limit: Bytes; 0: none.
    """

    def __init__(self, folder: Path, *, limit: int = 0) -> None:
        self.folder = folder
        self.limit = limit
        self._added = 0

    def place(self, name: str) -> Path:
        """Where a copy of this name lies, or belongs."""
        return self.folder / name[:2] / name

    def has(self, name: str) -> bool:
        """Say whether a copy is there, and note that it is used."""
        try:
            os.utime(self.place(name))
        except FileNotFoundError:
            return False
        return True

    def need(self, names: Iterable[str]) -> None:
        """Keep these copies until this process ends, those that are still to come as well."""
        with self._alone(fcntl.LOCK_SH), _lease_lock:
            os.write(self._lease(), "".join(f"{name}\n" for name in names).encode())

    def reading(self) -> Path:
        """A place for something whose name is not known until it has been read."""
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder / f"reading-{uuid.uuid4().hex}"

    def add(self, name: str, temporary: Path) -> Path:
        """Give a file its name in the cache."""
        size, path = temporary.stat().st_size, self.place(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(path)
        self._added += size
        if self.limit and self._added > self.limit / 10:
            self.make_room()
        return path

    def make_room(self, coming: int = 0) -> int:
        """Remove what nobody needs, least recently used first, until the limit is kept.

        Also removes what a killed process left half written a day ago.

        Args:
            coming: Bytes that will be added soon.

        Returns:
            Bytes that are left, those to come included.
        """
        self._added = 0
        with self._alone(fcntl.LOCK_EX):
            self._sweep()
            files = [(s.st_mtime_ns, s.st_size, path) for path, s in self._files()]
            left = coming + sum(size for _, size, _ in files)
            needed = self._needed()
            if not self.limit or left <= self.limit:
                return left
            for _, size, path in sorted(files):
                if path.name not in needed:
                    path.unlink(missing_ok=True)
                    left -= size
                    if left <= self.limit:
                        break
            return left

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for folder in self.folder.iterdir():
            if len(folder.name) == 2 and folder.is_dir():
                for path in folder.iterdir():
                    if not path.name.startswith(_TEMPORARY):
                        with suppress(FileNotFoundError):
                            yield path, path.stat()

    def _sweep(self) -> None:
        old = time.time() - _STALE_SECONDS
        for pattern in (f"{name}*" for name in _TEMPORARY):
            for path in (*self.folder.glob(pattern), *self.folder.glob(f"??/{pattern}")):
                with suppress(FileNotFoundError):
                    if path.stat().st_mtime < old:
                        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _needed(self) -> set[str]:
        """What living processes need; the leases of those that have ended are removed."""
        needed: set[str] = set()
        ours, _ = _leases.get((os.getpid(), str(self.folder)), (None, 0))
        for path in self.folder.glob("lease-*"):
            with path.open("rb") as file:
                if path != ours:
                    with suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                        path.unlink()  # nobody holds it
                        continue
                needed.update(file.read().decode().splitlines())
        return needed

    def _lease(self) -> int:
        key = (os.getpid(), str(self.folder))
        if key not in _leases or not _leases[key][0].exists():
            path = self.folder / f"lease-{uuid.uuid4().hex}"
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            fcntl.flock(handle, fcntl.LOCK_EX)
            _leases[key] = path, handle
        return _leases[key][1]

    @contextmanager
    def _alone(self, mode: int) -> Iterator[None]:
        """Keep those who say what they need and those who remove apart."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / ".lock").open("ab") as file:
            fcntl.flock(file, mode)
            yield
