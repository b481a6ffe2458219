"""However training ends, the checkpoint that was begun is written, and in time."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from checkpoint_samples import Training, files_of, same, steps_of

from infra.errors import StoreFull
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints


class _Priorities(FolderStore):
    """Notes how much more patient than the process the thread is that writes."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.found: list[int] = []

    def put(self, key: str, data: bytes | memoryview) -> None:
        thread, process = threading.get_native_id(), os.getpid()
        one, other = (os.getpriority(os.PRIO_PROCESS, each) for each in (thread, process))
        self.found.append(one - other)
        super().put(key, data)


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a niceness of their own on Linux")
@pytest.mark.parametrize(
    ("settings", "what", "patient"),
    [
        ({}, {}, True),
        ({}, {"urgent": True}, False),
        ({"asynchronous": False}, {}, False),
    ],
)
def test_only_what_nothing_waits_for_lets_others_go_first_and_not_without_end(
    tmp_path: Path, settings: dict[str, Any], what: dict[str, Any], patient: bool
) -> None:
    store = _Priorities(tmp_path)
    run = Training(Checkpoints(store, "run"), **settings)
    run.train()
    run.save(**what)
    ((niceness),) = store.found
    assert 0 < niceness <= 10 if patient else niceness == 0
    assert Training(tmp_path).resume() == 1


class _Gated(FolderStore):
    """Makes no checkpoint until it is allowed to."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.open = threading.Event()

    def create(self, key: str, data: bytes) -> bool:
        assert self.open.wait(60)
        return super().create(key, data)


@pytest.mark.parametrize("grace", [20.0, 0.0])
def test_a_training_that_failed_leaves_a_clean_place_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, grace: float
) -> None:
    monkeypatch.setattr("training_core.checkpoints.saver._LEFT_ALONE_SECONDS", grace)
    store = _Gated(tmp_path)
    run = Training(Checkpoints(store, "run"))
    run.train()
    run.begin()
    state = run.state()
    threading.Timer(0.2, store.open.set).start()
    run.saver.abandon()
    assert steps_of(run.checkpoints) == [1]
    again = Training(tmp_path, seed=1)
    assert again.resume() == 1
    assert same(again.state(), state)
    run.saver.abandon()  # nothing is left to wait for


def test_a_training_that_failed_is_not_told_to_fail_again(tmp_path: Path) -> None:
    class Full(FolderStore):
        def put(self, key: str, data: bytes | memoryview) -> None:
            raise StoreFull("no space left")

    told: list[str] = []
    run = Training(Checkpoints(Full(tmp_path), "run", on_report=told.append))
    run.train()
    run.begin()
    run.saver.abandon()
    assert told == ["step 1 has no checkpoint: no space left"]
    assert files_of(tmp_path) == set()


_ENDS_EARLY = """
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from checkpoint_samples import Training
from infra.folder import FolderStore
from training_core.checkpoints.catalogue import Checkpoints

class Slow(FolderStore):
    def put(self, key, data):
        time.sleep(1)
        with ThreadPoolExecutor(2) as pool:  # as boto3 does for what is large
            pool.submit(super().put, key, data).result()

run = Training(Checkpoints(Slow(Path(sys.argv[1])), "run"))
run.train()
run.begin()
raise SystemExit("it broke")
"""


def test_a_checkpoint_that_was_begun_is_written_though_the_process_ends(tmp_path: Path) -> None:
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{here}:{here.parents[1]}"}
    ended = subprocess.run(
        [sys.executable, "-c", _ENDS_EARLY, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (1, "it broke\n")
    assert Training(tmp_path).resume() == 1


def test_no_thread_outlives_its_training(tmp_path: Path) -> None:
    run = Training(tmp_path)
    run.train()
    run.save()
    workers = (run.saver._copier, run.saver._writer, run.saver._urgent_writer)
    threads = [worker._thread for worker in workers]
    del run, workers
    gc.collect()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
