"""The local cache: whole files only, within its limit, and nobody's file is taken away."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from components.common.cache import Cache, bytes_of

ROOT = Path(__file__).resolve().parents[2]


def filled(folder: Path, *names: str, limit: int = 0) -> Cache:
    """A cache of files of 100 bytes, used in this order."""
    cache = Cache(folder)
    for age, name in enumerate(names):
        temporary = cache.reading()
        temporary.write_bytes(b"x" * 100)
        cache.add(name, temporary)
        os.utime(cache.place(name), (1000 + age, 1000 + age))
    return Cache(folder, limit=limit)


def there(cache: Cache) -> list[str]:
    return sorted(path.name for path in cache.folder.glob("??/*"))


@pytest.mark.parametrize(
    ("text", "size"), [("", 0), ("20GB", 20 * 10**9), ("1.5MB", 1_500_000), ("0.5GB", 5 * 10**8)]
)
def test_a_size_is_a_number_of_bytes(text: str, size: int) -> None:
    assert bytes_of(text) == size


def test_what_was_used_least_recently_goes_first(tmp_path: Path) -> None:
    cache = filled(tmp_path, "aa", "bb", "cc", "dd", limit=250)
    assert cache.has("aa")
    assert not cache.has("ee")
    assert cache.make_room() == 200
    assert there(cache) == ["aa", "dd"]
    assert cache.make_room(coming=100) == 200
    assert there(cache) == ["aa"]


def test_without_a_limit_everything_stays(tmp_path: Path) -> None:
    cache = filled(tmp_path, "aa", "bb")
    assert cache.make_room() == 200
    assert there(cache) == ["aa", "bb"]


def test_what_is_added_makes_room_by_itself(tmp_path: Path) -> None:
    cache = filled(tmp_path, limit=500)
    for number in range(30):
        temporary = cache.reading()
        temporary.write_bytes(b"x" * 100)
        cache.add(f"{number:02}", temporary)
        assert len(there(cache)) <= 6


def test_what_this_process_needs_stays_whatever_the_limit(tmp_path: Path) -> None:
    cache = filled(tmp_path, "aa", "bb", "cc", limit=50)
    cache.need(["aa"])
    cache.need(["cc"])
    assert cache.make_room() == 200
    assert there(cache) == ["aa", "cc"]


def test_what_another_process_needs_stays_until_it_ends(tmp_path: Path) -> None:
    cache = filled(tmp_path, "aa", "bb", limit=50)
    code = (
        "import pathlib, sys; from components.common.cache import Cache; "
        f"Cache(pathlib.Path({str(tmp_path)!r})).need(['aa']); "
        "print('ready', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    with other:
        assert other.stdout is not None
        assert other.stdout.readline() == "ready\n"
        cache.make_room()
        assert there(cache) == ["aa"]
        other.kill()
    cache.make_room()
    assert there(cache) == []
    assert not list(tmp_path.glob("lease-*")), "the lease of a dead process is removed"


def test_what_a_killed_process_left_half_written_is_swept_away_a_day_later(tmp_path: Path) -> None:
    cache = filled(tmp_path, "aa")
    old, fresh, converting = cache.reading(), cache.reading(), tmp_path / "converting-x"
    for path in (old, fresh):
        path.write_bytes(b"half")
    converting.mkdir()
    (converting / "unpacked").write_bytes(b"half")
    for path in (old, converting):
        os.utime(path, (1000, 1000))
    cache.make_room()
    assert not old.exists()
    assert not converting.exists()
    assert fresh.exists()
    assert there(cache) == ["aa"]
