"""Examples as the network gets them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from training_samples import Sales, rows

from training_core.examples import Examples


def test_units_go_where_their_examples_go() -> None:
    row = torch.arange(6)
    examples = Examples({"row": row}, row.float(), row.float() + 1)
    chosen = examples.take(torch.tensor([4, 1])).to(torch.device("cpu"), non_blocking=True)
    assert chosen.arrays["row"].tolist() == [4, 1]
    assert chosen.target.tolist() == [4.0, 1.0]
    assert chosen.units is not None
    assert chosen.units.tolist() == [5.0, 2.0]
    assert Examples({"row": row}, row.float()).take(slice(2)).units is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="page-locked memory needs a GPU's driver")
def test_pinned_examples_keep_all_their_tensors() -> None:
    row = torch.arange(6)
    pinned = Examples({"row": row}, row.float(), row.float() + 1).pin()
    assert pinned.units is not None
    assert all(t.is_pinned() for t in (pinned.arrays["row"], pinned.target, pinned.units))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_labels_of_any_dtype_become_a_float32_target(dtype: str) -> None:
    frame = rows(10)
    expected = frame["bought"].tolist()
    frame["bought"] = frame["bought"].astype(dtype)
    task = Sales()
    examples = Examples.from_frame(task, task.preprocessor().fit(frame), frame)
    assert examples.target.dtype == torch.float32
    assert examples.target.tolist() == expected


def test_rows_without_a_label_are_refused_and_counted() -> None:
    frame = pd.concat([rows(10), rows(2).assign(bought=np.nan)])
    task = Sales()
    with pytest.raises(ValueError, match="2 rows have no label"):
        Examples.from_frame(task, task.preprocessor().fit(frame), frame)
