"""The packaged model predicts what the model predicts, and loading it executes nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from training_samples import Sales, examples_of, rows

from training_core.errors import TrainingFailed
from training_core.package import Package, write_package
from training_core.tabular import TabularPreprocessor
from training_core.task import Preprocessor

FILES = ["network.pt2", "package.json", "preprocessor.json", "preprocessor.py"]


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(3)
    return Sales().build_model(examples_of(Sales(), 200)[0])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, model: nn.Module) -> Path:
    folder = tmp_path_factory.mktemp("package") / "model"
    hashes = write_package(
        folder,
        task=Sales(),
        preprocessor=examples_of(Sales(), 200)[0],
        model=model,
        sample=rows(5, seed=2),
        facts={"seed": 3},
    )
    assert hashes == {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in FILES
    }
    return folder


@pytest.fixture
def package(written: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(written, tmp_path / "model"))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100, 8192, 8193])
def test_it_predicts_what_the_model_predicts_for_any_number_of_rows(
    written: Path, model: nn.Module, count: int
) -> None:
    loaded = Package(written, TabularPreprocessor)
    frame = rows(count, seed=8)
    frame.loc[: count // 2, "shop"] = "a new one"
    found = loaded.predict(frame)
    assert found.shape == (count,)
    assert found.dtype == np.float64
    arrays = examples_of(Sales(), 200)[0].transform(frame)
    with torch.no_grad():
        outputs = model.eval()(**{name: torch.from_numpy(a) for name, a in arrays.items()})
    np.testing.assert_allclose(found, torch.sigmoid(outputs).numpy(), rtol=1e-4, atol=1e-6)


def test_it_needs_no_label_and_says_which_columns_it_reads(written: Path) -> None:
    loaded = Package(written, TabularPreprocessor)
    assert loaded.columns == ["shop", "height", "width"]
    assert loaded.manifest["facts"] == {"seed": 3}
    assert loaded.manifest["label"] == "bought"
    frame = rows(4)
    np.testing.assert_array_equal(
        loaded.predict(frame[loaded.columns[::-1]]), loaded.predict(frame)
    )
    with pytest.raises(KeyError, match="height"):
        loaded.predict(frame[["shop", "width"]])


@pytest.mark.parametrize("name", ["network.pt2", "preprocessor.json", "preprocessor.py"])
@pytest.mark.parametrize("damage", ["flipped", "truncated", "missing"])
def test_a_damaged_file_is_refused_by_its_name(package: Path, name: str, damage: str) -> None:
    path = package / name
    content = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(content[:-1])
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(TrainingFailed, match=name) as raised:
        Package(package, TabularPreprocessor)
    assert "hint: it is damaged or of another version" in str(raised.value)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", "{}", '{"format": "evertrain/package/99"}']
)
def test_a_package_without_a_proper_description_is_refused(package: Path, content: str) -> None:
    (package / "package.json").write_text(content)
    with pytest.raises(TrainingFailed, match="cannot be used"):
        Package(package, TabularPreprocessor)


def test_a_description_that_vouches_for_nothing_is_refused(package: Path) -> None:
    manifest = json.loads((package / "package.json").read_text())
    (package / "package.json").write_text(json.dumps({**manifest, "files": {}}))
    with pytest.raises(TrainingFailed, match="cannot be used"):
        Package(package, TabularPreprocessor)


def _rehash(package: Path) -> None:
    manifest = json.loads((package / "package.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = hashlib.sha256((package / name).read_bytes()).hexdigest()
    (package / "package.json").write_text(json.dumps(manifest))


def test_the_copy_of_the_source_is_never_executed_even_with_the_right_hash(package: Path) -> None:
    expected = Package(package, TabularPreprocessor).predict(rows(3))
    (package / "preprocessor.py").write_text("raise SystemExit('executed')\n")
    with pytest.raises(TrainingFailed, match=r"preprocessor\.py is not the file"):
        Package(package, TabularPreprocessor)
    _rehash(package)
    np.testing.assert_array_equal(Package(package, TabularPreprocessor).predict(rows(3)), expected)


def test_a_network_that_is_no_graph_is_refused_even_with_the_right_hash(package: Path) -> None:
    (package / "network.pt2").write_bytes(b"not a graph")
    _rehash(package)
    with pytest.raises(TrainingFailed, match="cannot be used"):
        Package(package, TabularPreprocessor)


class _Branching(nn.Module):
    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        if bool(numbers.sum() > 0):
            return numbers[:, 0]
        return -numbers[:, 0]


class _Counting(nn.Module):
    """Its outputs depend on how often it was called."""

    calls = 0

    def forward(self, categories: Tensor, numbers: Tensor) -> Tensor:
        self.calls += 1
        return numbers[:, 0] + self.calls


@pytest.mark.parametrize(
    ("model", "words"),
    [(_Branching(), "cannot be exported"), (_Counting(), "predicts something else")],
)
def test_a_model_that_cannot_be_packaged_faithfully_is_refused(
    tmp_path: Path, model: nn.Module, words: str
) -> None:
    preprocessor: Preprocessor = examples_of(Sales(), 200)[0]
    with pytest.raises(TrainingFailed, match=words) as raised:
        write_package(
            tmp_path,
            task=Sales(),
            preprocessor=preprocessor,
            model=model,
            sample=rows(5),
            facts={},
        )
    assert "hint: " in str(raised.value)
