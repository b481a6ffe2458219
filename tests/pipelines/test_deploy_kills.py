"""`evertrain deploy` killed after any of its requests: the next one finds its way."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.faults import Call, Fault, lost_reply
from tests.cluster.kfp_server import KfpServer
from tests.pipelines.deploy_case import Case, evertrain_here, impatient
from tests.pipelines.test_deploy_faults import calls_of_a_change, changed, mended

SPAWN = multiprocessing.get_context("forkserver")
SPAWN.set_forkserver_preload(["kfp", "kfp.compiler", "kfp_server_api", "pipelines.cli"])


def _deploy(folder: str, url: str) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's `&` has it ignored
    sys.exit(evertrain_here("deploy", folder, "--host", url, "--yes").code)


def _killed(case: Case, *, after: int) -> int:
    """Deploy in a process that dies after its n-th request was served; how many were."""
    process = SPAWN.Process(target=_deploy, args=(str(case.folder), case.server.url))
    served = 0

    def script(call: Call) -> Fault | None:
        nonlocal served
        served += 1
        if served != after:
            return None
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        return lost_reply()  # it is done, and nobody is there to hear of it

    case.server.faults.script = script
    process.start()
    process.join(60)
    case.server.faults.clear()
    assert process.exitcode == (-signal.SIGKILL if served >= after else 0)
    return served


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True], ids=["a change", "the first deploy"])
def test_a_deploy_that_is_killed_after_any_request_is_mended_by_the_next(
    kfp_home: Path, tmp_path: Path, first: bool
) -> None:
    """Before that at most one schedule of a name fires, and one is there at any time."""
    count = len(calls_of_a_change(tmp_path))
    for after in range(1, count + 1):
        with KfpServer() as server:
            case = Case(tmp_path / f"after{after}" / "project", server)
            impatient(case)
            if not first:
                assert case.deploy().code == 0
            changed(case)
            if _killed(case, after=after) < after:
                break
            there = case.schedules.get("small-nightly", [])
            assert len([each for each in there if each.enabled]) <= 1, after
            assert first or there, after
            mended(case)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_until_a_schedule_fires_again(
    kfp_home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """It comes when the old one was just switched off."""
    with KfpServer() as server:
        case = Case(tmp_path / "project", server)
        impatient(case, patience=5.0, timeout=5.0)
        assert case.deploy().code == 0
        old = case.one("nightly").key
        changed(case)
        process = SPAWN.Process(target=_deploy, args=(str(case.folder), server.url))

        def script(call: Call) -> None:
            if call.method == "POST" and call.path.endswith(":disable"):
                assert process.pid is not None
                os.kill(process.pid, number)

        server.faults.script = script
        process.start()
        process.join(60)
        server.faults.clear()
        assert process.exitcode == (130 if number == signal.SIGINT else -number)
        firing = [each.key for each in case.schedules["small-nightly"] if each.enabled]
        assert len(firing) == 1
        assert firing != [old]
        mended(case)
