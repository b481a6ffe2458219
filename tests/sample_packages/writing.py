"""Packages of every kind of task, and ways to spoil one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from tests.planted_bugs import healthy_digits, healthy_multilabel, healthy_regression
from tests.planted_bugs import healthy_tagger as tagger
from tests.sample_packages.pixels import PixelPreprocessor
from training_core.package import Package, write_package
from training_core.task import Preprocessor, Task


class Images(healthy_digits.Digits):
    def preprocessor(self) -> Preprocessor:
        return PixelPreprocessor()


class Written(NamedTuple):
    """A package with the rows that it can be tried out with."""

    folder: Path
    rows: pd.DataFrame
    expected: npt.NDArray[np.float64]


def _images(seed: int) -> pd.DataFrame:
    rows = healthy_digits.rows(seed)
    return rows.assign(pixels=[image.tolist() for image in rows["pixels"]])


KINDS = {
    "regression": (healthy_regression.Rent, healthy_regression.rows),
    "multilabel": (healthy_multilabel.Faults, healthy_multilabel.rows),
    "image": (Images, _images),
    "sequence": (tagger.Tags, tagger.rows),
}


def written(folder: Path, kind: str, *, count: int = 60) -> Written:
    """Write the package of an untrained network; its rows have been in Parquet, as a split's."""
    torch.manual_seed(3)
    make, rows_of = KINDS[kind]
    task: Task = make()
    rows_of(0).head(200 + count).to_parquet(folder / "rows.parquet", index=False)
    frame = pd.read_parquet(folder / "rows.parquet")
    preprocessor = task.preprocessor().fit(frame.head(200))
    write_package(
        folder / "package",
        task=task,
        preprocessor=preprocessor,
        model=task.build_model(preprocessor),
        sample=frame.head(5),
        facts={"step": 7},
    )
    rows = frame.tail(count).drop(columns=task.label).reset_index(drop=True)
    expected = Package(folder / "package", type(preprocessor)).predict(rows)
    return Written(folder / "package", rows, expected)


def edit(package: Path, name: str, *, add: str = "", replace: tuple[str, str] = ("", "")) -> None:
    """Change a file of a package and vouch for it anew in `package.json`."""
    before = (package / name).read_text()
    assert replace[0] in before
    (package / name).write_text((before.replace(*replace) if replace[0] else before) + add)
    manifest = json.loads((package / "package.json").read_text())
    manifest["files"][name] = hashlib.sha256((package / name).read_bytes()).hexdigest()
    (package / "package.json").write_text(json.dumps(manifest))
