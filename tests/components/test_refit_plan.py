"""How far a refit trains, what a shift is, where it is allowed: no training of a project here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from components.common.decision_figures import EvaluateFigures, NoiseFigure, SmokeFigures
from components.common.decision_settings import DecisionSettings
from components.common.project import open_project
from components.common.provenance import provenance
from components.common.refit_settings import RefitSettings
from components.common.shift import churned, mean_shift
from components.refit_model.comparing import refit_gates, shift_figures
from components.refit_model.kept import Kept, begun, not_counted, read_kept
from components.refit_model.plan import Rule, plan_of
from infra.folder import FolderStore
from training_core.errors import ConfigurationError, TrainingFailed
from training_core.preparation import schedule_of, total_steps
from training_core.settings import TrainingSettings

ROWS = (1000, 1500)


def settings(**changes: Any) -> TrainingSettings:
    """100 steps for the judged model's 1,000 rows."""
    return TrainingSettings.model_validate({"epochs": 10, "batch_size": 100, **changes})


def planned(
    step: int, *members: int, rule: Rule = "passes", rows: tuple[int, int] = ROWS, **changes: Any
) -> tuple[Any, TrainingSettings]:
    """A plan, and the settings that its refit has."""
    before = settings(**changes)
    plan = plan_of(before, judged_step=step, judged_members=members, rows=rows, rule=rule)
    content = before.model_dump()
    for each in plan.overrides:
        path, _, value = each.removeprefix("training.").partition("=")
        *sections, last = path.split(".")
        place = content
        for section in sections:
            place = place[section]
        place[last] = value
    return plan, TrainingSettings.model_validate(content)


def share_of_peak(made: TrainingSettings, *, step: int, rows: int) -> float:
    steps = total_steps(made, samples=rows)
    return schedule_of(made, steps=steps, epoch=rows // 100).at(step).lr / made.optimiser.lr


# ---- how far ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "until"), [("passes", 90), ("updates", 60)])
def test_a_refit_goes_as_far_as_the_judged_checkpoint_at_the_same_rate(
    rule: Rule, until: int
) -> None:
    plan, after = planned(60, rule=rule)
    assert plan.until == until
    before = share_of_peak(settings(), step=60, rows=1000)
    now = share_of_peak(after, step=until, rows=1500)
    assert now == pytest.approx(before, abs=0.01), "warm-up and decay are stretched"
    assert f"{until} of" in plan.words
    assert "60 of 100" in plan.words


def test_the_last_step_stays_the_last_whatever_is_rounded() -> None:
    plan, after = planned(100, rows=(1000, 1333))
    assert plan.until == total_steps(after, samples=1333)


def test_what_ended_the_judged_training_early_does_not_end_the_refit() -> None:
    stopping = {"patience": 2, "plateau": 5, "gradient_norm": 0.1, "max_steps": 50, "seconds": 9}
    plan, after = planned(40, stopping=stopping)
    assert (after.stopping.patience, after.stopping.plateau) == (0, 0)
    assert after.stopping.gradient_norm == 0
    assert total_steps(after, samples=1500) == 75, "50 of 100 steps, on the new scale"
    assert plan.until == 60
    assert after.stopping.seconds == 9, "what may be spent is for a person to say"


def test_steps_between_things_are_stretched_as_the_training_is() -> None:
    _, after = planned(60, evaluate_every=10, checkpoints={"every": 20})
    assert (after.evaluate_every, after.checkpoints.every) == (15, 30)
    _, same = planned(60, rule="updates", evaluate_every=10)
    assert same.evaluate_every == 10


def test_a_mean_of_checkpoints_is_made_of_those_at_the_same_shares_and_they_are_kept() -> None:
    plan, after = planned(100, 60, 80, 100)
    assert plan.members == (90, 120, 150)
    assert plan.until == 150
    assert after.checkpoints.every == 15
    saved = [step for step in range(1, 151) if step % 15 == 0]
    assert set(plan.members) <= set(saved[-after.checkpoints.keep_last :])


def test_a_mean_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(TrainingFailed, match="would be one of the steps"):
        planned(100, 11, 12, evaluate_every=10)


# ---- how far apart ---------------------------------------------------------------------------


def test_a_shift_is_the_total_variation_of_what_is_predicted() -> None:
    binary = np.array([0.1, 0.6]), np.array([0.3, 0.4])
    assert mean_shift(*binary, np.zeros(2), kind="binary") == pytest.approx(0.2)
    assert churned(*binary, np.zeros(2), kind="binary") == 0.5
    classes = np.array([[0.5, 0.5, 0.0]]), np.array([[0.2, 0.5, 0.3]])
    assert mean_shift(*classes, np.zeros(1), kind="multiclass") == pytest.approx(0.3)
    labels = np.array([[0.5, 0.5]]), np.array([[0.3, 0.5]])
    assert mean_shift(*labels, np.zeros((1, 2)), kind="multilabel") == pytest.approx(0.1)
    numbers = np.array([10.0, 20.0]), np.array([12.0, 20.0])
    truth = np.array([5.0, 25.0])  # their standard deviation is 10
    assert mean_shift(*numbers, truth, kind="regression") == pytest.approx(0.1)
    assert churned(*numbers, truth, kind="regression") is None


def test_a_shift_of_sequences_counts_tokens_and_no_padding() -> None:
    one = np.zeros((2, 3, 2))
    one[..., 0] = 1.0
    other = one.copy()
    other[0, 0] = [0.4, 0.6]
    other[1, 2] = [0.0, 1.0]  # padding
    truth = np.array([[0, 1, 0], [0, -100, -100]])
    assert mean_shift(one, other, truth, kind="sequence") == pytest.approx(0.6 / 4)
    assert churned(one, other, truth, kind="sequence") == 0.25


def test_a_constant_target_has_no_unit_and_any_shift_is_too_large() -> None:
    same = np.ones(3)
    assert mean_shift(same, same, same, kind="regression") == 0
    assert mean_shift(same, same + 0.1, same, kind="regression") == np.inf


def gates(
    judged: np.ndarray[Any, Any], refitted: np.ndarray[Any, Any], **refit: Any
) -> dict[str, str]:
    """Gate to outcome, for two models of a hundred rows."""
    rows = pd.DataFrame({"shop": ["north"] * 50 + ["south"] * 50})
    truth = np.tile([0.0, 1.0], 50)
    noise = NoiseFigure(deviation=0.001, source="replicas", shift=0.02)
    shift = shift_figures(
        judged, refitted, truth, rows, kind="binary", slices=["shop"], noise=noise
    )
    assert shift.of_seeds == 0.02
    verdict = EvaluateFigures(
        verdict="promote", reasons=["better"], metric="log_loss", rows=100, clusters=2,
        compared_entry=0, champion="", metrics={}, comparisons=[], gates=[], reliability={},
        calibration_error={}, roc=[], confusion=[], predictions="", noise=noise,
    )  # fmt: skip
    loss = {
        name: {"log_loss": float(-np.log(np.where(truth == 1, p, 1 - p)).mean()), "auc": 0.9}
        for name, p in (("judged", judged), ("refitted", refitted))
    }
    found = refit_gates(
        verdict, shift, SmokeFigures(outcome="pass", message="it works"), loss,
        decision=DecisionSettings(), settings=RefitSettings.model_validate(refit),
    )  # fmt: skip
    return {gate.name: gate.outcome for gate in found}


def test_a_shift_within_one_slice_alone_is_seen() -> None:
    judged = np.tile([0.3, 0.7], 50)
    moved = judged.copy()
    moved[50:] += np.tile([-0.14, 0.14], 25)
    found = gates(judged, moved, shift=0.08, slice_shift=0.1)
    assert found["prediction shift"] == "pass"
    assert found["prediction shift where shop = south"] == "fail"
    assert gates(judged, moved, shift=0.08, slice_shift=0.2)["learned"] == "pass"


def test_a_refit_that_is_worse_on_rows_that_it_has_learned_is_not_taken() -> None:
    judged = np.tile([0.3, 0.7], 50)
    found = gates(judged, np.tile([0.33, 0.67], 50))
    assert found["prediction shift"] == "pass"
    assert found["learned"] == "fail"


# ---- how often it is begun -------------------------------------------------------------------


def test_attempts_are_counted_from_where_a_refit_last_got_further_and_stops_are_none(
    tmp_path: Path,
) -> None:
    store, kept = FolderStore(tmp_path), Kept(key="refit-k")
    for attempt in (1, 2):
        kept = begun(store, "run", read_kept(store, "run", key="refit-k"))
        assert kept.begun == attempt
    not_counted(store, "run", kept)
    assert begun(store, "run", read_kept(store, "run", key="refit-k")).begun == 2
    store.put("checkpoints/refit-k/000000010/manifest.json", b"{}")
    assert begun(store, "run", read_kept(store, "run", key="refit-k")).begun == 1
    assert read_kept(store, "run", key="refit-another") == Kept(key="refit-another")


# ---- where it is allowed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["split.by=hash", "split.holdout=0.2", "split.validation=0.2"], "needs split.by: time"),
        (["training.schedule.shape=plateau"], "plateau"),
        (["ensemble.of=seeds"], "ensemble.of: seeds"),
    ],
)
def test_settings_that_no_refit_is_sound_with_are_refused(
    fresh_project: Path, overrides: list[str], words: str
) -> None:
    open_project(fresh_project, overrides=overrides)
    with pytest.raises(ConfigurationError, match=words):
        open_project(fresh_project, overrides=[*overrides, "refit.enabled=true"])


def test_a_refit_is_part_of_a_runs_key_only_where_the_pipeline_has_one(
    fresh_project: Path,
) -> None:
    def digest(*overrides: str) -> str:
        return provenance(open_project(fresh_project, overrides=list(overrides))).config_digest

    assert digest("refit.shift=0.3") == digest()
    assert digest("refit.enabled=true") != digest()
    assert digest("refit.enabled=true", "refit.shift=0.3") != digest("refit.enabled=true")
