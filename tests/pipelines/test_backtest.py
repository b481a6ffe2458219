"""The commands: a backtest that is killed and goes on, what it leaves alone, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from components.common.champion import PromotionLog
from components.common.project import open_project
from infra.folder import FolderStore
from pipelines.backtest.run import Planned, plan
from tests.small_project.command import Ended, command, environment, evertrain, make_project
from tests.small_project.make_data import write_months
from training_core.errors import ConfigurationError

DATES = ("--from", "2025-03-01", "--to", "2025-04-20")
FEWER = ("--set", "training.epochs=1", "--set", "baselines.trees=false")


def folder_of(project: Path) -> Path:
    (found,) = (project / ".evertrain" / "backtests").iterdir()
    return found


def dates_of(folder: Path) -> dict[str, Any]:
    file = folder / "notes.json"
    return dict(json.loads(file.read_text())["dates"]) if file.exists() else {}


def kill_in_the_second_run(project: Path) -> None:
    """Start a backtest, and end it without a word once the second date is being trained."""
    backtests = project / ".evertrain" / "backtests"
    process = subprocess.Popen(
        command("backtest", project, *DATES, *FEWER), cwd="/", env=environment(),
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        until = time.monotonic() + 600
        while len(list(backtests.glob("*/home/store/runs/*/train_distributed.json"))) < 2:
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, Ended]:
    """Killed in the middle and begun again: the project, the first run's id, the second end."""
    project = make_project(tmp_path_factory.mktemp("backtest") / "project", 1, 2, 3, 4)
    kill_in_the_second_run(project)
    before = dates_of(folder_of(project))
    assert list(before) == ["2025-03-01"]
    elsewhere = {"EVERTRAIN_STORE": str(project / "real"), "EVERTRAIN_HOME": ""}
    ended = evertrain("backtest", project, *DATES, *FEWER, "--json", timeout=600, more=elsewhere)
    assert ended.code == 0, ended.err
    return project, before["2025-03-01"]["run"], ended


@pytest.mark.timeout(1300)
@pytest.mark.smoke  # two whole runs, one of them begun twice
def test_a_killed_backtest_goes_on_where_it_was(replayed: tuple[Path, str, Ended]) -> None:
    project, first_run, ended = replayed
    notes = dates_of(folder_of(project))
    assert list(notes) == ["2025-03-01", "2025-04-01"]
    assert notes["2025-03-01"]["run"] == first_run
    runs = FolderStore(folder_of(project) / "home" / "store").list("runs/")
    assert len({info.key.split("/")[1] for info in runs}) == 3  # the second date was run twice
    assert ended.json["last"] == "2025-04-20"


@pytest.mark.smoke
def test_it_says_what_each_policy_would_have_cost(replayed: tuple[Path, str, Ended]) -> None:
    project, _, ended = replayed
    found = {p["policy"]: p for p in ended.json["policies"]}
    assert list(found) == ["never", "newest", "point", "ours", "drift", "oracle"]
    assert [p["rows"] for p in ended.json["periods"]] == [31 * 50, 20 * 50]
    assert found["never"]["trainings"] == 1
    assert found["newest"]["trainings"] == 2
    assert 0 < found["never"]["hours"] < found["newest"]["hours"]
    best = min(p["metric"] for p in found.values())
    assert found["oracle"]["metric"] == best
    assert found["never"]["metric"] >= found["newest"]["metric"] - 0.05
    served = ended.json["periods"][1]["served"]
    assert (served["never"], served["newest"]) == ("2025-03-01", "2025-04-01")
    entries = PromotionLog(FolderStore(folder_of(project) / "home" / "store")).entries()
    assert len([e for e in entries if e.action == "promote"]) == found["ours"]["promotions"]


@pytest.mark.smoke
def test_holdouts_are_scored_as_the_pipeline_scored_them(replayed: tuple[Path, str, Ended]) -> None:
    folder = folder_of(replayed[0])
    for date, note in dates_of(folder).items():
        record = folder / "home" / "store" / "runs" / note["run"] / "evaluate_model.json"
        metrics = json.loads(record.read_text())["figures"]["metrics"]
        scores = pd.read_parquet(folder / "holdouts" / f"{date}.parquet")
        assert scores[date].mean() == pytest.approx(metrics["challenger"]["log_loss"], rel=1e-9)
        if "champion" in metrics:
            champion = metrics["champion"]["log_loss"]
            assert scores["2025-03-01"].mean() == pytest.approx(champion, rel=1e-9)


@pytest.mark.smoke
def test_the_real_store_is_left_alone(replayed: tuple[Path, str, Ended]) -> None:
    project, *_ = replayed
    assert not (project / "real").exists()
    assert [f.name for f in (project / ".evertrain").iterdir()] == ["backtests"]


@pytest.mark.smoke
def test_the_same_again_runs_nothing_and_says_the_same(replayed: tuple[Path, str, Ended]) -> None:
    project, _, ended = replayed
    began = time.monotonic()
    again = evertrain("backtest", project, *DATES, *FEWER, "--json")
    assert again.json == ended.json
    assert time.monotonic() - began < 30
    table = evertrain("backtest", project, *DATES, *FEWER, "--policy", "never")
    assert [line.split()[1] for line in table.out.splitlines() if "│" in line][:3] == [
        "never", "ours", "oracle"
    ]  # fmt: skip
    page = Path(table.out.splitlines()[-1].split("page:")[1].strip())
    assert "line p-never" in page.read_text()


@pytest.mark.smoke  # the trained project's whole run
def test_an_advice_is_never_silent(project: Path) -> None:
    nothing_new = evertrain("advise", project, "--json").json
    assert (nothing_new["advice"], nothing_new["retrain"]) == ("cannot say", True)
    assert len(nothing_new["unknown"]) == 3
    write_months(project / "data", 3)
    came = evertrain("advise", project, "--json").json
    assert any("on 1,550 rows that came later" in reason for reason in came["reasons"])
    assert not any("no label is newer" in words for words in came["unknown"])
    said = evertrain("advise", project).out
    assert "advice:   " in said
    assert "unknown:  " in said


def test_without_a_champion_it_is_advised_to_retrain(fresh_project: Path) -> None:
    found = evertrain("advise", fresh_project, "--json").json
    assert (found["advice"], found["reasons"]) == ("retrain", ["there is no champion yet"])


def planned(project: Path, **given: Any) -> Planned:
    usual = {"first": "2025-03-01", "last": "2025-04-20", "every": "month", "policies": []}
    return plan(open_project(project), given=[], **(usual | given))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"last": "2025-02-01"}, "--from 2025-03-01 is after --to 2025-02-01"),
        ({"first": "2025-02-30"}, "--from '2025-02-30' is no day"),
        ({"policies": ["sometimes"]}, "hint: policies: never, newest, point, ours, drift"),
        ({"every": "fortnight"}, "hint: it is day, week, month, quarter"),
        ({"every": "0d"}, "--every '0d' is no schedule"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_hint(
    given: dict[str, Any], said: str, fresh_project: Path
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        planned(fresh_project, **given)
    assert said in str(refused.value)
    assert "hint: " in str(refused.value)
    assert not (fresh_project / ".evertrain").exists()


def test_a_project_without_times_is_refused(fresh_project: Path) -> None:
    file = fresh_project / "evertrain.yaml"
    text = file.read_text().replace("  time_column: when\n", "").replace("by: time, ", "by: hash, ")
    text = text.replace("holdout: 7, validation: 7", "holdout: 0.1, validation: 0.1")
    file.write_text(text.replace("decision:\n", "decision:\n  cluster: row\n"))
    with pytest.raises(ConfigurationError, match=r"names no data\.time_column(.|\n)*hint: "):
        planned(fresh_project)


def test_a_refusal_ends_the_command_with_two_and_says_nothing_on_stdout(
    fresh_project: Path,
) -> None:
    ended = evertrain("backtest", fresh_project, "--from", "2025-01-01", "--to", "2025-03-01")
    assert (ended.code, ended.out) == (2, "")
    assert "no row is older than --from 2025-01-01: the first is of 2025-01-01 00:00" in ended.err
    assert "hint: " in ended.err
