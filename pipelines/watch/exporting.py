"""The watcher's figures for Prometheus: those of `infra/metrics.py`, and no others."""

from __future__ import annotations

from typing import Any

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from infra.metrics import EVENT_TO_START_BUCKETS, METRICS, STATUSES


class Figures:
    """What is counted and measured, each with the project's name.

    Args:
        project: Its name.
    """

    def __init__(self, project: str) -> None:
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._project = project
        self._all = {name: self._made(name) for name in METRICS}
        for name, metric in METRICS.items():
            if not metric.labels:
                self._one(name, {})  # 0 from the start, rather than absent
        for status in STATUSES:
            self.set("evertrain_last_run_status", 0, status=status)
            self.set("evertrain_last_run_timestamp_seconds", 0, status=status)

    def count(self, name: str, by: float = 1, **labels: str) -> None:
        """Add to a counter."""
        self._one(name, labels).inc(by)

    def set(self, name: str, value: float, **labels: str) -> None:
        """Set a gauge."""
        self._one(name, labels).set(value)

    def observe(self, name: str, value: float) -> None:
        """Add a value to a histogram."""
        self._one(name, {}).observe(value)

    def text(self) -> bytes:
        """Return all in Prometheus' text format."""
        return prometheus_client.generate_latest(self._registry)

    def _one(self, name: str, labels: dict[str, str]) -> Any:
        assert set(labels) == set(METRICS[name].labels), name
        return self._all[name].labels(project=self._project, **labels)

    def _made(self, name: str) -> Any:
        metric = METRICS[name]
        more: dict[str, Any] = {"registry": self._registry}
        if metric.kind == "histogram":
            return Histogram(
                name, metric.help, metric.label_names, buckets=EVENT_TO_START_BUCKETS, **more
            )
        return {"counter": Counter, "gauge": Gauge}[metric.kind](
            name, metric.help, metric.label_names, **more
        )
