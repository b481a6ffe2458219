"""The dashboard: JSON that Grafana takes, and expressions that ask for what the watcher exports."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from tests.cluster.installations import cluster_of
from tests.infra.promql import problems

Panel = dict[str, Any]

CONFIG_MAPS = cluster_of("production").of("ConfigMap")
((NAME, CONFIG_MAP),) = (
    (name, each) for name, each in CONFIG_MAPS.items() if name.startswith("evertrain-dashboard")
)
DASHBOARD = json.loads(CONFIG_MAP["data"]["evertrain.json"])
PANELS: list[Panel] = DASHBOARD["panels"]
SHOWN = [panel for panel in PANELS if panel["type"] != "row"]
# Grafana's own panels that need no plugin.
KINDS = {"stat", "timeseries", "state-timeline", "table", "row"}


def test_grafanas_sidecar_finds_it() -> None:
    assert CONFIG_MAP["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert len(CONFIG_MAP["data"]["evertrain.json"]) < 250_000  # a ConfigMap holds a mebibyte


def test_it_has_what_grafana_asks_for() -> None:
    assert DASHBOARD["schemaVersion"] == 39  # Grafana 10.3 and later read it as it is
    assert DASHBOARD["uid"] == "evertrain"
    assert DASHBOARD["title"]
    assert "id" not in DASHBOARD, "an id of one Grafana means nothing in another"
    assert DASHBOARD["timezone"] == "utc"


def test_ids_and_titles_are_unique() -> None:
    assert max(Counter(panel["id"] for panel in PANELS).values()) == 1
    for panel in SHOWN:
        refs = [target["refId"] for target in panel["targets"]]
        assert refs
        assert len(set(refs)) == len(refs), panel["title"]
    assert max(Counter(panel["title"] for panel in PANELS).values()) == 1


def test_panels_lie_beside_each_other_within_the_grid() -> None:
    places = [(panel["title"], panel["gridPos"]) for panel in PANELS]
    for title, place in places:
        assert place["x"] >= 0, title
        assert place["x"] + place["w"] <= 24, title
    for (one, a), (other, b) in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        above = a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
        assert beside or above, f"{one!r} lies over {other!r}"


@pytest.mark.parametrize("panel", SHOWN, ids=lambda panel: str(panel["title"]))
def test_a_panel_asks_for_what_the_watcher_exports(panel: Panel) -> None:
    assert panel["type"] in KINDS
    assert panel["description"]
    for target in panel["targets"]:
        assert not problems(target["expr"])
        assert "$namespace" in target["expr"]
        assert "$project" in target["expr"]
        assert target["datasource"]["uid"] == "${datasource}"


def test_every_variable_that_is_used_is_defined() -> None:
    defined = {each["name"] for each in DASHBOARD["templating"]["list"]}
    assert defined == {"datasource", "namespace", "project"}
    for each in DASHBOARD["templating"]["list"]:
        if each["type"] == "query":
            expression = each["definition"].removeprefix("label_values(").rpartition(",")[0]
            assert not problems(expression), each["name"]
