"""Weights of a start: read from a file, put into a model by name, or refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from training_samples import Certain, rows, trainer

from training_core.errors import ConfigurationError
from training_core.tabular import TabularPreprocessor
from training_core.transfer.safetensors import read_safetensors, write_safetensors
from training_core.transfer.settings import StartSettings
from training_core.transfer.vocabulary import by_vocabulary
from training_core.transfer.weights import start_from


def start(**given: Any) -> StartSettings:
    return StartSettings.model_validate({"weights": "file", "file": "x", **given})


def network(seed: int, frame: Any = None) -> nn.Module:
    frame = rows(50) if frame is None else frame
    torch.manual_seed(seed)
    return Certain().build_model(Certain().preprocessor().fit(frame))


def state(seed: int) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in network(seed).state_dict().items()}


# ---- files -----------------------------------------------------------------------------------


def test_a_file_gives_back_what_was_written_of_every_dtype(tmp_path: Path) -> None:
    tensors = {
        "half": torch.randn(3, 2).half(), "brain": torch.randn(5).bfloat16(),
        "single": torch.randn(2, 2, 2), "double": torch.randn(1).double(),
        "count": torch.tensor(7), "flags": torch.tensor([True, False]),
        "nothing": torch.zeros(0, 4), "slanted": torch.arange(6.0).view(2, 3).T,
    }  # fmt: skip
    write_safetensors(tmp_path / "a", tensors)
    write_safetensors(tmp_path / "b", dict(reversed(tensors.items())))
    found = read_safetensors(tmp_path / "a")
    assert found.keys() == tensors.keys()
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype
        assert torch.equal(found[name], value), name
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_file_as_the_format_describes_it_is_read(tmp_path: Path) -> None:
    header = json.dumps(
        {
            "__metadata__": {"format": "pt"},
            "x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
        }
    ).encode()
    numbers = torch.tensor([1.5, -2.0]).numpy().tobytes()
    path = tmp_path / "x"
    path.write_bytes(len(header).to_bytes(8, "little") + header + numbers)
    assert read_safetensors(path)["x"].tolist() == [1.5, -2.0]


def test_a_pickle_is_refused_and_not_run(tmp_path: Path) -> None:
    torch.save({"x": torch.zeros(2)}, tmp_path / "x.pt")
    with pytest.raises(ConfigurationError, match="no safetensors file") as caught:
        read_safetensors(tmp_path / "x.pt")
    assert "never loaded" in caught.value.hint


@pytest.mark.parametrize("keep", [0, 5, 20, 100, -1])
def test_a_file_that_is_cut_short_is_refused(tmp_path: Path, keep: int) -> None:
    write_safetensors(tmp_path / "x", {"x": torch.zeros(50)})
    content = (tmp_path / "x").read_bytes()
    (tmp_path / "x").write_bytes(content[:keep])
    with pytest.raises(ConfigurationError, match="or is damaged"):
        read_safetensors(tmp_path / "x")


@pytest.mark.parametrize(
    "told",
    [
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [-2, -1], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
        {"dtype": "X9", "shape": [2], "data_offsets": [0, 8]},
        {"shape": [2]},
        None,
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, told: Any) -> None:
    header = json.dumps({"x": told}).encode()
    (tmp_path / "x").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    with pytest.raises(ConfigurationError, match="or is damaged"):
        read_safetensors(tmp_path / "x")


# ---- into a model ----------------------------------------------------------------------------


def test_all_weights_are_taken_over_and_another_dtype_is_converted() -> None:
    model, weights = network(1), state(2)
    started = start_from(model, start(), {n: v.double() for n, v in weights.items()})
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[name])
        assert value.dtype == torch.float32
    assert started.carried == list(weights)
    assert (started.replaced, started.unused) == ([], [])


def test_what_is_missing_or_has_another_shape_is_listed_unless_it_is_named() -> None:
    weights = state(2)
    del weights["body.0.bias"]
    weights["head.weight"] = torch.zeros(3, 16)
    weights["fc.weight"] = torch.zeros(1)
    with pytest.raises(ConfigurationError) as caught:
        start_from(network(1), start(), weights)
    words = caught.value.what
    assert "not there: body.0.bias;" in words
    assert "head.weight (3×16 in the start, 1×16 in the model)" in words
    assert "the start also has fc.weight" in words
    model = network(1)
    started = start_from(model, start(replace=["head.*", "body.0.bias"]), weights)
    assert started.replaced == ["body.0.bias", "head.bias", "head.weight"]
    assert started.unused == ["fc.weight"]
    assert torch.equal(model.state_dict()["head.weight"], state(1)["head.weight"])
    assert torch.equal(model.state_dict()["embedding.weight"], weights["embedding.weight"])


def test_names_of_a_file_become_the_models() -> None:
    weights = {f"module.net.{name}": value for name, value in state(2).items()}
    model = network(1)
    start_from(model, start(names={"^module\\.": "", "^net\\.": ""}), weights)
    assert torch.equal(model.state_dict()["head.bias"], state(2)["head.bias"])
    with pytest.raises(ConfigurationError, match="the name 'same'"):
        start_from(network(1), start(names={"^.*$": "same"}), weights)


def test_a_pattern_that_means_nothing_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"'haed\.\*' means none") as caught:
        start_from(network(1), start(replace=["haed.*"]), state(2))
    assert "head.weight" in caught.value.hint


def test_shrink_and_perturb_mixes_the_start_with_a_fresh_initialisation() -> None:
    model = network(1)
    start_from(
        model, start(shrink=0.4, perturb=0.1, replace=["head.*"], freeze=["*ing.*"]), state(2)
    )
    found, fresh, old = model.state_dict(), state(1), state(2)
    assert torch.equal(
        found["body.0.weight"], 0.4 * old["body.0.weight"] + 0.1 * fresh["body.0.weight"]
    )
    assert torch.equal(found["embedding.weight"], old["embedding.weight"])  # frozen: as it was
    assert torch.equal(found["head.weight"], fresh["head.weight"])  # replaced: as initialised


def test_a_training_whose_start_was_forgotten_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="has not been given them"):
        trainer(start={"weights": "champion"})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": "file"}, "belong together"),
        ({"weights": "champion", "file": "x"}, "belong together"),
        ({"weights": "none", "shrink": 0.5}, "start.shrink needs a start"),
        ({"weights": "champion", "names": {"a": "b"}}, "for the names in a file"),
        ({"weights": "champion", "lora": {"rank": 2}, "freeze": ["a"]}, "no start.freeze"),
        ({"weights": "file", "file": "x", "names": {"(": ""}}, "no regular expression"),
        ({"unfreeze": [0.5, 0.2]}, "must rise"),
        ({"unfreeze": [1.0]}, "must rise"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(given: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        StartSettings.model_validate(given)


# ---- vocabularies ----------------------------------------------------------------------------


def fitted(*shops: str) -> TabularPreprocessor:
    frame = rows(60).assign(shop=[shops[i % len(shops)] for i in range(60)])
    found = Certain().preprocessor().fit(frame)
    return found


def test_embedding_rows_follow_their_categories() -> None:
    before, now = fitted("b", "d", "x"), fitted("a", "b", "c", "d")
    torch.manual_seed(1)
    model = Certain().build_model(now)
    fresh = model.state_dict()["embedding.weight"].clone()
    torch.manual_seed(2)
    weights = Certain().build_model(before).state_dict()
    old = weights["embedding.weight"]
    found = by_vocabulary(model, weights, before=before, now=now)
    assert (found.known, found.new, found.gone) == (2, 2, 1)
    rows_now = found.weights["embedding.weight"]
    expected = torch.stack([old[0], fresh[1], old[1], fresh[3], old[2]])  # unseen, a, b, c, d
    assert torch.equal(rows_now, expected)
    start_from(model, start(), found.weights)
    assert torch.equal(model.state_dict()["embedding.weight"], expected)


def test_the_same_number_of_other_categories_is_no_reason_to_mix_them_up() -> None:
    before, now = fitted("a", "b"), fitted("b", "c")
    model, weights = Certain().build_model(now), Certain().build_model(before).state_dict()
    found = by_vocabulary(model, weights, before=before, now=now)
    assert torch.equal(found.weights["embedding.weight"][1], weights["embedding.weight"][2])


def test_a_model_whose_embeddings_are_not_its_columns_is_refused_in_words() -> None:
    before, now = fitted("a", "b"), fitted("b", "c")

    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(100, 4)

    with pytest.raises(ConfigurationError, match="cannot be told which embedding") as caught:
        by_vocabulary(Joined(), Joined().state_dict(), before=before, now=now)
    assert "one nn.Embedding for each category column" in caught.value.hint


def test_other_inputs_are_refused_in_words() -> None:
    before = TabularPreprocessor(categories=["shop"], numbers=["height"]).fit(rows(20))
    now = TabularPreprocessor(categories=["shop"], numbers=["height"]).fit(
        rows(20).assign(height=[None] + [1.0] * 19)
    )
    with pytest.raises(ConfigurationError, match=r"numbers were \['height'\], and are .* is null"):
        by_vocabulary(nn.Linear(1, 1), {}, before=before, now=now)


def test_the_network_says_the_same_after_a_new_category_came() -> None:
    before, now = fitted("b", "d"), fitted("a", "b", "c", "d")
    now.means, now.deviations = before.means, before.deviations
    old, new = Certain().build_model(before).eval(), Certain().build_model(now).eval()
    frame = rows(30).assign(shop=["b", "d", "never seen"] * 10)
    found = by_vocabulary(new, old.state_dict(), before=before, now=now)
    start_from(new, start(), found.weights)
    outputs = [
        model(**{n: torch.from_numpy(a) for n, a in preprocessor.transform(frame).items()})
        for model, preprocessor in ((old, before), (new, now))
    ]
    assert torch.equal(*outputs)
