"""The table of metrics: names that Prometheus takes, and a client library that takes the table."""

import re

import prometheus_client
import pytest

from infra.metrics import EVENT_TO_START_BUCKETS, METRICS, series

CLASSES = {
    "counter": prometheus_client.Counter,
    "gauge": prometheus_client.Gauge,
    "histogram": prometheus_client.Histogram,
}


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_is_exported_under_the_names_that_the_table_says(name: str) -> None:
    registry = prometheus_client.CollectorRegistry()
    metric = METRICS[name]
    exported = CLASSES[metric.kind](name, metric.help, metric.label_names, registry=registry)
    exported.labels(*("x" for _ in metric.label_names))
    text = prometheus_client.generate_latest(registry).decode()
    samples = set(re.findall(r"^(\w+)\{", text, flags=re.MULTILINE))
    assert set(series(name)) == {each for each in samples if not each.endswith("_created")}


@pytest.mark.parametrize("name", METRICS)
def test_a_name_says_its_kind_and_its_unit(name: str) -> None:
    metric = METRICS[name]
    assert name.endswith("_total") == (metric.kind == "counter")
    assert metric.help.endswith(".")
    if metric.kind == "histogram" or "Unix time" in metric.help:
        assert name.endswith("_seconds")


def test_buckets_rise() -> None:
    assert list(EVENT_TO_START_BUCKETS) == sorted(set(EVENT_TO_START_BUCKETS))
