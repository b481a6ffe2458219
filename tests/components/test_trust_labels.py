"""Wrong labels: estimated where they can be told, silent where labels are only hard."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from trust_samples import only, rows, trust

from components.validate_data.label_noise import noise_share

ON = {"label_noise": "warn"}


def separable(count: int, flipped: float) -> pd.DataFrame:
    data = rows(count)
    random = np.random.default_rng(1)
    truth = data["number"] + 0.7 * data["noise"] > 0
    return data.assign(label=(truth ^ (random.random(count) < flipped)).astype(float))


def test_ten_percent_of_flipped_labels_are_about_ten_percent(tmp_path: Path) -> None:
    found = only(trust(separable(20_000, 0.1), tmp_path, levels=ON))
    assert (found.check, found.level, found.limit) == ("label_noise", "warn", 0.05)
    assert found.measured == pytest.approx(0.1, abs=0.015)


@pytest.mark.parametrize(("flipped", "least", "most"), [(0.0, 0.0, 0.002), (0.1, 0.08, 0.12)])
def test_flipped_labels_are_counted_where_classes_overlap_a_little(
    flipped: float, least: float, most: float
) -> None:
    """Perfect probabilities of labels whose classes can be told with an AUC of 0.96."""
    for seed in range(4):
        random = np.random.default_rng(seed)
        clean_probability = 1 / (1 + np.exp(-5 * random.normal(0, 1, 20_000)))
        clean = random.random(20_000) < clean_probability
        truth = clean ^ (random.random(20_000) < flipped)
        probability = flipped + (1 - 2 * flipped) * clean_probability
        assert least <= noise_share(truth, probability) <= most


def test_clean_labels_of_separable_rows_are_not_doubted(tmp_path: Path) -> None:
    assert trust(separable(10_000, 0.0), tmp_path, levels=ON) == []


@pytest.mark.parametrize("strength", [0.0, 0.4, 0.9, 2.0])  # AUC 0.5, 0.61, 0.72, 0.87
def test_hard_data_is_not_called_wrong(tmp_path: Path, strength: float) -> None:
    assert trust(rows(8_000, strength=strength), tmp_path, levels=ON) == []


def test_confident_learning_alone_would_call_hard_data_wrong() -> None:
    """Perfect probabilities at an AUC of 0.72: what is published doubts a fifth of the labels."""
    random = np.random.default_rng(0)
    probability = 1 / (1 + np.exp(-0.9 * random.normal(0, 1, 50_000)))
    truth = random.random(50_000) < probability
    published = (~truth & (probability >= probability[truth].mean())) | (
        truth & (1 - probability >= (1 - probability)[~truth].mean())
    )
    assert published.mean() > 0.2
    assert noise_share(truth, probability) < 0.005  # 0.0013 when written


@pytest.mark.parametrize("flipped", [0.02, 0.05, 0.1, 0.2])
@pytest.mark.parametrize("positive", [0.2, 0.5])
def test_with_good_probabilities_the_share_is_right(flipped: float, positive: float) -> None:
    random = np.random.default_rng(0)
    clean = random.random(50_000) < positive
    truth = clean ^ (random.random(50_000) < flipped)
    sure = np.where(clean, 1 - flipped, flipped) + random.normal(0, 0.1 * flipped, 50_000)
    assert noise_share(truth, sure) == pytest.approx(flipped, rel=0.1)


def test_too_few_rows_of_a_class_say_nothing(tmp_path: Path) -> None:
    assert trust(separable(300, 0.1), tmp_path, levels=ON) == []


def test_the_estimate_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    data = separable(5_000, 0.15)
    shuffled = data.sample(frac=1, random_state=0)
    assert trust(shuffled, tmp_path, levels=ON) == trust(data, tmp_path, levels=ON) != []


def test_columns_that_a_model_could_stumble_over_are_taken_as_they_are(tmp_path: Path) -> None:
    """All null, infinite, constant, texts with nulls and more of them than the model can take."""
    data = separable(3_000, 0.0)
    data["empty"], data["stuck"] = np.nan, 1.0
    data["endless"] = np.where(data.index % 9 == 0, np.inf, 0.5)
    data["many"] = pd.Series([f"value {i % 700}" for i in range(3_000)]).where(data.index % 4 > 0)
    features = ("kind", "number", "noise", "empty", "stuck", "endless", "many")
    found = trust(data, tmp_path, features=features, levels=ON)
    assert {f.check for f in found} == {"missing_column", "constant_column"}
