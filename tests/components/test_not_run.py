"""Checks that are not made are named with the reason."""

from __future__ import annotations

import json
from pathlib import Path

from profile_rows import SETTINGS, settings_of

from components.common.data_figures import LabelKind, NotRun
from components.common.data_settings import USUAL_LEVELS
from components.common.settings import ProjectSettings
from components.validate_data.not_run import CHANGE, TRUST, not_run
from tests.small_project.command import make_project
from tests.small_project.data_steps import run_data_steps
from tests.small_project.make_data import month


def why(
    settings: ProjectSettings = SETTINGS, kind: LabelKind = "binary", **but: bool
) -> dict[str, set[str]]:
    all_well = dict.fromkeys(("rows", "readable", "fits", "known", "compared"), True)
    return {one.why: set(one.checks) for one in not_run(settings, kind=kind, **(all_well | but))}


def test_every_check_is_of_changes_of_trust_or_of_objects() -> None:
    assert {*CHANGE, *TRUST, "empty_object"} == set(USUAL_LEVELS)
    assert len(CHANGE) + len(TRUST) + 1 == len(USUAL_LEVELS)


def test_each_reason_names_its_checks_and_each_check_has_one_reason() -> None:
    assert why() == {}
    assert why(fits=False) == {"refused": {*TRUST}}
    assert why(known=False, compared=False) == {"no_reference": {*CHANGE}}
    assert why(compared=False) == {"no_new_rows": {*CHANGE}}
    assert why(rows=False, fits=False, compared=False) == {"no_rows": {*CHANGE, *TRUST}}
    assert why(readable=False, compared=False) == {"no_key": {*CHANGE, *TRUST}}
    assert why(settings_of(time_column=None)) == {"no_time": {"future_rows"}}
    validation = SETTINGS.validation.model_copy(update={"levels": {"leak": "off", "drift": "off"}})
    settings = SETTINGS.model_copy(update={"validation": validation})
    assert why(settings, fits=False, known=False) == {
        "off": {"leak", "drift"},
        "refused": {*TRUST} - {"leak"},
        "no_reference": {*CHANGE} - {"drift"},
    }


def test_a_step_leaves_word_of_the_checks_that_it_did_not_make(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", 1)
    suite = json.loads((project / "expectations.json").read_text())
    rows = {"min_value": 10 * len(month(1)), "max_value": 10**9}
    suite["expectations"][1]["kwargs"] = rows
    (project / "expectations.json").write_text(json.dumps(suite))
    figures = run_data_steps(project)["validate_data"].figures
    said = [NotRun.model_validate(one) for one in figures["not_run"]]
    assert {one.why: set(one.checks) for one in said} == {
        "refused": {*TRUST},
        "no_reference": {*CHANGE},
    }
