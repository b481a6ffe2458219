"""Numbers, words and categories that arrive as nothing, or as unknown, are found."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
import pytest
from check_data_samples import NUMBERS, Houses, look, table, using

from tests.planted_bugs.preprocessors import TokenPreprocessor
from training_core.checks.data import InputsBeforeNetwork
from training_core.checks.data.problem import Problem
from training_core.checks.data.squeezed import of_noise, of_stand_ins
from training_core.checks.data.unknown import of_nulls, of_unknown
from training_core.checks.data.unseen import of_unseen
from training_core.checks.subject import Subject
from training_core.tabular import TabularPreprocessor
from training_core.task import Arrays, Preprocessor


def _subject(task: Any, rows: pd.DataFrame, validation: pd.DataFrame | None = None) -> Subject:
    return Subject(task, rows, validation=validation)


def _verdict(problems: list[Problem]) -> str:
    return "pass" if not problems else "fail" if problems[0].fails else "warn"


# ---- numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("write", "verdict"),
    [
        (lambda n: f"{n:.1f}".replace(".", ","), "fail"),
        (lambda n: f"{n * 100:,.0f}", "fail"),
        (lambda n: f"{n:.0f} m²"[:-1], "fail"),
        (lambda n: f"{n:.1f}" if n < 120 else f"{n:.1f} ha", "warn"),
        (lambda n: f"{n:.1f}", "pass"),
        (lambda n: f"code_{n:.0f}", "pass"),
    ],
    ids=["decimal comma", "thousands", "unit", "some", "plain", "names"],
)
def test_numbers_in_texts_that_are_read_as_nulls_are_found(write: Any, verdict: str) -> None:
    rows = table(300)
    rows = rows.assign(area=[write(n) for n in rows["area"]])
    assert _verdict([*of_nulls(_subject(Houses(), rows))]) == verdict


def test_rare_names_that_share_the_place_of_null_are_no_numbers() -> None:
    rows = table(300).assign(kind=[f"{i % 150},5 km" if i % 3 else "1,2 km" for i in range(300)])
    task = using(TabularPreprocessor, minimum_count=5)
    assert _verdict([*of_nulls(_subject(task, rows))]) == "pass"


class _Filled(TabularPreprocessor):
    """Writes a number for null before it standardises, or after."""

    number, after = 0.0, False

    def fit(self, train: pd.DataFrame) -> TabularPreprocessor:
        return super().fit(train if self.after else train.fillna({"rooms": self.number}))

    def transform(self, frame: pd.DataFrame) -> Any:
        if not self.after:
            return super().transform(frame.fillna({"rooms": self.number}))
        arrays = super().transform(frame)
        arrays["numbers"][frame["rooms"].isna().to_numpy(), 3] = self.number
        return arrays


@pytest.mark.parametrize(
    ("number", "after", "verdict"),
    [(-9_999, False, "fail"), (-45, False, "warn"), (-1, False, "pass"), (-5, True, "pass")],
)
def test_nulls_that_squeeze_what_is_known_are_found(
    number: float, after: bool, verdict: str
) -> None:
    kind = type("Kind", (_Filled,), {"number": number, "after": after, "clip": 1e9})
    problems = [*of_stand_ins(_subject(using(kind, clip=1e9), table()))]
    assert _verdict(problems) == verdict


@pytest.mark.parametrize(
    ("number", "clip", "verdict"),
    [(-9_999.0, 1e9, "fail"), (-3_700.0, 1e9, "warn"), (float("nan"), 8.0, "pass")],
)
def test_a_number_that_stands_for_an_unknown_one_is_found(
    number: float, clip: float, verdict: str
) -> None:
    rows = table()
    rows = rows.assign(age=rows["age"].mask(np.arange(len(rows)) % 8 == 0, number))
    task = using(TabularPreprocessor, clip=clip)
    assert _verdict([*of_stand_ins(_subject(task, rows))]) == verdict


class _Cycle(TabularPreprocessor):
    period = 1.0

    def transform(self, frame: pd.DataFrame) -> Any:
        arrays = super().transform(frame)
        angle = 2 * np.pi * frame["distance"].to_numpy() / self.period
        arrays["numbers"][:, 2] = np.sin(angle)
        return arrays


@pytest.mark.parametrize(("period", "verdict"), [(1.0, "fail"), (24.0, "pass")])
def test_a_sine_of_whole_turns_is_found(period: float, verdict: str) -> None:
    kind = type("Kind", (_Cycle,), {"period": period})
    problems = [*of_noise(_subject(using(kind), table()))]
    assert _verdict(problems) == verdict


# ---- words and categories --------------------------------------------------------------------


class _Words(TokenPreprocessor):
    """Learns and looks up as told; words rarer than `least` are unknown."""

    def __init__(self, *, learn: Any, ask: Any, least: int = 1) -> None:
        super().__init__("words", length=12)
        self.learn, self.ask, self.least = learn, ask, least

    def fit(self, train: pd.DataFrame) -> Self:
        words = pd.Series([self.learn(w) for text in train["words"] for w in text.split()])
        counts = words.value_counts()
        self.vocabulary = sorted(counts[counts >= self.least].index)
        return self

    def transform(self, frame: pd.DataFrame) -> Arrays:
        asked = [[self.ask(word) for word in text.split()] for text in frame["words"]]
        return super().transform(frame.assign(words=pd.Series(asked, dtype=object)))


def _same(word: str) -> str:
    return word


@pytest.mark.parametrize(
    ("learn", "ask", "least", "verdict"),
    [
        (str.lower, _same, 1, "fail"),
        (lambda word: word.strip(".,"), _same, 1, "fail"),
        (str.lower, str.lower, 1, "pass"),
        (_same, _same, 1, "pass"),
        (_same, _same, 40, "pass"),
    ],
    ids=["case", "punctuation", "both lower", "as written", "rare ones unknown"],
)
def test_words_looked_up_otherwise_than_learned_are_found(
    learn: Any, ask: Any, least: int, verdict: str
) -> None:
    random = np.random.default_rng(0)
    shares = 1 / np.arange(1, 41)
    rows = table(300).assign(words="")
    for row in range(len(rows)):
        words = [f"w{i}" for i in random.choice(40, 8, p=shares / shares.sum())]
        words = [w.title() if random.random() < 0.3 else w for w in words]
        rows.loc[row, "words"] = " ".join([*words[:-1], words[-1] + random.choice([".", ","])])

    class Told(Houses):
        def preprocessor(self) -> Preprocessor:
            return _Words(learn=learn, ask=ask, least=least)

    assert _verdict([*of_unknown(_subject(Told(), rows))]) == verdict


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"kind": str.upper}, "fail"),
        ({"kind": lambda kind: f"new {kind}"}, "pass"),
        ({"kind": lambda kind: f"new {kind}", "town": lambda town: f"new {town}"}, "fail"),
        ({"kind": lambda kind: f"new {kind}", "sort": lambda sort: f"new {sort}"}, "pass"),
        ({}, "pass"),
    ],
    ids=["written otherwise", "one is new", "two are new", "one follows from the other", "same"],
)
def test_held_back_categories_written_otherwise_are_found(change: Any, verdict: str) -> None:
    def rows(seed: int) -> pd.DataFrame:
        made = table(300, seed=seed)
        town = np.random.default_rng(seed + 7).choice(["north", "south", "west"], 300)
        return made.assign(
            town=town, sort=made["kind"].map({"hut": "a", "flat": "a", "house": "b"})
        )

    held_back = rows(1)
    held_back = held_back.assign(**{c: held_back[c].map(how) for c, how in change.items()})
    task = using(TabularPreprocessor, categories=["kind", "town", "sort"])
    assert _verdict([*of_unseen(_subject(task, rows(0), held_back))]) == verdict


def test_what_is_lost_is_said_by_the_check_of_the_inputs() -> None:
    rows = table(300)
    rows = rows.assign(area=[f"{n:.1f}".replace(".", ",") for n in rows["area"]])
    finding = look(InputsBeforeNetwork, using(TabularPreprocessor, numbers=NUMBERS), rows)
    assert finding.verdict == "fail"
    assert "values of 'area' are numbers such as" in finding.message
