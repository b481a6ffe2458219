"""CSV and JSON lines into Parquet, once, in the local cache.

Types are those of `data.types`; the others follow from all rows of the object, by rules that do not
depend on the order of rows or on a sample. Nothing is guessed that would change a value: dates are
ISO dates only, `007` and numbers of more than 18 digits stay texts, a row with too few or too many
fields is refused.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import threading
from pathlib import Path

import duckdb

from components.common.data_settings import DataSettings
from components.common.formats import Format, shown, unpack
from components.common.layout import digest_of
from components.common.tables import quoted, text
from components.common.text_lines import line_of_row, malformed_line, read_header
from training_core.errors import ConfigurationError, StoppedByGate

_RULES = 1  # raise it when the rules below give other files: copies in caches are then made again
_SAMPLE = 1000
_MOST_LINE_BYTES = 16 * 1024 * 1024
# In this order the first that all values fit is the type of a column; none: VARCHAR.
_FITS = {
    "BOOLEAN": "lower({0}) IN ('true', 'false')",
    "BIGINT": "regexp_full_match({0}, '[+-]?(0|[1-9][0-9]{{0,17}})')",
    "DOUBLE": "TRY_CAST({0} AS DOUBLE) IS NOT NULL "
    "AND NOT regexp_full_match({0}, '[+-]?(0[0-9]+([.].*)?|[0-9]{{19,}})')",
    "DATE": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}') "
    "AND TRY_CAST({0} AS DATE) IS NOT NULL",
    "TIMESTAMP": "regexp_full_match({0}, '[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9:.]+') "
    "AND TRY_CAST({0} AS TIMESTAMP) IS NOT NULL",
    "TIMESTAMP WITH TIME ZONE": "regexp_full_match({0}, "
    "'[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[ T][0-9:.]+ ?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)') "
    "AND TRY_CAST({0} AS TIMESTAMPTZ) IS NOT NULL",
}
_WHOLE_NUMBERS = re.compile("U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?[0-9]*|INT[1248]|SHORT|LONG", re.I)
# One object at a time: DuckDB uses all cores, and the memory of the settings is meant in all.
_one_at_a_time = threading.Lock()


def settings_digest(settings: DataSettings) -> str:
    """Hash of all that decides what a converted file holds, besides the content."""
    return digest_of([_RULES, settings.types, settings.null_values])[:16]


def check_types(settings: DataSettings) -> None:
    """Refuse types that DuckDB does not know.

    Raises:
        ConfigurationError: `data.types` names one.
    """
    with duckdb.connect() as connection:
        for column, kind in settings.types.items():
            try:
                if not re.fullmatch(r"[A-Za-z][\w (),\[\]]*", kind):
                    raise duckdb.ParserException("it is no type's name")
                connection.execute(f"SELECT CAST(NULL AS {kind})")
            except duckdb.Error as error:
                raise ConfigurationError(
                    f"data.types: {column!r} is {kind!r}, which is no type: "
                    f"{str(error).splitlines()[0]}",
                    hint="for example BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE, TIMESTAMP",
                ) from error


def convert(key: str, path: Path, target: Path, *, form: Format, settings: DataSettings) -> None:
    """Write an object's rows as a Parquet file, in their order.

    A column without any value becomes BOOLEAN, which unites with every other type.

    Args:
        key: The object, for what is said of it.
        path: Its content.
        target: The file, overwritten.
        form: CSV or JSON lines.
        settings: Types, texts that mean null, memory, the limit of expansion.

    Raises:
        StoppedByGate: It cannot be read; names line, column and value where there are any.
    """
    scratch = Path(tempfile.mkdtemp(prefix="converting-", dir=path.parent))
    try:
        plain = path
        if form.gzip:
            plain = scratch / "unpacked"
            unpack(key, path, plain, most_expansion=settings.most_expansion)
        with _one_at_a_time, _connect(settings, scratch) as connection:
            _stage(connection, key, plain, form, settings)
            types = _types(connection, key, plain, form, settings)
            columns = ", ".join(
                f"CAST({quoted(c)} AS {t}) AS {quoted(c)}" for c, t in types.items()
            )
            connection.execute(
                f"COPY (SELECT {columns} FROM staged) TO {text(str(target))} "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _connect(settings: DataSettings, scratch: Path) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(
        config={
            "memory_limit": settings.memory,
            "temp_directory": str(scratch),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _stage(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    path: Path,
    form: Format,
    settings: DataSettings,
) -> None:
    """Read all rows into the table `staged`: of CSV as text, of JSON lines as they are."""
    if form.kind == "jsonl":
        _stage_json(connection, key, path, settings)
        return
    names, delimiter = read_header(key, path)
    columns = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    nulls = ", ".join(text(value) for value in settings.null_values)
    read = (
        f"read_csv({text(str(path))}, auto_detect = false, header = true, "
        f"delim = {text(delimiter)}, quote = '\"', escape = '\"', columns = {{{columns}}}, "
        f"nullstr = [{nulls}]::VARCHAR[], max_line_size = {_MOST_LINE_BYTES}, "
        "store_rejects = true, rejects_limit = 1000)"
    )
    try:
        connection.execute(f"CREATE TABLE staged AS SELECT * FROM {read}")
    except duckdb.Error as error:
        raise _unreadable(key, "CSV", str(error).splitlines()[0]) from error
    fault = connection.execute(
        "SELECT line, column_name, error_message, csv_line FROM reject_errors ORDER BY line LIMIT 1"
    ).fetchone()
    if fault:
        line, _, message, content = fault
        raise _unreadable(key, "CSV", f"line {line}: {message} in {content[:80]!r}")


def _stage_json(
    connection: duckdb.DuckDBPyConnection, key: str, path: Path, settings: DataSettings
) -> None:
    plain = f"{text(str(path))}, format = 'newline_delimited'"
    try:
        found = connection.execute(
            f"DESCRIBE SELECT * FROM read_json({plain}, sample_size = -1, records = true, "
            f"convert_strings_to_integers = false, maximum_object_size = {_MOST_LINE_BYTES})"
        ).fetchall()
        types = {row[0]: "VARCHAR" if row[0] in settings.types else row[1] for row in found}
        mixed = [column for column, kind in types.items() if kind == "JSON"]
        empty = {c for c in mixed if _has_no_value(connection, plain, c)}
        if kinds := [column for column in mixed if column not in empty]:
            raise _unreadable(
                key, "JSON lines", f"column {kinds[0]!r} has values of more than one kind"
            )
        columns = ", ".join(
            f"{text(c)}: {text('BOOLEAN' if c in empty else t)}" for c, t in types.items()
        )
        connection.execute(
            f"CREATE TABLE staged AS SELECT * FROM read_json({plain}, records = true, "
            f"columns = {{{columns}}}, maximum_object_size = {_MOST_LINE_BYTES})"
        )
    except duckdb.Error as error:
        where = malformed_line(path) or str(error).splitlines()[0].replace(str(path), shown(key))
        raise _unreadable(key, "JSON lines", where) from error


def _has_no_value(connection: duckdb.DuckDBPyConnection, plain: str, column: str) -> bool:
    counted = connection.execute(
        f"SELECT count({quoted(column)}) FROM read_json({plain}, records = true, "
        f"columns = {{{text(column)}: 'VARCHAR'}}, maximum_object_size = {_MOST_LINE_BYTES})"
    ).fetchone()
    return counted == (0,)


def _types(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    path: Path,
    form: Format,
    settings: DataSettings,
) -> dict[str, str]:
    """The type of each column; a value that does not fit the one of `data.types` is refused."""
    described = connection.execute("DESCRIBE staged").fetchall()
    staged = {row[0]: row[1] for row in described}
    if absent := [column for column in settings.types if column not in staged]:
        raise StoppedByGate(
            f"{shown(key)} lacks column {absent[0]!r}, which data.types names",
            hint="correct data.types, or write the object again with the usual columns",
        )
    for column, kind in settings.types.items():
        _refuse_misfit(connection, key, path, form, column, kind)
    open_ones = [c for c in staged if c not in settings.types]
    inferred = _inferred(connection, open_ones) if form.kind == "csv" else {}
    return {c: settings.types.get(c) or inferred.get(c) or kind for c, kind in staged.items()}


def _refuse_misfit(
    connection: duckdb.DuckDBPyConnection,
    key: str,
    path: Path,
    form: Format,
    column: str,
    kind: str,
) -> None:
    value = quoted(column)
    misfit = f"TRY_CAST({value} AS {kind}) IS NULL"
    if _WHOLE_NUMBERS.fullmatch(kind.strip()):  # a cast would round 1.5
        misfit = f"({misfit} OR NOT regexp_full_match(trim({value}), '[+-]?[0-9]+([.]0*)?'))"
    found = connection.execute(
        f"SELECT rowid, {value} FROM staged WHERE {value} IS NOT NULL AND {misfit} "
        "ORDER BY rowid LIMIT 1"
    ).fetchone()
    if found:
        raise StoppedByGate(
            f"{shown(key)}, line {line_of_row(path, found[0], form.kind)}: column {column!r} has "
            f"{found[1]!r}, which is no {kind}",
            hint="mend the object, correct data.types, or add the text to data.null_values",
        )


def _inferred(connection: duckdb.DuckDBPyConnection, columns: list[str]) -> dict[str, str]:
    """The first type in `_FITS` that all values of a column fit.

    What the first rows exclude is not tried on all rows: on a million rows of twenty columns that
    leaves two expressions a column instead of six.
    """
    candidates = {column: list(_FITS) for column in columns}
    for rows in (f"(SELECT * FROM staged LIMIT {_SAMPLE})", "staged"):
        tried = [(c, kind) for c in columns for kind in candidates[c]]
        if not tried:
            break
        tests = [
            f"bool_and({_FITS[kind].format(quoted(c))}) FILTER ({quoted(c)} IS NOT NULL)"
            for c, kind in tried
        ]
        fitting = connection.execute(f"SELECT {', '.join(tests)} FROM {rows}").fetchone()
        assert fitting is not None
        candidates = {c: [] for c in columns}
        for (column, kind), fits in zip(tried, fitting, strict=True):
            if fits is not False:  # null: no value at all, which fits any type
                candidates[column].append(kind)
    return {column: (kinds or ["VARCHAR"])[0] for column, kinds in candidates.items()}


def _unreadable(key: str, kind: str, what: str) -> StoppedByGate:
    return StoppedByGate(
        f"{shown(key)} is no readable {kind}: {what}",
        hint="it may be cut off or damaged; write it again or remove it",
    )
