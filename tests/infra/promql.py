"""What a PromQL expression asks for: which series, by which labels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import promql_parser

from infra.metrics import METRICS, series

# What Prometheus adds when it scrapes.
SCRAPED = {"namespace", "pod", "instance", "job", "service", "container", "endpoint"}
SERIES = {exported: name for name in METRICS for exported in series(name)}


class Asked(NamedTuple):
    name: str
    labels: dict[str, str]


def parse(expression: str) -> Any:
    """Grafana's variables stand for texts, and its own for a span of time.

    Raises:
        ValueError: No PromQL.
    """
    plain = re.sub(r"\$__(rate_)?interval", "5m", expression)
    return promql_parser.parse(re.sub(r"\$\w+", "x", plain))


def walk(node: Any) -> Iterator[Any]:
    yield node
    for field in ("lhs", "rhs", "expr", "param", "vector_selector", "vs", "args"):
        inner = getattr(node, field, None)
        for each in inner if isinstance(inner, list) else [inner]:
            if each is not None and type(each).__module__.startswith("promql_parser"):
                yield from walk(each)


def asked(expression: str) -> list[Asked]:
    """The series that it reads."""
    return [
        Asked(node.name, {each.name: each.value for each in node.matchers.matchers})
        for node in walk(parse(expression))
        if isinstance(node, promql_parser.VectorSelector)
    ]


def grouped(expression: str) -> set[str]:
    """Every label that it groups or matches by."""
    found: set[str] = set()
    for node in walk(parse(expression)):
        modifier = getattr(node, "modifier", None)
        for holder in (modifier, getattr(modifier, "matching", None)):
            found |= set(getattr(holder, "labels", None) or [])
    return found


def problems(expression: str) -> list[str]:
    """Series that nothing exports, and labels that they have not."""
    found = []
    known: set[str] = set()
    for each in asked(expression):
        metric = SERIES.get(each.name)
        if metric is None:
            found.append(f"nothing exports {each.name}")
            continue
        has = {*METRICS[metric].label_names, *SCRAPED}
        has |= {"le"} if each.name.endswith("_bucket") else set()
        known |= has
        found += [f"{each.name} has no label {label}" for label in set(each.labels) - has]
    found += [f"no series has the label {label}" for label in sorted(grouped(expression) - known)]
    return found
