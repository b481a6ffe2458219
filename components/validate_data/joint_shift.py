"""How well a model tells new rows from old: shifts that no single column shows.

Small samples of both sides are told apart by boosted trees, scored on days that they have not
seen: rows of one day share its weather and its troubles, and to know a day again is no shift. The
reference's own last windows, told from what came before them, say how much is usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from components.common.data_figures import Finding
from components.common.labels import Label
from components.common.settings import ProjectSettings
from components.common.tables import NUMBER, OBJECT, columns_of, quoted
from components.validate_data.drawn import DRAWN, Drawn, lowest, place_of
from components.validate_data.profile import Floats
from components.validate_data.row_stream import kind_of

ROWS = 10_000  # a side
_FOLDS = 2
_WINDOWS = 2  # of the past
_CATEGORIES = 100
_FEWEST = 200  # rows a side: with fewer an AUC says little
_SLACK = 0.02  # two standard errors of an AUC of a few thousand rows: below it is no difference
_TOLD = 5
_DAY, _PLACE = "_day", "_place"


@dataclass(frozen=True)
class JointShift:
    """How well new rows are told from old ones.

    Attributes:
        auc: Area under the ROC curve on days not seen, 0.5 to 1.
        usual: The largest such area of the reference's own last windows; None: too short a past.
        columns: What the model goes by, the most telling first.
        importance: How much of the area is lost when each of them is shuffled.
    """

    auc: float
    usual: float | None
    columns: list[str]
    importance: list[float]


def sample_rows(
    connection: duckdb.DuckDBPyConnection,
    view: str,
    *,
    settings: ProjectSettings,
    rows: int = ROWS,
    drawn: Drawn | None = None,
) -> pa.Table:
    """Draw about so many rows by the hash of their key: the same rows always, in the same order.

    Args:
        rows: At most `drawn.SAMPLE`.
        drawn: From the rows of this view, if any were: saves reading them all.

    Returns:
        Columns that a model may use (numbers and times as float64, all else as text), and `_day`
        (days since 1970; 0 without a time column) and `_place` (the hash); none of the row's key.
    """
    data = settings.data
    types = columns_of(connection, view)
    source = quoted(view) if drawn is None else DRAWN
    if drawn is None:
        total = connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0]
    else:
        total = drawn.rows
    wanted = ["0 AS _day" if not _has_time(types, settings) else f"{_day(types, settings)} AS _day"]
    wanted.append(f"{place_of(data)} AS {_PLACE}")
    for name, type_ in types.items():
        if name in (OBJECT, NUMBER, data.time_column, *data.row_key) or kind_of(type_) == "time":
            continue
        cast = {"number": "DOUBLE", "boolean": "DOUBLE"}.get(kind_of(type_), "VARCHAR")
        wanted.append(f"{quoted(name)}::{cast} AS {quoted(name)}")
    order = ", ".join(quoted(name) for name in (_PLACE, *data.row_key))
    return connection.execute(
        f"SELECT {', '.join(wanted)} FROM {source} WHERE {lowest(rows, total, place_of(data))} "
        f"ORDER BY {order}"
    ).to_arrow_table()


def _has_time(types: dict[str, str], settings: ProjectSettings) -> bool:
    return kind_of(types.get(settings.data.time_column or "", "")) == "time"


def _day(types: dict[str, str], settings: ProjectSettings) -> str:
    name = settings.data.time_column or ""
    column = quoted(name)
    if types[name] not in ("DATE", "TIMESTAMP WITH TIME ZONE"):
        column = f"{column}::TIMESTAMP"
    return f"CASE WHEN isfinite({column}) THEN floor(epoch_us({column}) / 86400000000.0) END"


def joint_shift(now: pa.Table, before: pa.Table, *, label: Label) -> JointShift | None:
    """Tell new rows from old ones.

    Args:
        now: As `sample_rows` gives it.
        before: The reference's, likewise; columns that only one of them has are left out.
        label: Its columns are left out, too, but for those that are an input as well.

    Returns:
        None where a side has fewer than 200 rows or there is no column to go by.
    """
    names = [
        n
        for n in before.column_names
        if n in now.column_names and n not in (_DAY, _PLACE, *label.beside)
        if now.schema.field(n).type == before.schema.field(n).type
    ]
    if not names or min(len(now), len(before)) < _FEWEST:
        return None
    schema = _plain(before, names)
    both = pa.concat_tables([t.select(schema.names).cast(schema) for t in (now, before)])
    features, texts = _features(both, names)
    days = pc.fill_null(both[_DAY].cast(pa.float64()), -1.0).to_numpy()
    groups = days if len(np.unique(days)) > 2 * _FOLDS else both[_PLACE].to_numpy()
    folds = _folds(groups)
    new = np.arange(len(both)) < len(now)
    auc, importance = _told_apart(features, new, folds, texts, explain=True)
    usual = [
        _told_apart(features[~new][kept], window[kept], folds[~new][kept], texts)[0]
        for window, kept in _past_windows(days[~new], _span(days[new]))
    ]
    order = np.argsort(-importance, kind="stable")[:_TOLD]
    telling = [int(i) for i in order if importance[i] > 0.005]
    return JointShift(
        auc=auc,
        usual=max(usual, default=None),
        columns=[names[i] for i in telling],
        importance=[float(importance[i]) for i in telling],
    )


def joint_shift_findings(shift: JointShift | None, settings: ProjectSettings) -> list[Finding]:
    """A warning (or a block, if the level says so) where new rows are told too well from old."""
    level = settings.validation.level("joint_shift")
    if shift is None or level == "off":
        return []
    limit = max(settings.validation.joint_shift_auc, (shift.usual or 0.0) + _SLACK)
    if shift.auc <= limit:
        return []
    past = (
        "the reference is too short to say what is usual"
        if shift.usual is None
        else f"the reference's own last windows reach {shift.usual:.2f}"
    )
    return [
        Finding(
            check="joint_shift", column="", level=level, measured=shift.auc, limit=limit,
            message=f"a model tells new rows from old with an AUC of {shift.auc:.2f} ({past}); it "
            f"goes by {', '.join(shift.columns) or 'many columns, each a little'}",
            hint="columns may have changed together: compare their pairs, or the joins behind them",
        )
    ]  # fmt: skip


def _plain(table: pa.Table, names: list[str]) -> pa.Schema:
    fields = [pa.field(n, table.schema.field(n).type) for n in names]
    return pa.schema([pa.field(_DAY, pa.float64()), pa.field(_PLACE, pa.uint64()), *fields])


def _features(table: pa.Table, names: list[str]) -> tuple[Floats, list[bool]]:
    """float64 [rows, columns], and which columns are codes of texts (the frequent ones)."""
    columns, texts = [], []
    for name in names:
        column = table[name].combine_chunks()
        texts.append(pa.types.is_string(column.type))
        if texts[-1]:
            counts = pc.value_counts(column.drop_null())
            ranked = sorted(
                zip(counts.field(0).to_pylist(), counts.field(1).to_pylist(), strict=True),
                key=lambda pair: (-pair[1], pair[0]),
            )
            kept = pa.array([value for value, _ in ranked[:_CATEGORIES]], pa.string())
            codes = pc.fill_null(pc.index_in(column, value_set=kept), len(kept))
            values = codes.to_numpy().astype(np.float64)
            values[column.is_null().to_numpy(zero_copy_only=False)] = np.nan
        else:
            values = column.to_numpy(zero_copy_only=False).astype(np.float64)
            values = np.where(np.isfinite(values), values, np.nan)
        columns.append(values)
    return np.column_stack(columns), texts


def _folds(groups: npt.NDArray[np.generic]) -> npt.NDArray[np.int64]:
    """Deal groups of rows out to folds, in turn after a seeded shuffle."""
    names, codes = np.unique(groups, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(names))
    folds: npt.NDArray[np.int64] = (order % _FOLDS)[codes]
    return folds


def _span(days: Floats) -> float:
    return float(np.quantile(days, 0.99) - np.quantile(days, 0.01)) + 1


def _past_windows(
    days: Floats, span: float
) -> list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]]:
    """The last windows of the past: which rows are in one, and which are in it or before it."""
    found = []
    end = float(days.max()) + 1
    for _ in range(_WINDOWS):
        window, kept = (days >= end - span) & (days < end), days < end
        if (
            window.sum() < _FEWEST
            or (kept & ~window).sum() < _FEWEST
            or days.min() > end - 2 * span
        ):
            break
        found.append((window, kept))
        end -= span
    return found


def _told_apart(
    features: Floats,
    new: npt.NDArray[np.bool_],
    folds: npt.NDArray[np.int64],
    texts: list[bool],
    *,
    explain: bool = False,
) -> tuple[float, Floats]:
    """Cross-validated AUC, and what each column adds to it (zeros unless asked)."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    areas = []
    losses = np.zeros(features.shape[1])
    for fold in range(_FOLDS):
        held = folds == fold
        if len(np.unique(new[held])) < 2 or len(np.unique(new[~held])) < 2:
            continue
        model = HistGradientBoostingClassifier(
            max_iter=30, max_leaf_nodes=15, learning_rate=0.2, min_samples_leaf=40,
            categorical_features=texts, early_stopping=False, random_state=0,
        )  # fmt: skip
        model.fit(features[~held], new[~held])
        test, truth = features[held], new[held]
        area = roc_auc_score(truth, model.decision_function(test))
        areas.append(area)
        if explain and len(areas) == 1:  # one fold names the columns as well as three do
            losses = area - _without_each(model, test, truth)
    auc = float(np.mean(areas)) if areas else 0.5
    return max(auc, 0.5), losses


def _without_each(model: object, test: Floats, truth: npt.NDArray[np.bool_]) -> Floats:
    """The AUC with each column shuffled."""
    from sklearn.metrics import roc_auc_score

    order = np.random.default_rng(0).permutation(len(test))
    found = []
    for column in range(test.shape[1]):
        shuffled = test.copy()
        shuffled[:, column] = shuffled[order, column]
        found.append(roc_auc_score(truth, model.decision_function(shuffled)))  # type: ignore[attr-defined]
    return np.array(found)
