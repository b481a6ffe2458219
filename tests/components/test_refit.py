"""refit_model and what promote_model makes of it: real trainings, packages and registries.

One project is trained and judged for all tests; each goes on in a copy.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from components.common.champion_model import load_entry
from components.common.layout import hashes_of, put_object, refit_key
from components.common.predictions import as_columns
from components.common.project import open_project
from components.common.rehearsal import rehearse
from components.common.unseen import why_seen
from components.refit_model.kept import MOST_DEATHS, Kept, keep
from infra.errors import OutsideError
from tests.small_project.command import evertrain, make_project
from tests.small_project.make_data import month
from tests.small_project.refit_steps import KEY, Steps
from training_core.package import Package

pytestmark = pytest.mark.slow
WIDE = "refit.shift=0.5"


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """Trained, and judged fit to be promoted. Do not change it."""
    steps = Steps(make_project(tmp_path_factory.mktemp("judged") / "project"), WIDE)
    steps.train()
    steps.judge()
    return steps


@pytest.fixture(scope="module")
def refitted(judged: Steps, tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """Trained again on all rows; not promoted yet. Do not change it."""
    steps = judged.copy(tmp_path_factory.mktemp("refitted") / "project")
    assert steps.refit()["figures"]["outcome"] == "refitted"
    return steps


def decision(steps: Steps) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((steps.left / "decision.json").read_text())
    return found


@pytest.mark.smoke
def test_the_refit_learns_from_all_rows_and_is_what_is_promoted_under_both_names(
    refitted: Steps, judged: Steps, tmp_path: Path
) -> None:
    steps = refitted.copy(tmp_path / "project")
    figures = steps.record("refit_model")["figures"]
    was = hashes_of(judged.left / "judged")
    assert (figures["judged"], figures["rows"]) == (
        was, {"train": 850, "validation": 350, "holdout": 350},
    )  # fmt: skip
    assert figures["refitted"]["network.pt2"] != was["network.pt2"]
    assert "as many passes" in figures["rule"]
    assert not list(steps.store.list("checkpoints/refit-")), "what is decided needs no checkpoints"

    promoted = steps.promote()
    assert promoted["status"] == "done", promoted["reason"]
    (entry,) = steps.entries()
    assert (entry.action, entry.package, entry.refit_of) == ("promote", figures["refitted"], was)
    assert "nobody measured it" in entry.reason
    seen = rehearse(steps.store, entry, tmp_path / "cache")
    assert (seen.outcome, seen.rows) == ("pass", 256), "the rows it is tried with are its own"
    card = steps.store.get(promoted["figures"]["card"]).decode()
    for words in ("Trained again on all rows", "Nobody has measured this model",
                  "How the judged model was judged", was["network.pt2"],
                  figures["refitted"]["network.pt2"]):  # fmt: skip
        assert words in card
    said = evertrain("champion", steps.folder).out
    assert f"judged were {was['network.pt2'][:12]}" in said
    assert figures["refitted"]["network.pt2"][:12] in evertrain("history", steps.folder).out


def test_a_later_holdout_must_be_newer_than_all_that_the_refit_has_seen(refitted: Steps) -> None:
    settings = open_project(refitted.folder).settings
    seen = refitted.record("refit_model")["figures"]["seen"]
    rows = month(1)
    holdout, before = rows["when"].max(), json.loads((refitted.left / "splits.json").read_text())
    assert pd.Timestamp(seen["until"]) == holdout > pd.Timestamp(before["seen"]["until"])
    why = why_seen(seen, rows[rows["when"] == holdout], seen, settings)
    assert why is not None
    assert "it has seen some of these rows" in why
    assert why_seen(seen, month(2), seen, settings) is None


def test_over_the_bound_the_judged_model_is_promoted_and_the_reason_is_said(
    judged: Steps, tmp_path: Path
) -> None:
    steps = judged.copy(tmp_path / "project", "refit.shift=0.0001")
    figures = steps.refit()["figures"]
    assert figures["outcome"] == "judged"
    assert "prediction shift is" in figures["reason"]
    promoted = steps.promote()
    assert promoted["status"] == "done", promoted["reason"]
    (entry,) = steps.entries()
    assert (entry.package, entry.refit_of) == (hashes_of(judged.left / "judged"), {})
    assert "the judged model is promoted, not its refit: the prediction shift is" in entry.reason


def test_without_a_promote_verdict_nothing_is_trained(judged: Steps, tmp_path: Path) -> None:
    steps = judged.copy(tmp_path / "project")
    steps.judge("hold")
    assert steps.refit()["figures"]["outcome"] == "none"
    assert steps.store.info(refit_key(KEY)) is None
    assert hashes_of(steps.left / "model") == hashes_of(steps.left / "judged")
    assert steps.promote()["figures"]["outcome"] == "held"
    assert steps.entries() == []


def test_a_refit_that_cannot_be_trained_costs_no_promotion(judged: Steps, tmp_path: Path) -> None:
    steps = judged.copy(tmp_path / "project")
    task = (steps.folder / "task.py").read_text()
    fails = "    def loss(self, outputs, examples):\n        raise ValueError('broken today')\n"
    (steps.folder / "task.py").write_text(
        task.replace('    label = "bought"\n', f'    label = "bought"\n\n{fails}')
    )
    figures = steps.refit()["figures"]
    assert figures["outcome"] == "judged"
    assert "for the refit failed" in figures["reason"]
    assert steps.promote()["figures"]["outcome"] == "promoted"
    assert steps.entries()[0].package == hashes_of(judged.left / "judged")


def test_what_was_decided_is_not_done_again(refitted: Steps, tmp_path: Path) -> None:
    steps = refitted.copy(tmp_path / "project")
    before = steps.store.get(refit_key(KEY))
    figures = steps.record("refit_model")["figures"]
    assert steps.refit()["figures"] == figures
    assert steps.store.get(refit_key(KEY)) == before
    assert not list(steps.store.list("checkpoints/refit-")), "nothing was trained"


def test_a_refit_whose_process_dies_again_and_again_is_given_up(
    judged: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from components.refit_model import step

    steps = judged.copy(tmp_path / "project")

    def die(*_: Any, key: str, **__: Any) -> Any:
        raise _Death(key)

    with monkeypatch.context() as patched:
        patched.setattr(step, "_attempted", die)
        with pytest.raises(SystemExit):
            steps.refit()
    kept = Kept.model_validate_json(steps.store.get(refit_key(KEY)))
    assert (kept.begun, kept.figures) == (1, None)
    keep(steps.store, KEY, kept.model_copy(update={"begun": MOST_DEATHS}))
    figures = steps.refit()["figures"]
    assert figures["outcome"] == "judged"
    assert f"died {MOST_DEATHS} times" in figures["reason"]


class _Death(BaseException):
    """Ends a process as SIGKILL would, which no step can catch."""


def _swap(steps: Steps, name: str) -> None:
    """Put other weights where the refitted ones are."""
    shutil.copyfile(steps.left / "judged" / name, steps.left / "model" / name)


def _tell(steps: Steps, change: Callable[[dict[str, Any]], Any]) -> None:
    said = decision(steps)
    change(said)
    (steps.left / "decision.json").write_text(json.dumps(said))


def _forge(steps: Steps) -> None:
    """Put other weights there, and a certificate that names them."""
    (steps.left / "model" / "network.pt2").write_bytes(b"mine")
    files = hashes_of(steps.left / "model")
    _tell(steps, lambda said: said["refit"].update(refitted=files))


FORGERIES: dict[str, tuple[Callable[[Steps], Any], str]] = {
    "other weights": (lambda s: _swap(s, "network.pt2"), "its files are not those"),
    "weights and certificate": (_forge, "recorded another certificate"),
    "another judged model": (
        lambda s: _tell(s, lambda d: d["refit"]["judged"].update({"network.pt2": "0" * 64})),
        "another judged package",
    ),
    "another verdict": (
        lambda s: _tell(s, lambda d: d.update(reasons=["it is the best of all"])),
        "another evaluation",
    ),
    "an evaluation that was never recorded": (
        lambda s: s.store.delete("runs/20250101T000000Z-0001/evaluate_model.json"),
        "has recorded another evaluation",
    ),
    "no bound": (lambda s: _tell(s, lambda d: d["refit"].update(shift=None)), "not bounded"),
    "a gate that failed": (
        lambda s: _tell(s, lambda d: d["refit"]["gates"][0].update(outcome="fail")),
        "a gate of it did not pass",
    ),
    "less that it has seen": (
        lambda s: _tell(s, lambda d: d["refit"]["seen"].update(until="2020-01-01T00:00:00")),
        "has seen other rows",
    ),
    "no certificate": (lambda s: _tell(s, lambda d: d.update(refit=None)), "is not the one that"),
    "a certificate that says judged": (
        lambda s: _tell(s, lambda d: d["refit"].update(outcome="judged")), "is not the one that",
    ),
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGERIES)
def test_weights_that_nobody_judged_or_certified_are_not_promoted(
    refitted: Steps, tmp_path: Path, forgery: str
) -> None:
    steps = refitted.copy(tmp_path / "project")
    forge, words = FORGERIES[forgery]
    forge(steps)
    ended = steps.promote()
    assert (ended["status"], ended["exit_code"]) == ("stopped", 1)
    assert words in ended["reason"]
    assert steps.entries() == []


def test_a_certificate_counts_for_nothing_where_no_refit_is_asked_for_or_the_bound_is_lower(
    refitted: Steps, tmp_path: Path
) -> None:
    steps = refitted.copy(tmp_path / "project")
    assert "refit.enabled is false" in steps.promote("refit.enabled=false")["reason"]
    assert "not bounded" in steps.promote("refit.shift=0.0001")["reason"]
    assert steps.entries() == []


def test_a_version_that_a_killed_run_registered_is_taken_for_no_other_weights(
    refitted: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from components.common import promotion

    steps = refitted.copy(tmp_path / "project")

    def killed(*_: Any, **__: Any) -> Any:
        raise OutsideError("killed before the entry")

    with monkeypatch.context() as patched:
        patched.setattr(promotion, "add", killed)
        assert "killed before" in steps.promote()["reason"]
    assert steps.promote()["figures"]["version"] == "1", "the same weights: the same version"

    other = refitted.copy(tmp_path / "other")
    with monkeypatch.context() as patched:
        patched.setattr(promotion, "add", killed)
        other.promote()
    _tell(other, lambda d: d.update(refit=None))
    shutil.rmtree(other.left / "model")
    shutil.copytree(other.left / "judged", other.left / "model")
    assert other.promote()["figures"]["version"] == "2", "version 1 is the refit"


def test_a_store_that_fails_while_the_refit_trains_costs_no_promotion(
    judged: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from components.refit_model import training

    def away(*_: Any, **__: Any) -> Any:
        raise OutsideError("the nodes are away", hint="later")

    steps = judged.copy(tmp_path / "project")
    monkeypatch.setattr(training, "result_of", away)
    assert "the nodes are away" in steps.refit()["figures"]["reason"]
    assert steps.promote()["figures"]["outcome"] == "promoted"


@pytest.mark.smoke
def test_the_champion_that_was_refitted_can_be_begun_with(refitted: Steps, tmp_path: Path) -> None:
    steps = refitted.copy(tmp_path / "project")
    steps.promote()
    (entry,) = steps.entries()
    task = open_project(steps.folder).task()
    package = load_entry(steps.store, entry, task, tmp_path / "cache")
    assert isinstance(package, Package)
    rows = month(2).head(20)
    told = pd.concat([rows, as_columns({"prediction": package.predict(rows)})], axis=1)
    told.to_parquet(tmp_path / "rows.parquet")
    other = entry.model_copy(
        update={"rehearsal": put_object(steps.store, tmp_path / "rows.parquet")}
    )
    assert rehearse(steps.store, other, tmp_path / "cache").outcome == "pass"
