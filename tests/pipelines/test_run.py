"""Whole runs through the command line, each command a process of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from components.common.image import IMAGE
from components.common.layout import tracking_uri
from components.common.project import open_project
from components.common.records import STEPS
from components.common.run_record import RunRecord
from components.common.settings import ProjectSettings
from tests.small_project.command import Ended, command, environment, evertrain
from tests.small_project.make_data import write_months

pytestmark = pytest.mark.slow

# Runs where none of our packages can be imported: whoever serves the model has only MLflow.
SCORE = """
import sys
for name in ("components", "pipelines", "training_core", "infra", "task"):
    sys.modules[name] = None
import mlflow, pandas as pd
mlflow.set_tracking_uri(sys.argv[1])
row = pd.DataFrame({"kind": ["bread"], "number": [0.3], "noise": [0.1]})
print(mlflow.pyfunc.load_model("models:/small@champion").predict(row)["prediction"].iloc[0])
"""


@pytest.fixture(scope="module")
def first(trained_project: Path) -> Ended:
    beside = trained_project.parent
    return Ended(
        int((beside / "run.code").read_text()),
        (beside / "run.out").read_text(),
        (beside / "run.err").read_text(),
    )


@pytest.fixture(scope="module")
def grown(trained_project: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """March has arrived, and the second run trains on two processes."""
    folder = tmp_path_factory.mktemp("grown") / "project"
    shutil.copytree(trained_project, folder)
    write_months(folder / "data", 3)
    return folder, evertrain("run", folder, "--json", "--set", "training.processes=2")


def stored(project: Path, run: str, name: str) -> Path:
    return project / ".evertrain" / "store" / "runs" / run / name


def figures(project: Path, run: str, step: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stored(project, run, f"{step}.json").read_text())["figures"]
    return found


def score(project: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-I", "-W", "ignore", "-c", SCORE, tracking_uri(open_project(project))],
        capture_output=True, text=True, timeout=120, cwd="/", env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def test_the_first_model_is_promoted_on_floors_and_baselines(first: Ended) -> None:
    assert first.code == 0
    record = first.json
    assert (record["status"], record["verdict"]) == ("finished", "promote")
    assert (record["champion_before"], record["champion_after"]) == ("", "1")
    assert [s["step"] for s in record["steps"]] == list(STEPS)
    assert all(s["status"] == "done" and not s["cache_hit"] for s in record["steps"])
    assert record["data_rows"] == 59 * 50
    assert set(record["metrics"]) == {
        "challenger", "prior", "input_independent", "rule", "table", "linear", "trees"
    }  # fmt: skip


def test_stdout_is_the_run_record_and_nothing_else(trained_project: Path, first: Ended) -> None:
    record = first.json
    jsonschema.validate(record, RunRecord.model_json_schema(mode="serialization"))
    assert record == json.loads(stored(trained_project, record["run"], "run.json").read_text())
    assert stored(trained_project, record["run"], "report.html").stat().st_size < 300_000


def test_progress_goes_to_stderr_a_line_a_step(first: Ended) -> None:
    lines = [line.split()[0] for line in first.err.splitlines() if line.endswith(" s")]
    assert sorted(lines) == sorted(STEPS)


def test_the_same_again_is_nothing_new(project: Path, first: Ended) -> None:
    again = evertrain("run", project, "--json")
    assert again.code == 0, again.err
    record = again.json
    assert record["status"] == "nothing_new"
    assert first.json["run"] in record["reasons"][0]
    done = {s["step"] for s in record["steps"] if s["status"] == "done"}
    assert done == {"snapshot_data", "report_run"}
    assert record["champion_after"] == "1"
    assert stored(project, record["run"], "report.html").is_file()


def test_new_data_is_compared_with_the_champion(grown: tuple[Path, Ended]) -> None:
    folder, ended = grown
    assert ended.code == 0, ended.err
    record = ended.json
    evaluated = figures(folder, record["run"], "evaluate_model")
    assert (evaluated["champion"], evaluated["compared_entry"]) == ("1", 1)
    assert evaluated["comparisons"][0]["against"] == "champion"
    assert evaluated["comparisons"][0]["clusters"] == 7
    assert [g["outcome"] for g in evaluated["gates"] if g["name"] == "champion"] == ["pass"]
    assert "champion" in record["metrics"]
    assert (record["verdict"], record["champion_before"], record["champion_after"]) == (
        "promote", "1", "2"
    )  # fmt: skip
    snapshot = figures(folder, record["run"], "snapshot_data")
    assert [o["key"] for o in snapshot["objects"]][-1] == "2025-03.parquet"
    validated = figures(folder, record["run"], "validate_data")
    (drift,) = validated["drift"]
    assert drift["reference"] == "the data of champion 1"
    assert {d["column"] for d in drift["columns"]} >= {"kind", "number", "noise"}


def test_training_runs_on_two_processes(grown: tuple[Path, Ended]) -> None:
    folder, ended = grown
    trained = figures(folder, ended.json["run"], "train_distributed")
    assert trained["processes"] == 2
    split = figures(folder, ended.json["run"], "split_data")
    assert trained["epochs"] == pytest.approx(3, abs=256 / split["parts"]["train"]["rows"])
    assert not list((folder / ".evertrain" / "scratch").glob("train-*"))


def test_champion_history_and_runs_say_what_happened(grown: tuple[Path, Ended]) -> None:
    folder, ended = grown
    champion = evertrain("champion", folder, "--json").json
    assert (champion["champion"], champion["previous"]) == ("2", "1")
    assert champion["entry"]["run"] == ended.json["run"]
    assert "champion: version 2" in evertrain("champion", folder).out
    promotions = evertrain("history", folder, "--json").json["promotions"]
    assert [(p["number"], p["version"]) for p in promotions] == [(1, "1"), (2, "2")]
    assert [p["fence"] for p in promotions] == [1, 2], "each run has a lease of its own"
    assert evertrain("lease", folder, "--json").json["free"], "and has let go of it"
    assert "promote" in evertrain("history", folder).out
    runs = evertrain("runs", folder, "--json").json["runs"]
    assert [r["champion_after"] for r in runs] == ["1", "2"]
    assert runs[-1] == ended.json
    assert ended.json["run"] in evertrain("runs", folder).out


def test_report_writes_the_page_again(project: Path, first: Ended) -> None:
    run = first.json["run"]
    page = stored(project, run, "report.html")
    page.unlink()
    ended = evertrain("report", run, "--project", project)
    assert (ended.code, ended.out.strip()) == (0, str(page))
    assert page.is_file()
    again = evertrain("report", run[:12], "--project", project, "--json")
    assert again.json["run"] == run
    unknown = evertrain("report", "20010101", "--project", project)
    assert unknown.code == 2
    assert run in unknown.err


def test_schema_is_the_schema_of_the_settings(fresh_project: Path) -> None:
    schema = evertrain("schema").json
    assert schema == ProjectSettings.model_json_schema()
    jsonschema.validate(yaml.safe_load((fresh_project / "evertrain.yaml").read_text()), schema)


def test_doctor_finds_a_healthy_project_healthy_and_a_missing_folder(fresh_project: Path) -> None:
    healthy = evertrain("doctor", fresh_project, "--json")
    assert healthy.code == 0, healthy.out
    names = {finding["name"]: finding["words"] for finding in healthy.json["findings"]}
    assert names["data"].startswith("2 objects")
    assert "create-if-absent works" in names["object store"]
    shutil.rmtree(fresh_project / "data")
    sick = evertrain("doctor", fresh_project)
    assert sick.code == 2
    assert "no object below" in sick.out


def test_compile_writes_a_pipeline_for_the_project(fresh_project: Path, tmp_path: Path) -> None:
    file = tmp_path / "new" / "pipeline.yaml"
    ended = evertrain("compile", fresh_project, "-o", file, "--project-in-image", "/p", "--json")
    assert ended.code == 0, ended.err
    assert ended.json == {
        "file": str(file), "image": IMAGE, "project": "/p"
    }  # fmt: skip
    (pipeline, *_) = yaml.safe_load_all(file.read_text())
    defaults = pipeline["root"]["inputDefinitions"]["parameters"]
    assert defaults["project"]["defaultValue"] == "/p"


def test_rollback_puts_version_1_back_for_whoever_serves_it(
    grown: tuple[Path, Ended], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(grown[0], tmp_path / "project"))
    before = score(folder)
    ended = evertrain("rollback", folder, "--reason", "complaints", "--json")
    assert ended.code == 0, ended.err
    assert (ended.json["number"], ended.json["action"], ended.json["version"]) == (
        3, "rollback", "1"
    )  # fmt: skip
    after = score(folder)
    assert 0 < after < 1
    assert before != after
    assert "version 1 is champion already" in evertrain("rollback", folder, "--to", "1").err
    unknown = evertrain("rollback", folder, "--to", "9")
    assert unknown.code == 2
    assert "hint: versions that were champion: 1, 2" in unknown.err


def test_of_two_runs_in_one_folder_the_second_is_skipped_and_says_who_is_under_way(
    fresh_project: Path,
) -> None:
    holder = subprocess.Popen(
        command("run", fresh_project), cwd="/", env=environment(), start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    lock = fresh_project / ".evertrain" / "run.lock"
    try:
        until = time.monotonic() + 60
        while not (lock.exists() and str(holder.pid) in lock.read_text()):
            assert holder.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        second = evertrain("run", fresh_project, "--json")
        assert second.code == 0, second.err
        assert second.json["status"] == "skipped"
        assert re.search(
            rf"process {holder.pid}|run \S+ of \S+ \(evertrain run\) holds the lease since",
            second.json["reasons"][0],
        )
        os.killpg(holder.pid, signal.SIGINT)  # as Ctrl-C does: to the whole group
        said, _ = holder.communicate(timeout=60)
    finally:
        if holder.poll() is None:
            os.killpg(holder.pid, signal.SIGKILL)
            holder.communicate()
    assert holder.returncode == 130
    assert "run the same command again" in said
    assert "Traceback" not in said
    runs = evertrain("runs", fresh_project, "--json").json["runs"]
    assert sorted(record["status"] for record in runs) == ["interrupted", "skipped"]
    assert evertrain("lease", fresh_project, "--json").json["free"]
