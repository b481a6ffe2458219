"""Drift and decay as triggers: what an advice asks for, and the process that finds it out."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from components.common.advice import Advice, Estimate, Kept, advise
from components.common.project import open_project
from components.common.trigger_settings import Trigger
from infra.errors import OutsideError
from pipelines.watch.advice import Advising, asked_for
from tests.small_project.command import evertrain
from tests.small_project.make_data import write_months

BOTH: tuple[Trigger, ...] = ("data", "drift", "decay")
_SOON = Estimate(mean=0.5, low=0.49, high=0.51)
_WORSE = Estimate(mean=0.6, low=0.59, high=0.61)


def advice(moved: list[str] | None, kept: bool | None) -> Advice:
    """One with findings of drift (None: nobody looked) and a champion that kept its promise."""
    now = _SOON if kept else _WORSE
    known = Kept(metric="log_loss", promised=_SOON, now=now, rows=9, clusters=3)
    return advise(moved=moved, kept=None if kept is None else known, waiting=None, worth=0.0)


def test_an_advice_says_apart_whether_data_moved_and_the_champion_decayed() -> None:
    for moved, kept in ((["x"], True), ([], False), (None, None)):
        found = advice(moved, kept)
        assert found.moved is (None if moved is None else bool(moved))
        assert found.decayed is (None if kept is None else not kept)


@pytest.mark.parametrize(
    ("moved", "kept", "when", "expected"),
    [
        (["age has shifted"], True, BOTH, "drift"), (["age has shifted"], True, ("decay",), None),
        ([], False, BOTH, "decay"), ([], False, ("drift",), None),
        (["age has shifted"], False, BOTH, "drift"), ([], True, BOTH, None), ([], None, BOTH, None),
        (None, True, BOTH, "drift"), (None, True, ("decay",), None),
        (None, None, ("decay", "schedule"), None),
    ],
)  # fmt: skip
def test_each_trigger_goes_by_what_it_is_about(
    moved: list[str] | None, kept: bool | None, when: tuple[Trigger, ...], expected: str | None
) -> None:
    found = asked_for(advice(moved, kept), when)
    assert (found[0] if found else None) == expected
    if expected == "drift" and moved:
        assert "age has shifted" in found[1]  # type: ignore[index]
    if expected == "decay":
        assert "came later" in found[1]  # type: ignore[index]
    if moved is None and expected:
        assert "whether the data have moved" in found[1]  # type: ignore[index]


def wait_for(advising: Advising) -> Advice:
    until = time.monotonic() + 120
    while (found := advising.result()) is None:
        assert time.monotonic() < until
        time.sleep(0.1)
    assert not advising.under_way
    return found


def test_without_a_champion_the_advice_is_to_train(fresh_project: Path) -> None:
    advising = Advising(open_project(fresh_project), data="", clock=time.monotonic)
    assert not advising.under_way
    advising.begin()
    assert advising.under_way
    found = wait_for(advising)
    assert found.advice == "retrain"
    assert asked_for(found, ("drift",)) == ("drift", "there is no champion yet")


def test_a_process_that_fails_or_takes_too_long_is_an_outside_error(
    tmp_path: Path, fresh_project: Path
) -> None:
    opened = open_project(fresh_project)
    (fresh_project / "evertrain.yaml").write_text("name: [")
    advising = Advising(opened, data="", clock=time.monotonic)
    advising.begin()
    with pytest.raises(OutsideError, match="is not YAML") as caught:
        wait_for(advising)
    assert "advise" in caught.value.hint
    now = 0.0
    slow = Advising(opened, data="", clock=lambda: now)
    slow.begin()
    now += 3601
    with pytest.raises(OutsideError, match="no advice came in 3600 s"):
        slow.result()
    assert not slow.under_way


@pytest.mark.smoke
@pytest.mark.slow
def test_drift_is_looked_for_in_the_newest_data_without_a_run(project: Path) -> None:
    """The champion knows January and February; what lands then has been validated by nobody."""
    runs = sorted(path.name for path in (project / ".evertrain" / "store" / "runs").iterdir())
    before = evertrain("advise", project, "--json")
    assert before.json["moved"] is None
    write_months(project / "data", 3)
    found = evertrain("advise", project, "--validate", "--json")
    assert found.code == 0, found.err
    assert found.json["moved"] is not None
    assert not any("validated" in words for words in found.json["unknown"])
    after = sorted(path.name for path in (project / ".evertrain" / "store" / "runs").iterdir())
    assert after == runs, "it leaves no record"
    (project / "data" / "2025-03.parquet").write_bytes(b"not Parquet")
    broken = evertrain("advise", project, "--validate", "--json")
    assert broken.code == 0, broken.err
    assert broken.json["moved"] is None
    assert any("could not be validated" in words for words in broken.json["unknown"])
