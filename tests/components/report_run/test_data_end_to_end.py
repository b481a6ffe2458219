"""From a spoilt month to the page that a person opens: it holds what the steps recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from report_browser import Browser

from components.common.data_figures import SplitFigures, ValidateFigures
from components.common.records import StepRecord
from components.report_run.formats import measured
from tests.small_project.command import evertrain, make_project
from tests.small_project.data_steps import run_data_steps
from tests.small_project.make_data import file_of, month

pytestmark = pytest.mark.browser
IMPOSSIBLE = 7  # rows that a rule puts aside
OVERRIDES = (
    "validation.levels={drift: warn}",
    "validation.row_rules=[{name: number_possible, column: number, maximum: 10}, "
    "{name: kind_known, column: kind, allowed: [apple, bread, cheese, dates]}]",
)
CELLS = """return [...document.querySelectorAll('[aria-label^="{}"] tbody tr')]
    .map(row => [...row.cells].map(cell => [...cell.childNodes]
        .map(node => node.textContent.trim()).filter(Boolean).join(' ')))"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months that passed, then one with rows to put aside, a column that moved, a warning."""
    made = make_project(tmp_path_factory.mktemp("feed") / "project", 1, 2)
    assert [r.status for r in run_data_steps(made, *OVERRIDES).values()] == ["done"] * 3
    shutil.rmtree(made / ".evertrain" / "store" / "runs")  # the next run has the same id
    rows = month(3)
    spoilt = rows.assign(
        noise=rows["noise"] + 3,
        number=rows["number"].where(np.arange(len(rows)) >= IMPOSSIBLE, 99.0),
        kind=rows["kind"].where(np.arange(len(rows)) != 500, "dirt"),
    )
    spoilt.to_parquet(file_of(made / "data", 3), index=False)
    return made


@pytest.fixture(scope="module")
def records(project: Path) -> dict[str, StepRecord]:
    return run_data_steps(project, *OVERRIDES)


def test_the_page_holds_what_the_steps_recorded(
    project: Path, records: dict[str, StepRecord], browser: Browser
) -> None:
    assert [r.status for r in records.values()] == ["done"] * 3
    validated = ValidateFigures.model_validate(records["validate_data"].figures)
    parts = SplitFigures.model_validate(records["split_data"].figures).parts
    ended = evertrain("data", project)
    assert ended.code == 0, ended.err
    assert "fit to train on, with" in ended.err
    browser.emulate(width=1280, height=800)
    browser.open(Path(ended.out.strip()))

    def table(label: str) -> list[list[str]]:
        found = browser.run(CELLS.replace("{}", label))
        assert isinstance(found, list)
        return found

    assert validated.quarantined == {"number_possible": IMPOSSIBLE, "kind_known": 1}
    aside = {rule.replace(" ", "_"): int(rows) for rule, rows, _ in table("Rows set aside by rule")}
    assert aside == validated.quarantined

    noise = validated.drift[0].columns[0]
    assert (noise.column, noise.level) == ("noise", "warn")
    assert len(validated.drift[0].columns) == 6
    cards = browser.run("return [...document.querySelectorAll('.card b')].map(e => e.textContent)")
    assert cards == ["noise"]
    first = browser.run("return document.querySelector('.facts').textContent")
    assert f"PSI {measured(noise.psi)}, threshold {measured(noise.threshold)}" in first
    moved = table("Drift against the snapshot validated last")[0]
    assert moved[0].split() == ["noise", "warns"]
    assert moved[2].split() == [measured(noise.psi), "limit", measured(noise.threshold)]
    assert moved[5].split() == [noise.now, "was", noise.before]

    failed = [e for e in validated.expectations if not e.success]
    assert [e.severity for e in failed] == ["warning"]
    assert [row[1] for row in table("Expectations that failed")] == [failed[0].column]
    shown = table("Findings")
    assert [row[1] for row in shown] == [f.column or "–" for f in validated.findings]

    sides = {row[0]: int(row[1].replace(",", "")) for row in table("Parts of the split")}
    assert sides == {name: part.rows for name, part in parts.items()}
    assert sum(sides.values()) == validated.rows - IMPOSSIBLE - 1
    read = browser.run("return document.body.textContent")
    assert validated.quarantine in read
    assert json.loads(evertrain("data", project, "--json").out)["verdict"] == "fit, with warnings"
