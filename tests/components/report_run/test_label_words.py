"""What the report says of labels, whatever their kind."""

from __future__ import annotations

import pytest

from components.common.data_figures import Bars, ColumnDrift, Drift, LabelKind, Part, SplitFigures
from components.report_run.label_words import label, label_fact, labels_of_part, part_label


def column(name: str, now: str, before: str, *, level: str = "steady") -> ColumnDrift:
    return ColumnDrift(
        column=name, kind="number", psi=0.1, js=None, ks=None, chi2_p=None, threshold=None,
        level=level, now=now, before=before, null_now=0.0, null_before=0.0,  # type: ignore[arg-type]
        new_categories=[], vanished_categories=[], bars=Bars(labels=[], now=[], before=[]),
    )  # fmt: skip


def drift(kind: LabelKind, *columns: ColumnDrift, others: int = 1) -> Drift:
    names = [c.column for c in columns]
    more = [column(f"other {i}", "1", "2") for i in range(others)]
    return Drift(
        reference="", rows_now=1, rows_before=1, columns=[*columns, *more], label_now=None,
        label_before=None, classifier_auc=None, classifier_columns=[], label_kind=kind,
        label_columns=names,
    )  # fmt: skip


SAID: dict[str, tuple[Drift, str, tuple[str, str, str]]] = {
    "multiclass": (
        drift("multiclass", column("digit", "7", "1")),
        "The most frequent class of digit is 7, before 1.",
        ("Most frequent class", "7", "1"),
    ),
    "multilabel": (
        drift("multilabel", column("cheap", "0.25", "0.5", level="warn"), column("new", "0", "")),
        "The label cheap is yes in 25.0 %, before in 50.0 %. "
        "The label new is yes in 0 %, before in unknown.",
        ("Labels", "1 of 2 moved", ""),
    ),
    "regression": (
        drift("regression", column("price", "12.5", "")),
        "The mean of price is 12.5, before unknown.",
        ("Mean label", "12.5", ""),
    ),
    "sequence": (
        drift("sequence", column("text: tokens", "80", "75.5")),
        "A sequence has 80 tokens in the mean, before 75.5.",
        ("Mean tokens", "80", "75.5"),
    ),
}


@pytest.mark.parametrize("kind", SAID)
def test_a_label_is_told_in_the_words_of_its_kind(kind: LabelKind) -> None:
    seen, sentence, fact = SAID[kind]
    assert label(seen) == sentence
    assert label_fact(kind, seen) == fact


def test_of_many_labels_a_few_are_told_and_how_many_there_are() -> None:
    seen = drift("multilabel", *(column(f"l{i}", "0.1", "0.1") for i in range(80)))
    assert label(seen).count("is yes in") == 5
    assert label(seen).endswith("So much for 5 of 80 labels.")


def test_where_nothing_was_compared_the_fact_has_a_name_and_no_value() -> None:
    assert label_fact("sequence", None) == ("Mean tokens", "", "")
    assert label_fact("binary", None) == ("Positive labels", "", "")


PARTS: dict[str, tuple[dict[str, float], str, str]] = {
    "multiclass": ({"a": 0.7, "b": 0.05, "c": 0.25}, "Classes", "3: b 5.0 % to a 70.0 %"),
    "multilabel": ({"a": 0.5, "b": 0.25}, "Yes", "a 50.0 %, b 25.0 %"),
    "regression": ({"mean": 3.25}, "Mean label", "3.250"),
    "sequence": ({"tokens": 12.5}, "Mean tokens", "12.500"),
}


@pytest.mark.parametrize("kind", PARTS)
def test_the_labels_of_a_part_are_told_in_the_words_of_their_kind(kind: LabelKind) -> None:
    figures, head, said = PARTS[kind]
    part = Part(rows=9, start="", end="", labels=figures)
    split = SplitFigures(parts={"train": part}, unlabelled=0, rule="", proof=[], kind=kind)
    assert part_label(split) == head
    assert labels_of_part(split, part) == said


def test_a_record_from_before_there_were_kinds_is_read_as_binary() -> None:
    split = SplitFigures.model_validate(
        {
            "parts": {"train": {"rows": 1, "start": "", "end": "", "positive_rate": 0.25}},
            "unlabelled": 0, "rule": "", "proof": [],
        }
    )  # fmt: skip
    assert labels_of_part(split, split.parts["train"]) == "25.0 %"
