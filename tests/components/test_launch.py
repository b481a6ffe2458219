"""torchrun gets one signal, whoever sends how many, and is gone with its ranks in the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.small_project.command import environment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

_PARENT = """
import os, sys
from pathlib import Path
from components.train_distributed.launch import run_to_end
torchrun = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
job = ["--no-python", "--nproc-per-node=2", sys.executable, "-c", *sys.argv[1:]]
enough = Path(sys.argv[2], "enough")
over = {"over": enough.exists, "every": 0.05} if os.environ.get("OVER") else {}
print(*run_to_end([sys.executable, *torchrun, *job], os.environ, **over), flush=True)
if os.environ.get("STAYS"):
    sys.stdin.read()
"""
_RANK = """
import os, signal, sys, time
from pathlib import Path
from components.common.watchdog import end_with_launcher, end_with_parent
mine = Path(sys.argv[1], os.environ["RANK"])
asked = 0
def ask(signum, frame):
    global asked
    asked += 1
signal.signal(signal.SIGTERM, ask)
end_with_parent()
end_with_launcher()
mine.with_suffix(".process").write_text(str(os.getpid()))
mine.with_suffix(".ready").touch()
while not asked:
    time.sleep(0.01)
mine.with_suffix(".saving").touch()
time.sleep(float(sys.argv[2]))
mine.with_suffix(".saved").write_text(str(asked))
sys.exit(1)
"""


class Training:
    """A process that runs torchrun, with two ranks that need a while to save."""

    def __init__(self, folder: Path, *, saving: float) -> None:
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PARENT, _RANK, str(folder), str(saving)],
            env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.wait_for("ready")

    def left(self, suffix: str) -> list[str]:
        """Return what both ranks have left in their files of this kind."""
        return [file.read_text() for file in sorted(self.folder.glob(f"*.{suffix}"))]

    def wait_for(self, suffix: str) -> None:
        while len(self.left(suffix)) < 2:
            assert self.process.poll() is None
            time.sleep(0.01)

    def ranks(self) -> list[int]:
        """Return the numbers of the ranks that still run."""
        return [int(rank) for rank in self.left("process") if _runs(int(rank))]

    def end(self) -> list[str]:
        """Wait for the end, when no rank runs; return what `run_to_end` did."""
        self.process.wait(timeout=60)
        assert self.ranks() == []
        return self.process.communicate()[0].split()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[float], Training]]:
    started: list[Training] = []

    def begin(saving: float) -> Training:
        started.append(Training(tmp_path, saving=saving))
        return started[-1]

    yield begin
    for training in started:
        with training.process as process:
            process.kill()
        for rank in training.ranks():
            os.kill(rank, signal.SIGKILL)


@pytest.mark.parametrize("whole_group", [True, False], ids=["terminal", "kill"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_lets_every_rank_save(
    start: Callable[[float], Training], number: signal.Signals, whole_group: bool
) -> None:
    training = start(0.5)
    training.process.send_signal(signal.SIGSTOP)  # torchrun, if it got the signal too, is quicker
    (os.killpg if whole_group else os.kill)(training.process.pid, number)
    time.sleep(0.3)
    training.process.send_signal(signal.SIGCONT)
    code, asked = training.end()
    assert (int(code) != 0, asked) == (True, "True")
    assert training.left("saved") == ["1", "1"]


def test_a_second_signal_ends_all_at_once(start: Callable[[float], Training]) -> None:
    training = start(60)
    training.process.send_signal(signal.SIGINT)
    training.wait_for("saving")
    training.process.send_signal(signal.SIGINT)
    assert training.end() == [str(-signal.SIGKILL), "True"]
    assert training.left("saved") == []


def test_what_is_over_is_ended_once_and_lets_ranks_save(
    start: Callable[[float], Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVER", "1")
    training = start(0.5)
    (training.folder / "enough").touch()
    training.wait_for("saving")
    training.process.send_signal(signal.SIGTERM)  # the pod is deleted at the same time
    code, asked = training.end()
    assert (int(code) != 0, asked) == (True, "True")
    assert training.left("saved") == ["1", "1"], "the second signal is no second one for them"


def test_ranks_do_not_outlive_their_torchrun(
    start: Callable[[float], Training], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAYS", "1")  # who started torchrun starts another
    training = start(60)
    parents = {
        int(Path(f"/proc/{rank}/stat").read_text().rpartition(")")[2].split()[1])
        for rank in training.ranks()
    }
    (torchrun,) = parents
    os.kill(torchrun, signal.SIGKILL)
    until = time.monotonic() + 60
    while training.ranks() and time.monotonic() < until:
        time.sleep(0.05)
    assert training.ranks() == []
    assert training.process.poll() is None
    assert training.process.communicate("")[0].split() == [str(-signal.SIGKILL), "False"]


def test_ranks_do_not_outlive_who_started_them(start: Callable[[float], Training]) -> None:
    training = start(60)
    assert len(training.ranks()) == 2
    training.process.kill()
    until = time.monotonic() + 60
    while training.ranks() and time.monotonic() < until:
        time.sleep(0.05)
    assert training.ranks() == []


def _runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
