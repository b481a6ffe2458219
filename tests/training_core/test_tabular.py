"""Features of a table: what is learned from the train split, and what happens to odd values."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from training_samples import rows

import training_core.tabular
from training_core.tabular import UNSEEN, TabularPreprocessor


def _fitted(categories: object, numbers: object, **changes: int) -> TabularPreprocessor:
    frame = pd.DataFrame({"kind": pd.Series(categories), "size": pd.Series(numbers)})
    return TabularPreprocessor(categories=["kind"], numbers=["size"], **changes).fit(frame)


def _kinds(preprocessor: TabularPreprocessor, values: object) -> list[int]:
    kinds = pd.Series(values)
    frame = pd.DataFrame({"kind": kinds, "size": np.zeros(len(kinds))})
    indices: list[int] = preprocessor.transform(frame)["categories"][:, 0].tolist()
    return indices


def _sizes(preprocessor: TabularPreprocessor, values: list[object]) -> np.ndarray:
    frame = pd.DataFrame({"kind": ["a"] * len(values), "size": values})
    return preprocessor.transform(frame)["numbers"]


def test_transforming_other_rows_changes_nothing_of_what_train_taught() -> None:
    train, later = rows(200), rows(50, seed=9)
    later["height"] += 1000
    preprocessor = TabularPreprocessor(categories=["shop"], numbers=["height"]).fit(train)
    before = json.dumps(preprocessor.state_dict())
    preprocessor.transform(later)
    assert json.dumps(preprocessor.state_dict()) == before
    numbers = preprocessor.transform(train)["numbers"]
    assert numbers.mean() == pytest.approx(0, abs=1e-5)
    assert numbers.std() == pytest.approx(1, abs=1e-5)


def test_fitting_again_forgets_the_rows_before() -> None:
    once = TabularPreprocessor(categories=["shop"], numbers=["height"]).fit(rows(50, seed=3))
    twice = TabularPreprocessor(categories=["shop"], numbers=["height"])
    twice.fit(rows(60, seed=4)).fit(rows(50, seed=3))
    assert twice.state_dict() == once.state_dict()


def test_unseen_null_and_rare_categories_share_index_0() -> None:
    preprocessor = _fitted(["a"] * 3 + ["b"] * 3 + ["rare", None], range(8), minimum_count=2)
    assert preprocessor.cardinalities == [3]
    assert _kinds(preprocessor, ["a", "b", "rare", "never seen", None]) == [1, 2, *[UNSEEN] * 3]


def test_a_column_that_was_all_null_in_train_is_all_index_0() -> None:
    preprocessor = _fitted([None, None], [1.0, 2.0])
    assert preprocessor.cardinalities == [1]
    assert _kinds(preprocessor, ["a", None]) == [UNSEEN, UNSEEN]


@pytest.mark.parametrize(
    "train",
    [[7, 8], [7.0, 8.0], ["7", "8"], pd.array([7, 8], dtype="Int64"), np.float32([7, 8])],
    ids=["int", "float", "text", "nullable", "float32"],
)
@pytest.mark.parametrize(
    "asked",
    [[7, 8], [7.0, 8.0, None], ["7", "8"], pd.Series([7.0, "8", 7], dtype=object)],
    ids=["int", "float with null", "text", "mixed"],
)
def test_7_and_7_point_0_and_text_7_are_one_category(train: object, asked: object) -> None:
    found = _kinds(_fitted(train, [0.0, 1.0]), asked)
    assert found[:2] == [1, 2]
    assert found[2:] in ([], [UNSEEN], [1])


def test_a_rows_category_does_not_depend_on_the_rows_that_come_with_it() -> None:
    preprocessor = _fitted([7.0, 7.5, 8.0, np.inf], range(4))
    values = [7.0, 7.5, 8.0, np.inf, 9.5, None]
    alone = [_kinds(preprocessor, [value])[0] for value in values]
    assert _kinds(preprocessor, values) == alone
    assert len(set(alone[:4])) == 4
    assert UNSEEN not in alone[:4]


def test_large_identifiers_are_the_same_as_integers_and_as_floats() -> None:
    preprocessor = _fitted([10**16, 5], [0.0, 1.0])
    assert _kinds(preprocessor, [1e16, 5.0, None]) == _kinds(preprocessor, [10**16, 5, 0])


def test_a_number_with_nulls_in_train_gets_a_column_that_says_so() -> None:
    preprocessor = _fitted(["a"] * 4, [1.0, 3.0, None, 2.0])
    assert preprocessor.number_columns == ["size", "size is null"]
    numbers = _sizes(preprocessor, [2.0, None])
    assert numbers.tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_a_number_without_nulls_in_train_gets_none_and_a_later_null_is_the_mean() -> None:
    preprocessor = _fitted(["a"] * 2, [1.0, 3.0])
    assert preprocessor.number_columns == ["size"]
    assert _sizes(preprocessor, [None, 2.0]).tolist() == [[0.0], [0.0]]


def test_indicator_columns_follow_their_numbers_in_order() -> None:
    frame = pd.DataFrame({"x": [1.0, None], "y": [1.0, 2.0], "z": [None, 4.0]})
    preprocessor = TabularPreprocessor(categories=[], numbers=["x", "y", "z"]).fit(frame)
    assert preprocessor.number_columns == ["x", "y", "z", "x is null", "z is null"]
    arrays = preprocessor.transform(frame)
    assert arrays["numbers"][:, 3:].tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert arrays["categories"].shape == (2, 0)


def test_huge_and_infinite_values_are_clipped() -> None:
    preprocessor = _fitted(["a"] * 3, [0.0, 1e-9, 2e-9])
    found = _sizes(preprocessor, [1e300, np.inf, -np.inf, 1e-9])
    assert found[:, 0].tolist() == [8.0, 8.0, -8.0, 0.0]


def test_infinite_values_in_train_do_not_spoil_mean_and_deviation() -> None:
    preprocessor = _fitted(["a"] * 4, [1.0, 3.0, np.inf, -np.inf])
    assert (preprocessor.means, preprocessor.deviations) == ([2.0], [1.0])
    assert preprocessor.nullable == []


def test_a_constant_number_stays_finite() -> None:
    preprocessor = _fitted(["a"] * 3, [5.0, 5.0, 5.0])
    assert _sizes(preprocessor, [5.0, 6.0]).tolist() == [[0.0], [1.0]]


def test_a_state_that_went_through_json_transforms_the_same() -> None:
    frame = rows(100)
    frame.loc[::7, "height"] = None
    frame.loc[::5, "shop"] = None
    fitted = TabularPreprocessor(
        categories=["shop"], numbers=["height", "width"], minimum_count=3, clip=2.0
    ).fit(frame)
    again = TabularPreprocessor.from_state_dict(json.loads(json.dumps(fitted.state_dict())))
    for name, array in fitted.transform(rows(60, seed=5)).items():
        np.testing.assert_array_equal(again.transform(rows(60, seed=5))[name], array)
    assert again.columns == fitted.columns
    assert again.number_columns == fitted.number_columns


def test_a_state_of_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="tabular/99"):
        TabularPreprocessor.from_state_dict({"format": "evertrain/tabular/99"})


def test_missing_columns_are_named() -> None:
    preprocessor = TabularPreprocessor(categories=["shop"], numbers=["height", "width"])
    preprocessor.fit(rows(20))
    with pytest.raises(KeyError, match="shop, width"):
        preprocessor.transform(rows(20)[["height"]])


def test_no_rows_give_empty_arrays() -> None:
    preprocessor = TabularPreprocessor(categories=["shop"], numbers=["height"]).fit(rows(20))
    arrays = preprocessor.transform(rows(20).iloc[:0])
    assert arrays["categories"].shape == (0, 1)
    assert arrays["numbers"].shape == (0, 1)


def test_the_module_imports_nothing_of_the_project_so_that_a_copy_can_travel() -> None:
    tree = ast.parse(Path(training_core.tabular.__file__).read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).partition(".")[0])
    assert imported <= set(sys.stdlib_module_names) | {"numpy", "pandas"}
