"""One node of several, as far as it gets without the others."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from components.common.layout import checkpoint_prefix
from components.train_distributed import node as module
from components.train_distributed.failures import Failure
from components.train_distributed.node import Node, main
from components.train_distributed.results import keep_result
from components.train_distributed.shared_job import JobOfNodes, SharedJob, newest_attempt
from components.train_distributed.stop import NOTICE
from components.train_distributed.torchrun import Ended
from infra.errors import OutsideError
from infra.folder import FolderStore
from infra.store import ObjectInfo
from training_core.errors import TrainingFailed

SMALL = Path(__file__).parents[1] / "small_project"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(module, "_MOMENT", 0.01)


def shared(folder: Path, **more: Any) -> SharedJob:
    store = FolderStore(folder / "store")
    training = {
        "project": str(SMALL), "store": store.uri, "overrides": ["training.nodes=2"],
        "run_key": "key", "splits": {},
    }  # fmt: skip
    usual: dict[str, Any] = {
        "training": training, "made_of": "x", "run": "run", "identity": "one", "nodes": 2,
        "least": 2, "processes": 1, "port": 29500, "interface": "", "meeting": 60.0,
        "last_call": 1.0, "restarts": 2, "stop_grace": 30, "orphaned": 3600.0,
    }  # fmt: skip
    attempt = SharedJob.numbered(store, "key", 1)
    assert attempt.create(JobOfNodes(**{**usual, **more}))
    return attempt


def save(attempt: SharedJob, step: int) -> None:
    """What a checkpoint leaves."""
    attempt.store.put(f"{checkpoint_prefix('key')}/{step:09d}/manifest.json", b"{}")


class Torchrun:
    """Ends like this, once for each time that it is started."""

    def __init__(self, *ends: Ended, saves: SharedJob | None = None) -> None:
        self.left, self._saves = list(ends), saves

    def __call__(self, training: object, **options: Any) -> Ended:
        if self._saves is not None:
            save(self._saves, 100 - len(self.left))
        return self.left.pop(0)


def lost(rank: str = "0") -> Ended:
    return Ended(1, False, None, [Failure("PeerLost", "Connection closed by peer", rank=rank)])


def test_attempts_are_found_by_their_number(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    assert not attempt.create(attempt.read()), "it is begun once"
    later = SharedJob.numbered(attempt.store, "key", 12)
    later.create(attempt.read())
    found = newest_attempt(attempt.store, "key")
    assert found is not None
    assert (found.number, found.key) == (12, "jobs/key/0012")
    assert newest_attempt(attempt.store, "other") is None


def test_the_first_word_says_why_it_is_over(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    attempt.fail(Failure.of(TrainingFailed("diverged")))
    attempt.fail(Failure.of(OutsideError("a peer of it")))
    failure = attempt.failure()
    assert failure is not None
    assert failure.what == "diverged"
    assert Node(attempt, number=1, host="127.0.0.1").run() == 1


def test_a_training_that_has_its_result_is_over(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    keep_result(attempt.store, "key", {}, made_of="x")
    assert Node(attempt, number=0, host="127.0.0.1").run() == 0


def test_nodes_that_nobody_follows_end(tmp_path: Path) -> None:
    attempt = shared(tmp_path, orphaned=1.0)
    attempt.follow()
    assert attempt.unfollowed() < 1
    time.sleep(1.2)
    assert Node(attempt, number=0, host="127.0.0.1").run() == 130


def test_a_node_gives_up_when_node_0_never_answers(tmp_path: Path) -> None:
    attempt = shared(tmp_path, meeting=0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert Node(attempt, number=1, host="127.0.0.1", port=port).run() == 3
    failure = attempt.failure()
    assert failure is not None
    assert "fewer than 2 nodes came together" in failure.what
    assert failure.node == "1"


def test_lost_peers_are_met_again_as_often_as_something_new_was_saved(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    torchrun = Torchrun(*[lost() for _ in range(20)], saves=attempt)
    with pytest.raises(IndexError):  # the script is over, the node is not
        Node(attempt, number=0, host="127.0.0.1", start=torchrun).run()
    assert torchrun.left == []
    assert attempt.failure() is None


def test_lost_peers_without_anything_new_end_the_attempt(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    save(attempt, 8)
    torchrun = Torchrun(*[lost() for _ in range(20)])
    assert Node(attempt, number=0, host="127.0.0.1", start=torchrun).run() == 3
    assert len(torchrun.left) == 20 - 3, "twice again"
    failure = attempt.failure()
    assert failure is not None
    assert "lost its peers" in failure.what


def test_what_a_repetition_would_not_help_ends_it_for_all_at_once(tmp_path: Path) -> None:
    attempt = shared(tmp_path)
    diverged = Failure.of(TrainingFailed("diverged", hint="lower lr"))
    torchrun = Torchrun(Ended(1, False, None, [lost().failures[0], diverged]))
    with socket.create_server(("127.0.0.1", 0)) as node_0:
        port = node_0.getsockname()[1]
        node = Node(attempt, number=1, host="127.0.0.1", port=port, start=torchrun)
        assert node.run() == 1
    failure = attempt.failure()
    assert failure is not None
    assert (failure.kind, failure.hint, failure.node) == ("TrainingFailed", "lower lr", "1")


def test_ranks_that_were_stopped_for_another_nodes_sake_go_on(tmp_path: Path) -> None:
    """A node was drained: all have saved, and this one was not asked to stop."""
    attempt = shared(tmp_path)
    stopped = Ended(1, False, None, [Failure.of(KeyboardInterrupt())])
    torchrun = Torchrun(stopped, Ended(1, True, None, stopped.failures))
    node = Node(attempt, number=0, host="127.0.0.1", start=torchrun)
    assert node.run() == 130, "but the second time it was asked"
    assert torchrun.left == []
    assert attempt.failure() is None, "which says nothing for the others"


def test_a_machine_that_is_about_to_go_begins_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = tmp_path / "notice"
    notice.touch()
    monkeypatch.setenv(NOTICE, str(notice))
    node = Node(shared(tmp_path, meeting=0.1), number=0, host="127.0.0.1", start=Torchrun())
    going = threading.Timer(0.5, node.ask, (15, None))
    going.start()
    assert node.run() == 130
    going.join()


class Away(FolderStore):
    """Does not answer a few times."""

    times = 3

    def info(self, key: str) -> ObjectInfo | None:
        if self.times:
            self.times -= 1
            raise OutsideError("the store is away")
        return super().info(key)


def test_a_store_that_is_away_for_a_moment_ends_nothing(tmp_path: Path) -> None:
    attempt = shared(tmp_path, restarts=3)
    keep_result(attempt.store, "key", {}, made_of="x")
    store = Away(tmp_path / "store")
    node = Node(SharedJob(store, attempt.key), number=0, host="127.0.0.1", start=Torchrun())
    assert node.run() == 0
    assert store.times == 0


def test_a_job_that_is_not_there_says_where_it_was_looked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(tmp_path), "jobs/key/0001", "--node", "0", "--host", "127.0.0.1"]
    assert main(words) == 3
    assert "there is no jobs/key/0001/job.json" in capsys.readouterr().err


def test_without_trainer_a_node_has_to_be_told_which_it_is() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "components.train_distributed.node", "store", "jobs/key/0001"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--node and --host are needed" in done.stderr
