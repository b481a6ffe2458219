"""The project that `benchmarks/validate.py` measures, and the two ways in which it runs ours."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks.validate_rows import KEY, LABEL, TIME, write_suite
from components.common.data_settings import DataSettings, RowRule
from components.common.row_rules import cut
from components.common.tables import LocalObject, add_view, open_tables
from components.validate_data.expectations import validate

_SETTINGS = f"""\
name: orders
task: {{path: task:OrderTask}}
data: {{source: data, row_key: [{KEY}], time_column: {TIME}}}
validation:
  suite: expectations.json
  row_rules:
    - {{name: price_out_of_range, column: price, minimum: 0, maximum: 100000}}
decision: {{retraining_noise: 0.001}}
"""
_TASK = f'''\
from torch import nn

from training_core import BinaryTask, Preprocessor, TabularPreprocessor


class OrderTask(BinaryTask):
    label = "{LABEL}"

    def preprocessor(self) -> Preprocessor:
        return TabularPreprocessor(categories=["device"], numbers=["score"])

    def build_model(self, preprocessor: Preprocessor) -> nn.Module:
        raise AssertionError("this benchmark trains nothing")
'''
_RUN = "20250101T000000Z-0001"
_RULES = [RowRule(name="price_out_of_range", column="price", minimum=0, maximum=100_000)]


class _Metrics:
    """What KFP hands a step for its figures."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def log_metric(self, metric: str, value: float) -> None:
        pass


def make_project(folder: Path, *, whole_step: bool) -> None:
    """Make a project of the rows in `folder/data`.

    For the whole step: validate the rows in `folder/before`, with which these will be compared, and
    take the snapshot of these.
    """
    (folder / "evertrain.yaml").write_text(_SETTINGS)
    (folder / "task.py").write_text(_TASK)
    write_suite(folder / "expectations.json")
    if whole_step:
        before = ["data.source=before"]
        _validate(folder, before, _snapshot(folder, before))
        (folder / "seen.json").write_text(json.dumps(_snapshot(folder, [])))


def run_step(folder: Path) -> None:
    """Run validate_data on the snapshot that `make_project` took: the step under test."""
    _validate(folder, [], json.loads((folder / "seen.json").read_text()))


def _snapshot(folder: Path, overrides: list[str]) -> list[str]:
    from components.snapshot_data import step as snapshot_data

    os.environ["EVERTRAIN_RUN_ID"] = _RUN
    seen = snapshot_data.run(str(folder), "", "", overrides, True, str(folder / "snapshot.json"))
    return [seen.run_key, seen.data_digest]


def _validate(folder: Path, overrides: list[str], seen: list[str]) -> None:
    from components.validate_data import step as validate_data

    os.environ["EVERTRAIN_RUN_ID"] = _RUN
    validated, docs = str(folder / "validated.json"), str(folder / "docs.html")
    validate_data.run(
        str(folder), "", overrides, *seen, validated, docs, _Metrics(folder / "metrics")
    )


def hold_rows_against_suite(folder: Path) -> None:
    """Only cut the rows by the row rules and hold the rest against the suite."""
    settings = DataSettings(source="data", row_key=[KEY])
    files = sorted((folder / "data").iterdir())
    objects = [LocalObject(f.name, f, pq.read_metadata(f).num_rows) for f in files]
    scratch = folder / "scratch"
    with open_tables(settings, readable=[folder / "data"], scratch=scratch) as connection:
        add_view(connection, "rows", objects)
        cut(connection, "rows", _RULES)
        seen = validate(connection, "kept", folder / "expectations.json")
    if failed := [e for e in seen if not e.success]:
        raise SystemExit(f"the rows fail {failed[0]}")
