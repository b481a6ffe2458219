"""What the page and the model card say of an ensemble, its cost, and of a teacher."""

from __future__ import annotations

from typing import Any

from report_outline import Outline
from report_samples import REPLAY, finished

from components.common.decision_figures import EvaluateFigures
from components.common.ensemble_figures import EnsembleFigures
from components.common.settings import ProjectSettings
from components.promote_model.card import card
from components.report_run.ensemble_words import costs, summary
from components.report_run.page import render

ONE = {
    "parameters": 1000, "size": 50_000, "training_seconds": 20.0, "row_ms": 1.0, "rows_ms": 4.0,
}  # fmt: skip
ALL = {
    "parameters": 3000, "size": 100_000, "training_seconds": 61.0, "row_ms": 2.5, "rows_ms": 12.0,
}  # fmt: skip
ENSEMBLE: dict[str, Any] = {
    "of": "seeds", "asked": 4, "metric": "log_loss", "value": 0.4512,
    "members": [
        {"what": f"seed {i}", "value": 0.46 + i / 100, "package": {}} for i in range(3)
    ],
    "left_out": ["champion 2 <script>gone</script>"], "one": ONE, "all": ALL,
}  # fmt: skip


def page(step: str, **changes: Any) -> str:
    run, records = finished()
    record = records[step]
    records[step] = record.model_copy(update={"figures": {**(record.figures or {}), **changes}})
    return render(run=run, records=records, replay=REPLAY)


def test_the_page_shows_members_gain_and_cost() -> None:
    html = page("select_checkpoint", ensemble=ENSEMBLE)
    text = Outline(html).text
    assert "its log loss is 0.4512, and its members’ 0.4700 in the mean" in text.replace("'", "’")
    for words in ("Seed 0", "seed 2", "× 3", "× 2.5", "61", "Fewer members than asked"):
        assert words.lower() in text.lower(), words
    assert "<script>gone" not in html


def test_the_page_says_why_there_is_no_ensemble() -> None:
    text = Outline(page("select_checkpoint", alone=["champions asked for: 2"])).text
    assert "An ensemble was asked for, and this model is the candidate by itself" in text
    assert "champions asked for: 2" in text


def test_the_page_names_the_teacher_and_trainings_of_other_seeds() -> None:
    member = {"seed": 7, "steps": 40, "seconds": 3.0, "loss": 0.5, "found_finished": True}
    text = Outline(page("train_distributed", teacher="champion 3", members=[member])).text
    assert "Beside the labels it learned from: champion 3" in text
    assert "Seed 7: 40 steps" in text
    assert "an attempt before had trained it to its end" in text


def test_a_cost_that_is_not_known_is_left_out() -> None:
    unknown = {**ENSEMBLE, "one": {**ONE, "training_seconds": None}}
    rows = costs(EnsembleFigures.model_validate(unknown))
    assert [row[0] for row in rows] == [
        "parameters", "package", "predicting one row", "predicting 1,000 rows",
    ]  # fmt: skip
    assert summary(EnsembleFigures.model_validate(ENSEMBLE)).startswith("The candidate is the mean")


def test_the_model_card_says_what_it_is_made_of_and_what_it_costs() -> None:
    _, records = finished()
    data = {"source": "d", "row_key": ["id"], "time_column": "when"}
    settings = {"name": "x", "task": {"path": "a:B"}, "data": data}
    facts = {"ensemble": {"members": [{"what": "seed 0"}, {"what": "champion 2"}]}}

    def made(ensemble: EnsembleFigures | None) -> str:
        return card(
            EvaluateFigures.model_validate(records["evaluate_model"].figures),
            project=ProjectSettings.model_validate(settings),
            version="4", run="r", run_key="k", package_manifest={"facts": facts},
            ensemble=ensemble,
        )  # fmt: skip

    text = made(EnsembleFigures.model_validate(ENSEMBLE))
    assert "The candidate is the mean of 3 models." in text
    assert "| parameters | 1,000 | 3,000 | × 3 |" in text
    assert "- seed 1: 0.4700" in text
    assert "<script>" not in text
    assert "It is the mean of 2 models: seed 0, champion 2." in made(None)
