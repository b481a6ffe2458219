"""The alerts: each asks for what the watcher exports, and fires on what it is meant for alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from infra.metrics import METRICS, STATUSES
from tests.cluster.installations import cluster_of
from tests.infra.loopback import binary
from tests.infra.promql import SERIES, asked, problems

(RULES,) = cluster_of("production").of("PrometheusRule").values()
ALERTS = {rule["alert"]: rule for group in RULES["spec"]["groups"] for rule in group["rules"]}
HOUR, DAY = 60, 24 * 60


class Case(NamedTuple):
    """Series by the minute in promtool's notation, and whether the alert fires at a minute.

    promtool's clock begins at 0, so a moment is a number of seconds: `0+60x60` is now, each minute.
    `hourly`: a sample each five minutes, and rules each hour, for what takes weeks.
    """

    series: dict[str, str]
    minute: int
    fires: bool
    hourly: bool = False


POLL = "evertrain_watch_last_poll_timestamp_seconds"
ERRORS = 'evertrain_watch_errors_total{kind="source"}'
PENDING = "evertrain_watch_pending_since_timestamp_seconds"
HELD = "evertrain_lease_held"
AGE = "evertrain_lease_age_seconds"
STATUS = 'evertrain_last_run_status{status="%s"}'
PROMOTED = "evertrain_champion_promoted_timestamp_seconds"
A, B = '{pod="a"}', '{pod="b"}'

CASES: dict[str, dict[str, Case]] = {
    "EvertrainWatcherDown": {
        "no watcher": Case({}, 20, True),
        "one watcher": Case({POLL: "0+60x60"}, 20, False),
        "it restarts": Case({POLL: "0+60x20 stale _x4 1500+60x60"}, 30, False),
        "another's watcher alone": Case({POLL + '{namespace="other"}': "0+60x60"}, 20, True),
    },
    "EvertrainWatcherNotPolling": {
        "it polls": Case({POLL: "0+60x60"}, 50, False),
        "it stopped": Case({POLL: "60x60"}, 50, True),
        "it never did": Case({POLL: "0x60"}, 50, True),
        "one of two stopped": Case({POLL + A: "60x60", POLL + B: "0+60x60"}, 50, False),
        "a slow poll": Case({POLL: "0x10 600x10 1200x10"}, 19, False),
    },
    "EvertrainWatcherErrors": {
        "none": Case({ERRORS: "0x120"}, 100, False),
        "two an hour": Case({ERRORS: "0x29 1x29 2x29 3x29"}, 100, False),
        "one a minute": Case({ERRORS: "0+1x120"}, 100, True),
        "many, and then none": Case({ERRORS: "0+1x30 30x90"}, 100, False),
    },
    "EvertrainDataWaiting": {
        "nothing waits": Case({PENDING: "0x300", HELD: "0x300"}, 250, False),
        "an hour": Case({PENDING: "60x300", HELD: "0x300"}, HOUR, False),
        "three hours": Case({PENDING: "60x300", HELD: "0x300"}, 3 * HOUR, True),
        "three hours, behind a run": Case({PENDING: "60x300", HELD: "1x300"}, 3 * HOUR, False),
        "the run ended long ago": Case({PENDING: "60x300", HELD: "1x60 0x240"}, 4 * HOUR, True),
        "one of two has not looked yet": Case(
            {PENDING + A: "0x300", PENDING + B: "60x300", HELD + A: "0x300"}, 3 * HOUR, True
        ),
        "a newer delivery alone": Case({PENDING: "60x60 9000+0x200", HELD: "0x300"}, 200, False),
    },
    "EvertrainRunFailed": {
        **{
            status: Case({STATUS % status: "1x60"}, 30, status in ("failed", "interrupted"))
            for status in STATUSES
        },
        "it failed, and the next was promoted": Case(
            {STATUS % "failed": "1x20 0x40", STATUS % "promoted": "0x20 1x40"}, 40, False
        ),
    },
    "EvertrainRunStopped": {
        status: Case({STATUS % status: "1x60"}, 30, status == "stopped") for status in STATUSES
    },
    "EvertrainLeaseHeldLong": {
        "free": Case({AGE: "0x600"}, 2 * DAY, False, hourly=True),
        "half a day": Case({AGE: "0+300x600"}, 12 * HOUR, False, hourly=True),
        "more than a day": Case({AGE: "0+300x600"}, DAY + 2 * HOUR, True, hourly=True),
        "a run, and the next": Case(
            {AGE: "0+300x280 0+300x280"}, DAY + 2 * HOUR, False, hourly=True
        ),
    },
    "EvertrainChampionOld": {
        "none": Case({PROMOTED: f"0x{40 * 288}"}, 39 * DAY, False, hourly=True),
        "29 days": Case({PROMOTED: f"60x{40 * 288}"}, 29 * DAY, False, hourly=True),
        "31 days": Case({PROMOTED: f"60x{40 * 288}"}, 31 * DAY, True, hourly=True),
    },
}


def labelled(series: str) -> str:
    """With the labels that every series has, unless it says otherwise."""
    name, _, given = series.partition("{")
    labels = dict(re.findall(r'(\w+)="([^"]*)"', given))
    labels = {"namespace": "evertrain", "project": "flights", "pod": "a"} | labels
    inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
    return f"{name}{{{inside}}}"


def as_test(alert: str, case: Case) -> dict[str, Any]:
    """A file of promtool's with one test."""
    firing = f'count(ALERTS{{alertname="{alert}", alertstate="firing"}}) or vector(0)'
    expected = {"labels": "{}", "value": 1 if case.fires else 0}
    minutes = [{"expr": firing, "eval_time": f"{case.minute}m", "exp_samples": [expected]}]
    series = [{"series": labelled(name), "values": values} for name, values in case.series.items()]
    test = {"interval": "5m" if case.hourly else "1m", "input_series": series}
    return {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1h" if case.hourly else "1m",
        "tests": [test | {"promql_expr_test": minutes}],
    }


@pytest.fixture(scope="module")
def promtool(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The program, and a folder with the rules as Prometheus reads them."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "rules.yaml").write_text(yaml.safe_dump(RULES["spec"], allow_unicode=True))
    return binary("promtool"), folder


def test_prometheus_takes_the_rules(promtool: tuple[str, Path]) -> None:
    program, folder = promtool
    command = [program, "check", "rules", "--lint-fatal", str(folder / "rules.yaml")]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert f"{len(ALERTS)} rules found" in ended.stdout


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_fires_on_what_it_is_meant_for_alone(
    alert: str, promtool: tuple[str, Path]
) -> None:
    program, folder = promtool
    cases = CASES[alert]
    assert {case.fires for case in cases.values()} == {True, False}
    wrong = {}
    for name, case in cases.items():
        file = folder / "test.yaml"
        file.write_text(yaml.safe_dump(as_test(alert, case)))
        ended = subprocess.run(
            [program, "test", "rules", str(file)], capture_output=True, text=True
        )
        if ended.returncode:
            wrong[name] = ended.stdout + ended.stderr
    assert not wrong


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_asks_for_what_the_watcher_exports(alert: str) -> None:
    assert not problems(ALERTS[alert]["expr"])


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_what_and_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(rule["annotations"]) == {"summary", "description"}
    used = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    kept = re.findall(r"by \(([^)]*)\)", rule["expr"])
    assert all(used <= set(re.split(r",\s*", labels)) for labels in kept)
    # What the words name is there.
    named = set(re.findall(r"(?:deployment[/ ])(evertrain-\w+)", str(rule["annotations"])))
    assert named <= set(cluster_of("production").of("Deployment"))


def test_a_status_in_an_alert_is_one_that_there_is() -> None:
    for rule in ALERTS.values():
        for each in asked(rule["expr"]):
            if "status" in each.labels:
                assert set(each.labels["status"].split("|")) <= set(STATUSES)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("evertrain_watch_errors > 0", "nothing exports evertrain_watch_errors"),
        ('evertrain_lease_held{state="x"}', "has no label state"),
        ("sum by (queue) (evertrain_lease_held)", "no series has the label queue"),
        ("evertrain_watch_event_to_start_seconds", "nothing exports"),
        ("evertrain_lease_held == 1 and on (kind) evertrain_lease_age_seconds", "label kind"),
    ],
)
def test_a_wrong_expression_is_noticed(expression: str, words: str) -> None:
    assert any(words in text for text in problems(expression))


def test_what_is_no_promql_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        problems("sum by (project (evertrain_lease_held)")


def test_every_metric_of_the_table_is_used_in_an_alert_or_the_dashboard() -> None:
    expressions = [rule["expr"] for rule in ALERTS.values()]
    names = " ".join(cluster_of("production").of("ConfigMap"))
    (dashboard,) = re.findall(r"evertrain-dashboard-\w+", names)
    text = cluster_of("production").of("ConfigMap")[dashboard]["data"]["evertrain.json"]
    used = {SERIES[each.name] for expression in expressions for each in asked(expression)}
    used |= {SERIES[name] for name in re.findall(r"evertrain_\w+", text) if name in SERIES}
    assert used == set(METRICS)
