"""Being asked to stop: signals, a spot notice, and the marker that is left."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.train_distributed.stop import NOTICE, Marker, StopRequest
from infra.folder import FolderStore


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    signal.signal(signal.SIGTERM, before[0])
    signal.signal(signal.SIGINT, before[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_asks_and_the_second_one_ends(number: signal.Signals) -> None:
    stop = StopRequest()
    assert not stop()
    os.kill(os.getpid(), number)
    assert stop()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), number)


def test_a_notice_that_appears_asks_to_stop_and_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notice = tmp_path / "terminating"
    monkeypatch.setenv(NOTICE, str(notice))
    stop = StopRequest()
    assert not stop()
    notice.touch()
    assert stop()
    notice.unlink()
    assert stop()


def test_the_marker_says_where_training_goes_on_until_it_has_ended(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    marker = Marker(store, "checkpoints/key")
    marker.leave(step=120, samples=4096)
    said = json.loads(store.get("checkpoints/key/stopped.json"))
    assert (said["step"], said["samples"]) == (120, 4096)
    marker.remove()
    marker.remove()
    assert list(store.list()) == []
