"""The text example: its passages, its division by document, its network, and counting beside it."""

from __future__ import annotations

import math
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

from components.common.hashing import below, place
from components.common.project import open_project
from tests.examples.example_projects import TEXT, prepare_of
from tests.examples.suites import critical_failures
from training_core import SequenceTask

prepare = prepare_of(TEXT)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("text")
    assert prepare.main(["--data", str(folder)]) == 0
    files = sorted(folder.iterdir())
    assert len(files) == prepare.PARTS
    return pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)


@pytest.fixture(scope="module")
def task() -> SequenceTask:
    found = open_project(TEXT).task()
    assert isinstance(found, SequenceTask)
    return found


# --- the passages -------------------------------------------------------------------------------


@pytest.mark.smoke  # writes all of it
def test_passages_in_order_are_the_document(rows: pd.DataFrame) -> None:
    texts = prepare.documents(Path(sysconfig.get_path("stdlib")))
    whole = rows.sort_values(["document", "position"]).groupby("document")["text"].sum()
    assert whole.to_dict() == texts
    assert {"topics/lambda", "modules/json.decoder"} <= set(texts)
    lengths = rows["text"].str.len()
    assert lengths.max() == prepare.LENGTH
    assert (lengths == prepare.LENGTH).mean() > 0.9


def test_a_character_is_a_byte(rows: pd.DataFrame) -> None:
    assert set("".join(rows["text"])) <= {"\n", *map(chr, range(32, 127))}
    assert prepare.ascii_of("Löwis\t“x” ½\x0c\n") == "Lowis   ?x? 1?2?\n"


def test_no_document_quotes_another(rows: pd.DataFrame) -> None:
    whole = rows.sort_values(["document", "position"]).groupby("document")["text"].sum()
    owners: dict[str, str] = {}
    for document, text in whole.items():
        for paragraph in text.split("\n\n"):
            words = " ".join(paragraph.split())
            if len(words) >= 40:
                assert owners.setdefault(words, str(document)) == document, words
    quoted = prepare.without_quotes({"a": "x" * 50 + "\n\nb", "b": "  " + "x" * 50 + "\n\nb"})
    assert quoted == {"a": "x" * 50 + "\n\nb", "b": "b"}


@pytest.mark.smoke  # writes all of it
def test_the_same_part_is_the_same_bytes_and_holds_whole_documents(
    rows: pd.DataFrame, tmp_path: Path
) -> None:
    assert prepare.main(["--data", str(tmp_path / "alone"), "--parts", "3"]) == 0
    assert prepare.main(["--data", str(tmp_path / "among"), "--parts", "2-3"]) == 0
    alone, among = (tmp_path / name / "text-03.parquet" for name in ("alone", "among"))
    assert alone.read_bytes() == among.read_bytes()
    assert pq.read_schema(alone).equals(prepare.SCHEMA)
    found = pd.read_parquet(alone)
    assert set(found["document"].map(prepare.part_of)) == {3}
    assert len(found) == rows["document"].isin(set(found["document"])).sum()


@pytest.mark.parametrize("text", ["0", "11", "3-1", "x", ""])
def test_parts_that_are_none_are_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        prepare.main(["--data", str(tmp_path), "--parts", text])
    assert stopped.value.code == 2
    assert "up to 10" in capsys.readouterr().err


def test_a_python_without_its_documentation_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"topics\.py"):
        prepare.documents(tmp_path)


# --- the suite ----------------------------------------------------------------------------------

SPOILT: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "a part twice": lambda r: pd.concat([r, r.tail(500)]),
    "a passage missing": lambda r: r.drop(index=r.index[r["position"] == 1][0]),
    "no text": lambda r: r.assign(text=r["text"].where(r["position"] != 2)),
    "a long passage": lambda r: r.assign(text=["x" * 200, *r["text"].to_list()[1:]]),
    "an accent": lambda r: r.assign(text=["é", *r["text"].to_list()[1:]]),
    "a few rows": lambda r: r.head(300),
}
SUITE = TEXT / "expectations.json"


def test_the_suite_passes_what_prepare_wrote(rows: pd.DataFrame, tmp_path: Path) -> None:
    assert critical_failures(rows, SUITE, tmp_path, schema=prepare.SCHEMA) == []


@pytest.mark.smoke  # each of them through Great Expectations
@pytest.mark.parametrize("spoilt", SPOILT)
def test_the_suite_stops(spoilt: str, rows: pd.DataFrame, tmp_path: Path) -> None:
    assert critical_failures(SPOILT[spoilt](rows), SUITE, tmp_path, schema=prepare.SCHEMA)


# --- the task -----------------------------------------------------------------------------------


def test_the_network_reads_what_came_before_and_predicts_what_comes(task: SequenceTask) -> None:
    frame = pd.DataFrame({"text": ["ab\n", "é", "", "x" * 500]})
    preprocessor = task.preprocessor().fit(frame)
    again = type(preprocessor).from_state_dict(preprocessor.state_dict())
    tokens, target = again.transform(frame)["tokens"], task.target(frame)
    assert tokens.shape == target.shape == (4, 128)
    a, b, line, question = (
        66,
        67,
        0,
        32,
    )  # places in the alphabet: a line break, then from the blank
    assert target[0, :3].tolist() == [a, b, line]
    assert (target[0, 3:] == -100).all()
    begin, padding = 96, 97
    assert tokens[0, :4].tolist() == [begin, a, b, line]
    assert (tokens[0, 4:] == padding).all()
    assert target[1, :2].tolist() == [question, -100]
    assert (target[2] == -100).all()
    assert (target[3] >= 0).all()
    units = task.units(torch.from_numpy(target))
    assert units is not None
    assert units.tolist() == [3, 1, 0, 128]


def test_no_position_sees_a_later_one(task: SequenceTask) -> None:
    frame = pd.DataFrame({"text": ["the quick brown fox"]})
    preprocessor = task.preprocessor().fit(frame)
    torch.manual_seed(0)
    model = task.build_model(preprocessor).eval()
    tokens = torch.from_numpy(preprocessor.transform(frame)["tokens"])
    changed = tokens.clone()
    changed[0, 10] = 5
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :10], after[:, :10])
    assert not torch.allclose(before[:, 10], after[:, 10])


# --- counting -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ngrams() -> ModuleType:
    """As `python examples/text/ngrams.py` has it, with the example's modules found by name."""
    task = open_project(TEXT).task()
    sys.modules.pop("ngrams", None)
    import ngrams  # type: ignore[import-not-found]

    assert type(task).__module__ == "task"
    module: ModuleType = ngrams
    return module


def test_documents_are_divided_as_split_data_divides_them(
    ngrams: ModuleType, rows: pd.DataFrame
) -> None:
    split = open_project(TEXT).settings.split
    documents = pd.DataFrame({"document": rows["document"].unique()})
    where = place(["document"], {"document": "VARCHAR"})
    query = (
        f"SELECT document, CASE WHEN {below(where, split.holdout)} THEN 'holdout' "
        f"WHEN {below(where, split.holdout + split.validation)} THEN 'validation' "
        "ELSE 'train' END FROM documents"
    )
    with duckdb.connect() as connection:
        connection.register("documents", documents)
        expected = dict(connection.execute(query).fetchall())
    assert {name: ngrams.side_of(name) for name in expected} == expected
    assert set(expected.values()) == {"train", "validation", "holdout"}


def test_counting_mixes_orders_as_witten_and_bell_do(ngrams: ModuleType) -> None:
    (first, second) = ngrams.NGrams(pd.Series(["aab"]), order=2).nats(pd.Series(["ab", "?"]))
    even = 1 / 96
    a, b, new = ((times + 2 * even) / (3 + 2) for times in (2, 1, 0))
    assert first == pytest.approx([-math.log(a) - math.log(b), -math.log(new)])
    # After the beginning came only a; after a came a and b, once each.
    begun = (1 + 1 * a) / (1 + 1)
    after_a = (1 + 2 * b) / (2 + 2)
    begun_new = (0 + 1 * new) / (1 + 1)
    assert second == pytest.approx([-math.log(begun) - math.log(after_a), -math.log(begun_new)])


def test_chances_of_all_characters_add_up_to_one(ngrams: ModuleType) -> None:
    model = ngrams.NGrams(pd.Series(["the theory of the thing", "that is that"]), order=4)
    alphabet = ["\n", *map(chr, range(32, 127))]
    for prefix in ("", "the", "qq"):
        texts = pd.Series([prefix + character for character in alphabet])
        before = model.nats(pd.Series([prefix])) if prefix else [np.zeros(1)] * 4
        for whole, start in zip(model.nats(texts), before, strict=True):
            assert float(np.exp(-(whole - start)).sum()) == pytest.approx(1)
