"""A journal on a store: one order for all who write, nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from loopback import BUCKET, S3Server

from infra.errors import ObjectDamaged
from infra.folder import FolderStore
from infra.journal import Journal
from infra.store import ObjectStore, open_store
from tests.small_project.command import environment

_WRITER = """
import sys
from infra.journal import Journal
from infra.store import open_store
journal = Journal(open_store(sys.argv[1]), "log")
for number in range(int(sys.argv[3])):
    journal.append([{"who": sys.argv[2], "n": number, "part": part} for part in range(2)])
    print(number, flush=True)
"""


def write(uri: str, who: str, count: int, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, uri, who, str(count)],
        env=environment() | more, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def by(entries: list[dict[str, object]], who: str) -> list[object]:
    return [entry["n"] for entry in entries if entry["who"] == who]


def check_two_writers(store: ObjectStore, uri: str, count: int, **more: str) -> None:
    """Two processes write at once; everything is there, in each one's order, in one order."""
    writers = [write(uri, who, count, **more) for who in ("a", "b")]
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    seen = Journal(store, "log").read(0)
    for who in ("a", "b"):
        assert by(seen, who) == [n for n in range(count) for _ in range(2)]
    pairs = list(zip(seen[::2], seen[1::2], strict=True))
    assert all(a["who"] == b["who"] and a["n"] == b["n"] for a, b in pairs), "torn apart"
    assert Journal(store, "log").read(0) == seen


def test_two_processes_write_one_journal_in_a_folder(tmp_path: Path) -> None:
    check_two_writers(FolderStore(tmp_path), str(tmp_path), 40)


def test_two_processes_write_one_journal_on_s3(s3_environment: S3Server) -> None:
    uri = f"s3://{BUCKET}/journal-{uuid.uuid4().hex}"
    variables = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    check_two_writers(open_store(uri), uri, 10, **variables)


def test_a_killed_writer_leaves_whole_entries_and_others_go_on(tmp_path: Path) -> None:
    killed, other = (write(str(tmp_path), who, 5000) for who in ("a", "b"))
    assert killed.stdout is not None
    said = [killed.stdout.readline() for _ in range(10)]
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    time.sleep(0.2)
    other.kill()
    other.communicate()
    seen = Journal(FolderStore(tmp_path), "log").read(0)
    assert by(seen, "a")[: 2 * len(said)] == [n for n in range(10) for _ in range(2)]
    assert len(by(seen, "b")) > 20
    journal = Journal(FolderStore(tmp_path), "log")
    journal.append([{"who": "c", "n": 0}])
    assert Journal(FolderStore(tmp_path), "log").read(len(seen)) == [{"who": "c", "n": 0}]


def test_a_reader_gets_only_what_came_since(tmp_path: Path) -> None:
    journal, reader = (Journal(FolderStore(tmp_path), "log") for _ in range(2))
    journal.append([{"n": 0}, {"n": 1}])
    assert reader.read(1) == [{"n": 1}]
    journal.append([{"n": 2}])
    assert reader.read(2) == [{"n": 2}]
    assert reader.read(3) == []


def test_a_journal_with_a_hole_is_refused(tmp_path: Path) -> None:
    journal = Journal(FolderStore(tmp_path), "log")
    for number in range(3):
        journal.append([{"n": number}])
    (tmp_path / "log" / "00000002.json").unlink()
    with pytest.raises(ObjectDamaged, match="00000002"):
        Journal(FolderStore(tmp_path), "log").read(0)


@pytest.mark.parametrize("content", [b"\x80", b"{}", json.dumps([1]).encode()])
def test_what_is_no_entry_is_refused(tmp_path: Path, content: bytes) -> None:
    FolderStore(tmp_path).put("log/00000001.json", content)
    with pytest.raises(ObjectDamaged, match="no entry"):
        Journal(FolderStore(tmp_path), "log").read(0)
