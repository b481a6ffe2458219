"""Baselines: what each learns, of every kind of task, in the order of the rows."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
from baseline_samples import TASKS, Bought, NextToken, Price, Size, ground, rows
from threadpoolctl import threadpool_limits
from torch import nn

from components.common.decision_settings import BASELINES as NAMES
from components.common.metrics import measured, row_scores
from components.train_baseline.catalogue import BASELINES, fit_baselines
from components.train_baseline.contract import Predictions
from components.train_baseline.linear import Linear
from components.train_baseline.prior import Prior
from components.train_baseline.table import Table
from components.train_baseline.trees import Trees
from training_core import Preprocessor, TabularPreprocessor
from training_core.errors import ConfigurationError
from training_core.task import PADDING, Kind, Task

DECIDES = {
    "binary": "log_loss", "multiclass": "log_loss", "multilabel": "log_loss",
    "regression": "squared_error", "sequence": "log_loss",
}  # fmt: skip


def score(task: Task, predictions: Predictions, part: str = "holdout") -> float:
    """The mean of what decides, on the rows that `ground` asks about."""
    truth = task.target(rows(*{"validation": (200,), "holdout": (300,)}[part], seed=SEEDS[part]))
    return measured(task.kind, truth, predictions[part])[DECIDES[task.kind]]


SEEDS = {"validation": 1, "holdout": 2}


def test_the_catalogue_is_what_the_settings_name_in_their_order() -> None:
    assert tuple(baseline.name for baseline in BASELINES) == NAMES
    assert {task.kind for task in TASKS} == set(get_args(Kind))


@pytest.mark.parametrize("build", [t for t in TASKS if t.kind != "sequence"])
def test_each_baseline_learns_each_kind_of_task_but_sequences(build: type[Task]) -> None:
    task = build()
    found = fit_baselines(ground(task))
    assert tuple(found.predictions) == NAMES
    assert found.absent == {}
    assert set(found.seconds) == set(NAMES)
    losses = {name: score(task, parts) for name, parts in found.predictions.items()}
    assert losses["input_independent"] == pytest.approx(losses["prior"], rel=0.05)
    for name in ("rule", "table", "linear", "trees"):
        assert losses[name] < 0.98 * losses["prior"], (name, losses)
    for name in ("linear", "trees"):
        assert losses[name] < 0.7 * losses["prior"], (name, losses)
    truth = task.target(rows(200, seed=1))
    for parts in found.predictions.values():
        assert [len(parts[part]) for part in ("validation", "holdout")] == [200, 300]
        assert parts["validation"].shape[1:] == (truth.shape[1:] or parts["validation"].shape[1:])
        assert all(
            len(v) == 200 for v in row_scores(truth, parts["validation"], kind=task.kind).values()
        )


def test_of_a_sequence_the_prior_is_how_often_each_token_comes() -> None:
    task = NextToken()
    found = fit_baselines(ground(task))
    assert list(found.predictions) == ["prior", "input_independent"]
    assert found.absent["trees"] == "it does not learn sequence tasks"
    target = task.target(rows(600))
    counts = np.bincount(target[target != PADDING], minlength=5) + 1
    prior = found.predictions["prior"]["holdout"]
    assert prior.shape == (300, 4, 5)
    assert prior[7, 2] == pytest.approx(counts / counts.sum())
    blind = score(task, found.predictions["input_independent"])
    assert blind == pytest.approx(score(task, found.predictions["prior"]), rel=0.05)


def test_a_class_that_training_lacks_is_rare_and_not_impossible() -> None:
    asked = ground(Size())
    prior = Prior().fit(asked)["holdout"]
    assert prior[0, 1] == pytest.approx(1 / 604)
    assert prior.sum(axis=1) == pytest.approx(np.ones(300))
    for learned in (Linear().fit(asked), Trees().fit(asked)):
        assert learned["holdout"].shape == (300, 4)
        assert learned["holdout"].sum(axis=1) == pytest.approx(np.ones(300))
        assert (learned["holdout"][:, 1] == 0).all()


def test_a_label_that_is_always_the_same_is_always_answered() -> None:
    train = rows(200).assign(wide=0.0)
    task = TASKS[2]()
    for learned in (
        Linear().fit(ground(task, train=train)),
        Trees().fit(ground(task, train=train)),
    ):
        assert (learned["holdout"][:, 1] == 0).all()
        assert learned["holdout"][:, 0].std() > 0.1


@pytest.mark.parametrize(
    ("categories", "numbers"),
    [([], ["height"]), (["shop"], []), (["shop"], ["height"])],
)
def test_numbers_or_categories_alone_are_enough(categories: list[str], numbers: list[str]) -> None:
    class Some(Bought):
        def preprocessor(self) -> TabularPreprocessor:
            return TabularPreprocessor(categories=categories, numbers=numbers)

    truth = rows(300, seed=2)["bought"].to_numpy()
    for baseline in (Linear(), Trees()):
        predicted = baseline.fit(ground(Some()))["holdout"]
        assert predicted[truth == 1].mean() > predicted[truth == 0].mean() + 0.05


def test_trees_split_categories_as_categories() -> None:
    """A hundred shops whose odd ones buy: one split of a set; of a number more than a tree has."""
    random = np.random.default_rng(0)
    shop = random.integers(0, 100, 5000)
    train = rows(5000).assign(shop=shop.astype(str), bought=(shop % 2).astype(float))
    asked = ground(Bought(), train=train, trees_rounds=1, trees_lr=1.0)
    asked.scored = {"same": train}
    predicted = Trees().fit(asked)["same"]
    assert ((predicted > 0.5) == (shop % 2 == 1)).all()
    assert len(np.unique(predicted.round(9))) == 2


def test_trees_take_columns_of_more_categories_than_scikit_learn_does() -> None:
    random = np.random.default_rng(0)
    shop = np.where(random.random(4000) < 0.5, 0, random.integers(0, 1000, 4000))
    train = rows(4000).assign(shop=shop.astype(str), bought=(shop == 0).astype(float))
    asked = ground(Bought(), train=train)
    asked.scored = {"same": train, "new": train.assign(shop="never seen")}
    found = Trees().fit(asked)
    assert measured("binary", train["bought"].to_numpy(), found["same"])["auc"] > 0.999
    assert np.isfinite(found["new"]).all()
    assert found["new"].max() < 0.5


def test_pixels_and_booleans_are_numbers_and_what_is_no_number_does_not_stop_it() -> None:
    class Pixels(TabularPreprocessor):
        def transform(self, frame: pd.DataFrame) -> dict[str, Any]:
            height = frame["height"].to_numpy()
            pixels = np.clip(height[:, None, None, None] - 100, 0, 255).astype(np.uint8)
            holes = np.where(frame["width"] > 6, np.nan, frame["width"])[:, None]
            holes[0] = np.inf
            tall = height > 170
            return {"image": np.repeat(pixels, 4, axis=3), "holes": holes, "tall": tall}

    class Picture(Bought):
        def preprocessor(self) -> Preprocessor:
            return Pixels(categories=[], numbers=["height"])

    asked = ground(Picture())
    assert asked.features.categories.shape == (600, 0)
    assert asked.features.numbers.shape == (600, 6)
    for baseline in (Linear(), Trees()):
        assert score(asked.task, baseline.fit(asked)) < 0.5


def test_the_scale_of_a_number_changes_nothing_but_the_scale_of_the_answer() -> None:
    class Other(Price):
        def target(self, frame: pd.DataFrame) -> Any:
            return super().target(frame) * 1000 + 7

    for baseline in (Linear(), Trees(), Table(), Prior()):
        plain, scaled = baseline.fit(ground(Price())), baseline.fit(ground(Other()))
        assert plain is not None
        assert scaled is not None
        assert scaled["holdout"] == pytest.approx(plain["holdout"] * 1000 + 7, rel=1e-3)


def test_the_scale_of_an_input_changes_nothing() -> None:
    class Thousandfold(TabularPreprocessor):
        def transform(self, frame: pd.DataFrame) -> dict[str, Any]:
            arrays = super().transform(frame)
            return arrays | {"numbers": arrays["numbers"] * np.float32([1000, 0.001])}

    class Scaled(Bought):
        def preprocessor(self) -> Preprocessor:
            return Thousandfold(categories=["shop"], numbers=["height", "width"])

    plain, scaled = Linear().fit(ground(Bought())), Linear().fit(ground(Scaled()))
    assert scaled["holdout"] == pytest.approx(plain["holdout"], abs=1e-3)


@pytest.mark.parametrize("task", [Bought(), Price()])
def test_neither_threads_nor_another_time_change_the_trees(task: Task) -> None:
    asked = ground(task, count=5000, trees_rounds=3)
    found = []
    for threads in (1, 2, 1):
        with threadpool_limits(threads):
            found.append(Trees().fit(asked)["holdout"])
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_rows_are_answered_in_their_order_whatever_their_index() -> None:
    asked = ground(Bought())
    mixed = ground(Bought())
    order = np.random.default_rng(0).permutation(300)
    mixed.scored = {"holdout": asked.scored["holdout"].iloc[order]}
    plain, other = fit_baselines(asked).predictions, fit_baselines(mixed).predictions
    for name in NAMES:
        assert np.allclose(other[name]["holdout"], plain[name]["holdout"][order]), name


def test_a_table_is_drawn_towards_the_prior_where_rows_are_few() -> None:
    train = pd.DataFrame(
        {"shop": ["north"] * 90 + ["south"] * 10, "bought": [0.0] * 90 + [1.0] * 10}
    ).assign(height=170.0, width=3.0)
    asked = ground(Bought(), train=train, table_smoothing=10.0)
    asked.scored = {"holdout": pd.DataFrame({"shop": ["north", "south", "east", None]})}
    expected = [(0 + 1) / (90 + 10), (10 + 1) / (10 + 10), 0.1, 0.1]
    assert Table().fit(asked)["holdout"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("columns", "words"),
    [(["shop", "colour"], "no such columns"), (["shop", "bought"], "what is to be predicted")],
)
def test_a_table_of_what_is_not_there_or_not_known_is_refused(
    columns: list[str], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words) as refused:
        Table().fit(ground(Bought(), table=columns))
    assert columns[1] in refused.value.what
    assert refused.value.hint


def test_what_is_not_asked_for_is_named_with_the_reason() -> None:
    class Plain(Bought):
        rule = Task.rule

    found = fit_baselines(ground(Plain(), table=[], linear=False, trees=False))
    assert list(found.predictions) == ["prior", "input_independent"]
    assert found.absent == {
        "rule": "the task brings none",
        "table": "baselines.table names no columns",
        "linear": "baselines.linear is false",
        "trees": "baselines.trees is false",
    }


def test_a_network_without_inputs_to_learn_from_has_no_simple_models() -> None:
    class Nothing(Bought):
        def preprocessor(self) -> TabularPreprocessor:
            return TabularPreprocessor(categories=[], numbers=[])

        def build_model(self, preprocessor: Preprocessor) -> nn.Module:
            return nn.Identity()

    asked = ground(Nothing())
    assert Linear().why_absent(asked) == Trees().why_absent(asked) == "the network has no inputs"


def test_fitting_leaves_the_rows_as_they_were() -> None:
    train, asked = rows(600), ground(Bought(), train=rows(600))
    fit_baselines(asked)
    pd.testing.assert_frame_equal(asked.train, train)
    pd.testing.assert_frame_equal(asked.scored["holdout"], rows(300, seed=2))
