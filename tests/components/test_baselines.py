"""Simple models on the network's own features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from components.train_baseline.step import _logistic
from training_core import TabularPreprocessor


@pytest.mark.parametrize(
    ("categories", "numbers"), [([], ["number"]), (["kind"], []), (["kind"], ["number"])]
)
def test_logistic_regression_fits_numbers_or_categories_alone(
    categories: list[str], numbers: list[str]
) -> None:
    random = np.random.default_rng(0)
    number = random.normal(size=500)
    rows = pd.DataFrame({"number": number, "kind": np.where(number > 0.5, "large", "small")})
    target = (number > 0).astype(np.float32)
    preprocessor = TabularPreprocessor(categories=categories, numbers=numbers).fit(rows)
    predicted = _logistic(preprocessor, target, rows, {"same": rows})["same"]
    assert predicted[target == 1].mean() > predicted[target == 0].mean() + 0.2
