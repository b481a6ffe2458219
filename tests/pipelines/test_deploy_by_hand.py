"""`evertrain deploy` where others have been at work in Kubeflow, by hand or with other projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import kfp_home as kfp_home
from tests.cluster.conftest import kfp_server as kfp_server
from tests.cluster.kfp_server import KfpServer
from tests.pipelines.deploy_case import DEPLOYABLE, NIGHTLY, WEEKLY, Case, new_case

CLUSTER = DEPLOYABLE["cluster"]


@pytest.fixture
def case(tmp_path: Path, kfp_server: KfpServer, monkeypatch: pytest.MonkeyPatch) -> Case:
    return new_case(tmp_path, kfp_server, monkeypatch)


def test_what_left_the_file_goes_and_what_others_made_stays(case: Case) -> None:
    assert case.deploy().code == 0
    theirs = case.one("nightly")
    by_hand = type(theirs)(
        "theirs", theirs.experiment, "", theirs.source, dict(theirs.trigger), 1, True
    )
    copy = type(theirs)(
        "Clone of small-nightly", theirs.experiment, "", theirs.source, dict(theirs.trigger), 1,
        True, description=theirs.description,
    )  # fmt: skip
    for each in (by_hand, copy):
        case.server.recurring_runs[each.key] = each
    case.write({"schedules": [NIGHTLY]})
    plan = case.plan()
    assert plan["schedule weekly"] == "remove"
    assert plan["schedule theirs"] == plan["schedule Clone of small-nightly"] == "leave"
    ended = case.deploy()
    assert "somebody else's: it is left alone" in ended.out
    assert set(case.schedules) == {"small-nightly", "theirs", "Clone of small-nightly"}
    assert case.to_do() == {}


def test_what_was_changed_by_hand_is_said_and_put_back(case: Case) -> None:
    assert case.deploy().code == 0
    case.one("nightly").trigger["cron_schedule"]["cron"] = "0 0 0 1 1 *"
    lines = {line["name"]: line for line in case.deploy("--dry-run", "--json").json["plan"]}
    assert "changed by hand" in lines["nightly"]["why"]
    assert lines["nightly"]["changes"] == [
        {"what": "cron", "now": "0 0 0 1 1 *", "wanted": "0 0 2 * * *"}
    ]
    assert case.deploy().code == 0
    assert case.one("nightly").trigger["cron_schedule"]["cron"] == "0 0 2 * * *"


def test_what_was_switched_off_by_hand_is_said_before_it_is_switched_on(case: Case) -> None:
    assert case.deploy().code == 0
    case.one("nightly").enabled = False
    assert "it is disabled in Kubeflow, enabled in the file" in case.deploy("--dry-run").out
    assert not case.one("nightly").enabled
    assert case.deploy().code == 0
    assert case.one("nightly").enabled


def test_a_version_that_somebody_uploaded_by_hand_is_followed_by_ours(case: Case) -> None:
    assert case.deploy().code == 0
    (pipeline,) = case.server.pipelines.values()
    (ours,) = pipeline.versions.values()
    theirs = type(ours)(
        pipeline.key, "try", "try", ours.spec, ours.text, order=99, created=ours.created + 5
    )
    pipeline.versions[theirs.key] = theirs
    assert "try was uploaded by somebody else" in case.deploy("--dry-run").out


def test_two_pipelines_of_one_project_leave_each_others_schedules_alone(case: Case) -> None:
    assert case.deploy().code == 0
    case.write({"cluster": {**CLUSTER, "pipeline": "small-staging"}, "schedules": [NIGHTLY]})
    assert case.deploy().code == 0
    assert {p.display_name for p in case.server.pipelines.values()} == {"small", "small-staging"}
    assert len(case.schedules["small-nightly"]) == 2
    assert len(case.schedules["small-weekly"]) == 1
    assert case.to_do() == {}
    case.write({"cluster": CLUSTER, "schedules": [NIGHTLY, WEEKLY]})
    assert case.to_do() == {}


def test_schedules_of_a_pipeline_that_was_deleted_are_cleared_away(case: Case) -> None:
    assert case.deploy().code == 0
    case.server.pipelines.clear()
    assert case.deploy().code == 0
    (pipeline,) = case.server.pipelines.values()
    for name in ("nightly", "weekly"):
        assert case.one(name).source.pipeline == pipeline.key
    assert case.to_do() == {}


def test_a_pipeline_that_was_renamed_is_not_made_a_second_time(case: Case) -> None:
    assert case.deploy().code == 0
    (pipeline,) = case.server.pipelines.values()
    pipeline.display_name = "Flights (do not touch)"
    ended = case.deploy()
    assert ended.code == 2
    assert "was renamed 'Flights (do not touch)'" in ended.err
    assert "cluster.pipeline: Flights (do not touch)" in ended.err
    assert len(case.server.pipelines) == 1
    case.write({"cluster": {**CLUSTER, "pipeline": "Flights (do not touch)"}})
    assert case.to_do() == {}, "as the hint says"
