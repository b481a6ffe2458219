"""Great Expectations: a committed suite in JSON, run on a data frame."""

from __future__ import annotations

import html
import json
import logging
import os
import warnings
from pathlib import Path
from typing import Any

import pandas as pd

from components.common.data_figures import Expectation
from training_core.errors import ConfigurationError

_SHOWN = 200  # characters of an observed value that are worth reading


def validate(rows: pd.DataFrame, suite: Path) -> list[Expectation]:
    """Run a suite on all rows.

    Args:
        rows: The whole snapshot.
        suite: JSON as `suite.to_json_dict()` gives it.

    Returns:
        What each expectation saw.

    Raises:
        ConfigurationError: The suite is missing, is no suite, or one of its expectations could
            not be evaluated (which says nothing about the data).
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    try:
        content = json.loads(suite.read_text())
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the suite {suite} cannot be read: {error}",
            hint="validation.suite names a JSON file in the project's folder",
        ) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecations inside Great Expectations
        result = _run(rows, content, suite)
    return [_seen(r) for r in result.results]


def _run(rows: pd.DataFrame, content: dict[str, Any], suite: Path) -> Any:
    import great_expectations as gx
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = ProgressBarsConfig(globally=False)
    try:
        expectations = gx.ExpectationSuite(**content)
    except Exception as error:
        raise ConfigurationError(
            f"the suite {suite} is not valid: {str(error).splitlines()[0]}",
            hint="write it with great_expectations: json.dump(suite.to_json_dict(), …)",
        ) from error
    batch = (
        context.data_sources.add_pandas("memory")
        .add_dataframe_asset("rows")
        .add_batch_definition_whole_dataframe("all")
        .get_batch(batch_parameters={"dataframe": rows})
    )
    result = batch.validate(expectations, result_format="BASIC")
    known_fault = any(
        not r.success
        and r.expectation_config.type.startswith("expect_table_columns_to_match")
        and not any(e.get("raised_exception") for e in _exceptions(r.exception_info))
        for r in result.results
    )  # the columns are wrong, and said to be: what else cannot be evaluated follows from that
    for r in result.results:
        raised = [
            entry.get("exception_message", "")
            for entry in _exceptions(r.exception_info)
            if entry.get("raised_exception")
        ]
        if not raised or known_fault:
            continue
        column = r.expectation_config.kwargs.get("column")
        if column is not None and column not in rows.columns:
            continue  # an absent column is the data's fault, not the suite's
        columns = r.expectation_config.kwargs.get("column_list", [])
        if any(name not in rows.columns for name in columns):
            continue
        if column is not None and not pd.api.types.is_numeric_dtype(rows[column]):
            continue  # text where numbers belong cannot be compared: the data's fault, too
        raise ConfigurationError(
            f"the suite {suite} is broken: {r.expectation_config.type} could not be evaluated "
            f"({raised[0].splitlines()[0][:300]})",
            hint="this says nothing about the data; mend the expectation",
        )
    return result


def _exceptions(info: dict[str, Any] | None) -> list[dict[str, Any]]:
    """GX gives one exception, or one per metric."""
    if not info:
        return []
    return [info] if "raised_exception" in info else list(info.values())


def _seen(result: Any) -> Expectation:
    config = result.expectation_config
    arguments = {
        k: v for k, v in config.kwargs.items() if k not in ("batch_id", "column") and v is not None
    }
    found = result.result or {}
    observed = found.get("observed_value")
    if observed is None and found.get("unexpected_count") is not None:
        observed = (
            f"{found['unexpected_count']} of {found.get('element_count')} unexpected, for example "
            f"{found.get('partial_unexpected_list', [])[:3]}"
        )
    if observed is None and any(
        e.get("raised_exception") for e in _exceptions(result.exception_info)
    ):
        observed = "no such column, or values of another type"
    severity = getattr(config, "severity", None) or "critical"
    return Expectation(
        name=config.type.removeprefix("expect_"),
        column=str(config.kwargs.get("column", "")),
        severity=str(getattr(severity, "value", severity)),
        success=bool(result.success),
        expected=_short(", ".join(f"{k} {v}" for k, v in arguments.items())),
        observed=_short(str(observed)),
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def data_docs_page(seen: list[Expectation]) -> str:
    """One page of what each expectation saw, offline: Great Expectations' own page needs CDNs."""
    rows = "".join(
        f"<tr><td>{'✓' if e.success else '✗'}</td><td>{html.escape(e.severity)}</td>"
        f"<td>{html.escape(e.name.replace('_', ' '))}</td><td>{html.escape(e.column)}</td>"
        f"<td>{html.escape(e.expected)}</td><td>{html.escape(e.observed)}</td></tr>"
        for e in sorted(seen, key=lambda e: (e.success, e.severity))
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Validation</title>"
        "<style>body{font:14px system-ui;margin:2rem}td,th{padding:.3rem .6rem;text-align:left;"
        "border-bottom:1px solid #8884}</style><h1>"
        f"{'Passed' if all(e.success for e in seen) else 'Failed'}: {len(seen)} expectations</h1>"
        "<table><tr><th></th><th>severity</th><th>expectation</th><th>column</th>"
        f"<th>expected</th><th>observed</th></tr>{rows}</table></html>"
    )
