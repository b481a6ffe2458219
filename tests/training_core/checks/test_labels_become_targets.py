"""Values of the label that become no target are named, nulls are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from check_data_samples import Houses, look, table

from training_core.checks.data import LabelsBecomeTargets
from training_core.checks.lost_labels import LostLabel
from training_core.checks.runner import make
from training_core.checks.subject import Subject
from training_core.task import BinaryTask, MulticlassTask


class _Kinds(MulticlassTask):
    label, classes = "kind", ("flat", "house", "hut")
    preprocessor = Houses.preprocessor
    build_model = Houses.build_model  # type: ignore[assignment]


class _Answers(BinaryTask):
    label = "answer"
    preprocessor = Houses.preprocessor
    build_model = Houses.build_model


def _kinds(*classes: str) -> MulticlassTask:
    return type("Told", (_Kinds,), {"classes": classes})()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("task", "said", "verdict"),
    [
        (_kinds("flat", "house", "Hut"), "'kind' says 'hut'", "fail"),
        (_kinds("flat", "house", "cabin"), "while its class 'cabin' has no rows", "fail"),
        (_kinds("flat", "house"), "has no target", "warn"),
        (_kinds("flat", "house", "hut"), "is a target", "pass"),
        (_Answers(), "'answer' says 'yes', for which the task has no target", "fail"),
    ],
    ids=["case", "missing class", "left out", "all", "texts"],
)
def test_values_of_the_label_without_a_target_are_found(task: Any, said: str, verdict: str) -> None:
    rows = table(200)
    answers = np.where(np.arange(200) % 4 == 0, "yes", np.where(rows["dear"] > 0, "1", "0"))
    finding = look(LabelsBecomeTargets, task, rows.assign(answer=answers))
    assert finding.verdict == verdict, finding.message
    assert said in finding.message


def test_rows_not_labelled_yet_are_left_out_without_a_word() -> None:
    rows = table(200)
    rows.loc[::3, "dear"] = np.nan
    subject = Subject(Houses(), rows)
    assert make(LabelsBecomeTargets(), subject).verdict == "pass"
    assert len(subject.train) + len(subject.validation) == rows["dear"].notna().sum()


def test_values_that_were_left_out_before_are_named_too() -> None:
    lost = [LostLabel("kind", "Flat", 0.2)]
    subject = Subject(_Kinds(), table(100), lost_labels=lost)
    finding = make(LabelsBecomeTargets(), subject)
    assert finding.verdict == "fail"
    assert finding.measured == pytest.approx(0.2)


def test_a_target_made_of_nulls_is_said() -> None:
    class Filled(Houses):
        def target(self, frame: Any) -> Any:
            return frame[self.label].fillna(0).to_numpy(dtype=np.float32)

    rows = table(200)
    rows.loc[::3, "dear"] = np.nan
    finding = look(LabelsBecomeTargets, Filled(), rows)
    assert finding.verdict == "warn"
    assert "33.5% of the rows have no 'dear'" in finding.message


def test_values_that_all_become_one_target_are_found() -> None:
    class Truthy(Houses):
        def target(self, frame: Any) -> Any:
            return frame[self.label].astype(bool).to_numpy(dtype=np.float32)

    rows = table(200)
    rows["dear"] = np.where(rows["dear"] > 0, "True", "False")
    finding = look(LabelsBecomeTargets, Truthy(), rows)
    assert finding.verdict == "fail"
    assert "'True'" in finding.message
    assert "all rows have the same target" in finding.message
