"""Schedules of the double, through the stock `kfp.Client`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from kfp_server_api import ApiException

from tests.cluster.kfp_samples import compiled, sum_up
from tests.cluster.kfp_server import KfpServer


@pytest.fixture
def client(kfp_server: KfpServer, kfp_client: Any) -> Any:
    return kfp_client(kfp_server)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    return compiled(sum_up, tmp_path)


def test_a_schedule_is_made_switched_fired_and_deleted(
    kfp_server: KfpServer, client: Any, package: Path
) -> None:
    pipeline = client.upload_pipeline(str(package), "p")
    (version,) = client.list_pipeline_versions(pipeline.pipeline_id).pipeline_versions
    experiment = client.create_experiment("nightly")
    made = client.create_recurring_run(
        experiment.experiment_id, "nightly", cron_expression="0 0 2 * * *", params={"a": 3},
        pipeline_id=pipeline.pipeline_id, version_id=version.pipeline_version_id,
        start_time="2026-01-01T00:00:00Z", end_time="2027-01-01T00:00:00Z", no_catchup=True,
    )  # fmt: skip
    assert (made.mode, made.status, made.max_concurrency) == ("ENABLE", "ENABLED", "1")
    assert made.trigger.cron_schedule.cron == "0 0 2 * * *"
    assert made.trigger.cron_schedule.end_time == datetime(2027, 1, 1, tzinfo=UTC)
    key = made.recurring_run_id

    def at(month: int, day: int) -> datetime:
        return datetime(2026, month, day, 2, tzinfo=UTC)

    run = kfp_server.tick(key, at=at(3, 1))
    assert run is not None
    shown = client.get_run(run.key)
    assert (shown.recurring_run_id, shown.scheduled_at) == (key, at(3, 1))
    assert shown.runtime_config.parameters == {"a": 3}
    assert kfp_server.tick(key, at=at(3, 2)) is None  # one at a time
    kfp_server.set_state(run.key, "SUCCEEDED")
    client.disable_recurring_run(key)
    assert client.get_recurring_run(key).status == "DISABLED"
    assert kfp_server.tick(key, at=at(3, 2)) is None
    client.enable_recurring_run(key)
    assert kfp_server.tick(key, at=datetime(2027, 1, 2, tzinfo=UTC)) is None  # over
    assert kfp_server.tick(key, at=at(3, 2)) is not None
    assert kfp_server.due(key, since=at(3, 2), until=at(3, 5)) == [at(3, 5)]
    assert [r.display_name for r in client.list_recurring_runs().recurring_runs] == ["nightly"]
    client.delete_recurring_run(key)
    assert client.list_recurring_runs(experiment_id=experiment.experiment_id).recurring_runs is None


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"cron_expression": "0 2 * *"}, "Expected 5 or 6 fields, found 4"),
        ({"cron_expression": "61 0 2 * * *"}, "End of range (61) above maximum (59)"),
        ({"interval_second": -1}, "Found invalid period schedule interval -1"),
        ({"interval_second": 60, "max_concurrency": 11}, "at least 1 and at most 10"),
        ({"interval_second": 60, "start_time": "tomorrow"}, "invalid google.protobuf.Timestamp"),
        ({"interval_second": 60, "params": {}}, "parameter a is not optional"),
    ],
)
def test_a_schedule_that_means_nothing_is_refused(
    settings: dict[str, Any], complaint: str, client: Any, package: Path
) -> None:
    experiment = client.create_experiment("nightly")
    with pytest.raises(ApiException) as error:
        client.create_recurring_run(
            experiment.experiment_id, "s", pipeline_package_path=str(package),
            **{"params": {"a": 1}, **settings},
        )  # fmt: skip
    assert error.value.status == 400
    assert complaint in json.loads(error.value.body)["message"]
