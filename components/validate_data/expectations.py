"""Great Expectations: a committed suite in JSON, held against the rows of a DuckDB view."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from components.common.data_figures import Expectation
from components.common.tables import columns_of
from components.validate_data.column_needs import columns_named, fault_of
from training_core.errors import ConfigurationError

_SHOWN = 200  # characters of an observed value that are worth reading
_EXAMPLES = 3
_TYPE_ARGUMENTS = ("type_", "type_list")


def validate(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    suite: Path,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> list[Expectation]:
    """Hold all rows of a view against a suite.

    Args:
        connection: Where the view is.
        view: The rows.
        suite: JSON as `ExpectationSuite.to_json_dict` gives it; types of columns as DuckDB names
            them. An expectation whose severity is "critical" (as it is by default) blocks, others
            warn.
        parameters: What `{"$PARAMETER": name}` in the suite stands for.

    Returns:
        What each expectation saw, in the order of the suite. An expectation about a column that is
        absent or of the wrong type has failed.

    Raises:
        ConfigurationError: The suite is missing, is no suite, or one of its expectations could
            not be evaluated (which says nothing about the data).
    """
    given = dict(parameters or {})
    expectations = _entries(suite)
    columns = columns_of(connection, view)
    faults = {}
    for number, entry in enumerate(expectations):
        arguments = _filled_in(entry.get("kwargs", {}), given)
        _refuse_unknown_types(connection, arguments, suite)
        if fault := fault_of(str(entry.get("type")), arguments, columns):
            faults[number] = fault
    fitting = [e | {"id": str(i)} for i, e in enumerate(expectations) if i not in faults]
    results = _evaluated(connection, view, fitting, suite, given) if fitting else {}
    _refuse_broken(results, suite)
    return [
        _failed(entry, _filled_in(entry.get("kwargs", {}), given), faults[number])
        if number in faults
        else _seen(results[number])
        for number, entry in enumerate(expectations)
    ]


def _entries(suite: Path) -> list[dict[str, Any]]:
    """Read the suite's expectations."""
    try:
        content = json.loads(suite.read_text())
        expectations: list[dict[str, Any]] = content["expectations"]
        if not all(isinstance(entry.get("type"), str) for entry in expectations):
            raise ValueError("each expectation needs a type")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"the suite {suite} cannot be read: {error!r}",
            hint="validation.suite names a JSON file in the project's folder, written with "
            "great_expectations: json.dump(suite.to_json_dict(), …)",
        ) from error
    return expectations


def _filled_in(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Replace {"$PARAMETER": name} by what it stands for, where that is known."""
    return {
        key: parameters.get(value["$PARAMETER"], value)
        if isinstance(value, dict) and "$PARAMETER" in value
        else value
        for key, value in arguments.items()
    }


def _refuse_unknown_types(
    connection: duckdb.DuckDBPyConnection, arguments: Mapping[str, Any], suite: Path
) -> None:
    """A misspelt type would never fit, and the data would be blamed."""
    from components.validate_data.duckdb_engine import canonical_type

    named = [arguments[key] for key in _TYPE_ARGUMENTS if arguments.get(key)]
    for name in [each for one in named for each in ([one] if isinstance(one, str) else one)]:
        if canonical_type(connection, name) is None:
            raise ConfigurationError(
                f"the suite {suite} names a type {name!r}, which DuckDB does not know",
                hint="types are DuckDB's: BIGINT, DOUBLE, VARCHAR, TIMESTAMP, … (DESCRIBE)",
            )


def _evaluated(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    entries: list[dict[str, Any]],
    suite: Path,
    parameters: dict[str, Any],
) -> dict[int, Any]:
    """Return Great Expectations' results by the number of the expectation."""
    from great_expectations import ExpectationSuite

    from components.validate_data.duckdb_engine import batch_of

    wanted = {"result_format": "BASIC", "partial_unexpected_count": _EXAMPLES}
    with batch_of(connection, view) as batch:
        try:
            expectations = ExpectationSuite(name=suite.stem, expectations=entries)
            found = batch.validate(
                expectations, result_format=wanted, expectation_parameters=parameters
            )
        except Exception as error:
            raise ConfigurationError(
                f"the suite {suite} is not valid: {_line(str(error))}",
                hint="write it with great_expectations: json.dump(suite.to_json_dict(), …)",
            ) from error
    results = {int(result.expectation_config.id): result for result in found.results}
    if missing := [entry for entry in entries if int(entry["id"]) not in results]:
        raise ConfigurationError(
            f"the suite {suite} is broken: {missing[0]['type']} was not evaluated",
            hint="is it there twice?",
        )
    return results


def _refuse_broken(results: Mapping[int, Any], suite: Path) -> None:
    """Stop where an expectation could not be evaluated, though its columns are as it needs them.

    Where the columns are not the expected ones, and said to be, what cannot be evaluated follows
    from that: SQL may name a column that is gone.
    """
    if any(
        not result.success and not _raised(result) and "table_columns_to_match" in kind
        for result in results.values()
        for kind in [result.expectation_config.type]
    ):
        return
    for result in results.values():
        if raised := _raised(result):
            raise ConfigurationError(
                f"the suite {suite} is broken: {result.expectation_config.type} could not be "
                f"evaluated ({_line(raised[0])})",
                hint="this says nothing about the data; mend the expectation",
            )


def _raised(result: Any) -> list[str]:
    """Return why an expectation was not evaluated; GX gives one exception, or one per metric."""
    info = result.exception_info or {}
    entries = [info] if "raised_exception" in info else list(info.values())
    return [str(e.get("exception_message") or "?") for e in entries if e.get("raised_exception")]


def _seen(result: Any) -> Expectation:
    config = result.expectation_config
    observed = _observed(result.result or {})
    if _raised(result):
        observed = "not evaluated, because the columns are not the expected ones"
    return _figure(
        config.type,
        config.kwargs,
        severity=getattr(config, "severity", None),
        success=bool(result.success) and not _raised(result),
        observed=observed,
    )


def _failed(entry: dict[str, Any], arguments: dict[str, Any], fault: str) -> Expectation:
    return _figure(
        entry["type"], arguments, severity=entry.get("severity"), success=False, observed=fault
    )


def _observed(found: Mapping[str, Any]) -> str:
    """What was seen, short: of values that are not as expected, how many and which."""
    mismatched = (found.get("details") or {}).get("mismatched")
    if mismatched and isinstance(mismatched, dict):  # of all columns, those that differ
        return "; ".join(f"{key}: {', '.join(names)}" for key, names in sorted(mismatched.items()))
    if found.get("unexpected_count") is None or found.get("observed_value") is not None:
        value = found.get("observed_value")
        return f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e6 else str(value)
    words = f"{found['unexpected_count']} unexpected"
    if found.get("element_count") is not None:
        share = found.get("unexpected_percent") or 0.0
        words = f"{found['unexpected_count']} of {found['element_count']} unexpected ({share:.3g}%)"
    examples = ", ".join(map(str, found.get("partial_unexpected_list") or []))
    return f"{words}, for example {examples}" if examples else words


def _figure(
    kind: str, arguments: Mapping[str, Any], *, severity: Any, success: bool, observed: str
) -> Expectation:
    hidden = ("batch_id", "column", "column_A", "column_B")
    expected = (f"{k} {v}" for k, v in arguments.items() if k not in hidden and v is not None)
    return Expectation(
        name=kind.removeprefix("expect_"),
        column=", ".join(columns_named(arguments)) if "column_list" not in arguments else "",
        severity=str(getattr(severity, "value", severity) or "critical"),
        success=success,
        expected=_short(", ".join(expected)),
        observed=_short(observed),
    )


def _line(text: str) -> str:
    """An error of others as one line; they may be long."""
    return " ".join(text.split())[:300] or "no reason given"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
