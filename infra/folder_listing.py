"""What lies in a folder, in key order, and where its links lead."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from infra.errors import LeadsOut
from infra.store import ObjectInfo

NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
TEMPORARY = ".writing-"


def version_of(status: os.stat_result) -> str:
    """The version of a file; the inode tells two writes within one tick of the clock apart."""
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


def walk(root: Path, prefix: str = "", *, after: str = "") -> Iterator[ObjectInfo]:
    """Yield the objects below a folder in key order, those that sort behind `after`.

    Holds the names of one folder at each depth: 80 bytes a name. A million files in a thousand
    folders take some 8 seconds of CPU, nearly all of them in the kernel's stat.

    Raises:
        LeadsOut: A link to a folder leads out of the root.
        OSError: A folder cannot be read.
    """
    folder = prefix[: prefix.rfind("/") + 1]
    if folder:
        require_inside(root, folder.rstrip("/"))
    return _folder(root, folder, prefix, after)


def _folder(root: Path, folder: str, prefix: str, after: str) -> Iterator[ObjectInfo]:
    try:
        handle = os.open(root / folder, os.O_RDONLY | os.O_DIRECTORY)
    except NOT_THERE:
        return
    try:
        with os.scandir(handle) as entries:
            # with their slash folders sort where their keys belong: a-b, a/b
            names = [e.name + "/" if e.is_dir(follow_symlinks=False) else e.name for e in entries]
        names.sort()
        for name in names:
            key = folder + name
            if not key.startswith(prefix):
                continue
            if name[-1] == "/":
                # what is in it begins with its name: all sorts as that does, or around `after`
                if key > after or after.startswith(key):
                    yield from _folder(root, key, prefix, after)
                continue
            if key <= after:
                continue
            try:
                status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            except FileNotFoundError:  # removed since
                continue
            if stat.S_ISREG(status.st_mode):
                if not name.startswith(TEMPORARY):
                    yield ObjectInfo(key, status.st_size, version_of(status))
            elif stat.S_ISLNK(status.st_mode):
                yield from _link(root, key)
    finally:
        os.close(handle)


def _link(root: Path, key: str) -> Iterator[ObjectInfo]:
    """Yield what a link stands for, if it is a file; see `FolderStore`."""
    path = root / key
    if path.is_dir():
        if not any(part.startswith(".") for part in key.split("/")):
            require_inside(root, key)
        return
    if path.is_file() and _inside(root, os.path.realpath(path)):
        status = path.stat()
        yield ObjectInfo(key, status.st_size, version_of(status))
    else:
        yield ObjectInfo(key, 0, "a link that leads out")


def require_inside(root: Path, key: str) -> None:
    """Refuse a key whose path leads out of the root by a link, or to a link that leads nowhere.

    Raises:
        LeadsOut: It does.
    """
    path = root / key
    real = os.path.realpath(path)
    if real != str(path) and not _inside(root, real):
        raise LeadsOut(
            f"{key} in {root} is a link that leads out of it, to {real}",
            hint="put the file itself there, or name the folder that it is in",
        )
    if path.is_symlink() and not path.exists():
        raise LeadsOut(
            f"{key} in {root} is a link to {real}, where there is nothing",
            hint="bring the file back, or remove the link",
        )


def _inside(root: Path, real: str) -> bool:
    return real.startswith(os.path.realpath(root).rstrip("/") + "/")
