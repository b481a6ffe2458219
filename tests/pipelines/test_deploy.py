"""`evertrain deploy`: what it plans, what it does, and that it does it once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.kfp_server import KfpServer
from tests.pipelines.deploy_case import DEPLOYABLE, NIGHTLY, WEEKLY, Case, new_case

CLUSTER = DEPLOYABLE["cluster"]


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    return new_case(tmp_path, kfp_server, monkeypatch)


def test_a_dry_run_shows_the_plan_and_changes_nothing(case: Case) -> None:
    ended = case.deploy("--dry-run")
    assert ended.code == 0
    for words in ("create", "upload", "at 02:00 UTC every day", "at 04:00 UTC, only on Sunday"):
        assert words in ended.out
    assert "next:     nightly at 20" in ended.out
    assert ended.out.count("02:00:00 UTC") == 3, "the next three times"
    assert case.changing_calls() == []


def test_a_deploy_makes_pipeline_version_and_schedules(case: Case) -> None:
    ended = case.deploy()
    assert ended.code == 0, ended.err
    (pipeline,) = case.server.pipelines.values()
    assert pipeline.display_name == "small"
    (version,) = pipeline.versions.values()
    assert version.name.startswith("1-")
    defaults = version.spec["pipeline_spec"]["root"]["inputDefinitions"]["parameters"]
    assert defaults["project"]["defaultValue"] == "/app/project"
    assert defaults["store"]["defaultValue"] == "s3://bucket/store"
    nightly, weekly = case.one("nightly"), case.one("weekly")
    assert nightly.enabled
    assert nightly.no_catchup
    assert nightly.max_concurrency == 1
    assert nightly.service_account == "evertrain-run"
    assert nightly.trigger == {"cron_schedule": {"cron": "0 0 2 * * *"}}
    assert nightly.source.parameters == {"overrides": [], "force": False}
    assert weekly.source.parameters == {"overrides": ["training.epochs=5"], "force": True}
    assert {each.source.version for each in (nightly, weekly)} == {version.key}
    (experiment,) = [e for e in case.server.experiments.values() if e.name == "small"]
    assert nightly.experiment == experiment.key


def test_what_it_deployed_fires_and_starts(case: Case) -> None:
    assert case.deploy().code == 0
    run = case.server.tick(case.one("nightly").key)
    assert run is not None
    assert run.source.parameters == {"overrides": [], "force": False}


def test_a_second_deploy_has_nothing_to_do(case: Case) -> None:
    assert case.deploy().code == 0
    before = case.changing_calls()
    ended = case.deploy()
    assert ended.code == 0
    assert "nothing to do" in ended.out
    assert case.changing_calls() == before


def test_a_folder_that_moved_deploys_the_same(case: Case, tmp_path: Path) -> None:
    """CI checks out anew each time; what is compiled must not know where."""
    case.write({"cluster": {**CLUSTER, "project": "/app/project"}})
    assert case.deploy().code == 0
    case.folder = case.folder.rename(tmp_path / "elsewhere")
    assert case.to_do() == {}


def test_a_change_of_the_pods_is_a_new_version_that_every_schedule_runs(case: Case) -> None:
    assert case.deploy().code == 0
    case.write({"cluster": {**CLUSTER, "pods": {"default": {"memory": "8Gi"}}}})
    plan = case.deploy("--dry-run")
    assert "what is compiled now is not what is in 1-" in plan.out
    assert case.deploy().code == 0
    first, second = case.versions
    assert (first[:2], second[:2]) == ("1-", "2-")
    newest = max(*case.server.pipelines.values().__iter__().__next__().versions.values(),
                 key=lambda v: v.order)  # fmt: skip
    for name in ("nightly", "weekly"):
        assert case.one(name).source.version == newest.key
        assert case.one(name).enabled
    assert case.to_do() == {}


def test_going_back_to_what_was_deployed_before_makes_it_the_newest_again(case: Case) -> None:
    """The watcher starts the newest version, and so does the user interface."""
    assert case.deploy().code == 0
    case.write({"cluster": {**CLUSTER, "pods": {"default": {"memory": "8Gi"}}}})
    assert case.deploy().code == 0
    case.write({"cluster": CLUSTER})
    assert "what was deployed once, before 2-" in case.deploy("--dry-run").out
    assert case.deploy().code == 0
    assert [name[:2] for name in case.versions] == ["1-", "2-", "3-"]
    assert case.versions[0][2:] == case.versions[2][2:]
    assert case.to_do() == {}


def test_a_change_of_training_is_a_new_version_because_the_image_must_hold_it(case: Case) -> None:
    assert case.deploy().code == 0
    case.write({"training": {**case.settings["training"], "epochs": 4}})
    assert [what for what in case.to_do() if what.startswith("version")]


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"cron": "0 0 3 * * *"}, ("cron", "0 0 2 * * *", "0 0 3 * * *")),
        ({"force": True}, ("parameters", {"overrides": [], "force": False},
                           {"overrides": [], "force": True})),
        ({"settings": ["training.epochs=2"]}, ("parameters", {"overrides": [], "force": False},
                           {"overrides": ["training.epochs=2"], "force": False})),
        ({"catch_up": True}, ("catch_up", False, True)),
    ],
)  # fmt: skip
def test_a_schedule_that_changed_is_replaced(
    case: Case, change: dict[str, Any], seen: tuple[str, Any, Any]
) -> None:
    assert case.deploy().code == 0
    before = case.one("nightly").key
    case.write({"schedules": [{**NIGHTLY, **change}, WEEKLY]})
    lines = {line["name"]: line for line in case.deploy("--dry-run", "--json").json["plan"]}
    (found,) = lines["nightly"]["changes"]
    assert (found["what"], found["now"], found["wanted"]) == seen
    assert "by hand" not in lines["nightly"]["why"]
    assert case.deploy().code == 0
    assert case.one("nightly").key != before
    assert case.one("nightly").enabled
    assert case.to_do() == {}


def test_the_old_schedule_is_off_before_the_new_one_is_on(case: Case) -> None:
    """So none fires twice; and one is there at any time."""
    assert case.deploy().code == 0
    old = case.one("nightly").key
    seen: list[tuple[int, int]] = []

    def watch(call: object) -> None:
        there = case.schedules.get("small-nightly", [])
        seen.append((len(there), sum(each.enabled for each in there)))

    case.server.faults.script = watch
    case.write({"schedules": [{**NIGHTLY, "cron": "0 0 3 * * *"}, WEEKLY]})
    assert case.deploy().code == 0
    watch(None)
    assert case.one("nightly").key != old
    assert min(there for there, _ in seen) == 1
    assert max(there for there, _ in seen) == 2
    assert max(firing for _, firing in seen) == 1


def test_a_schedule_is_switched_off_and_on_in_place(case: Case) -> None:
    assert case.deploy().code == 0
    key = case.one("nightly").key
    case.write({"schedules": [{**NIGHTLY, "enabled": False}, WEEKLY]})
    assert case.to_do() == {"schedule nightly": "disable"}
    assert case.deploy().code == 0
    assert (case.one("nightly").enabled, case.one("nightly").key) == (False, key)
    assert case.to_do() == {}
    case.write({"schedules": [NIGHTLY, WEEKLY]})
    assert case.to_do() == {"schedule nightly": "enable"}
    assert case.deploy().code == 0
    assert (case.one("nightly").enabled, case.one("nightly").key) == (True, key)


def test_a_new_schedule_may_begin_switched_off(case: Case) -> None:
    case.write({"schedules": [{**NIGHTLY, "enabled": False}]})
    assert case.deploy().code == 0
    assert not case.one("nightly").enabled


def test_remove_takes_the_schedules_and_nothing_else(case: Case) -> None:
    assert case.deploy().code == 0
    run = case.server.tick(case.one("nightly").key)
    assert run is not None
    case.write({"cluster": {}})  # what is taken away need not be deployable
    assert case.deploy("--remove").code == 0
    assert case.schedules == {}
    assert len(case.server.pipelines) == 1
    assert run.key in case.server.runs
    assert "nothing to do" in case.deploy("--remove").out


def test_without_a_terminal_and_without_yes_nothing_is_done(case: Case) -> None:
    ended = case.deploy(yes=False)
    assert ended.code == 2
    assert "there is no terminal to ask on" in ended.err
    assert "--yes" in ended.err
    assert case.changing_calls() == []
    assert case.deploy().code == 0
    assert case.deploy(yes=False).code == 0, "where there is nothing to do nothing is asked"


def test_json_is_one_object_that_says_everything(case: Case) -> None:
    said = case.deploy("--json").json
    assert said["applied"] is True
    assert said["host"] == case.server.url
    assert {line["do"] for line in said["plan"]} == {"create", "upload"}
    assert len(said["next"]["nightly"]) == 3
    again = case.deploy("--json").json
    assert again["to_do"] is False
    assert again["digest"] == said["digest"]


def test_no_secret_is_in_anything_that_is_uploaded(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLACK_URL", "https://hooks.example.org/hunter2")
    case.write(
        {
            "alerts": {"channels": [{"type": "slack", "url_env": "SLACK_URL"}]},
            "cluster": {**CLUSTER, "secrets": {"SLACK_URL": {"secret": "alerts"}}},
        }
    )
    assert case.deploy().code == 0
    (pipeline,) = case.server.pipelines.values()
    (version,) = pipeline.versions.values()
    assert "hunter2" not in version.text
    platform = list(yaml.safe_load_all(version.text))[1]
    assert "alerts" in json.dumps(platform)
