"""The ledger of questions: how often the same holdout rows have been asked for a decision.

Who asks the same rows again and again finds, by chance, a challenger that looks better on them.
So each question is written down before its answer is known, as `questions/<number>.json`, created
only if none has its number. The k-th question to the same rows may err with 1/k² of the error that
the settings allow; over all of them that adds up to at most 1.65 times it (π²/6), one-sided 4.1 %
at a confidence of 95 %. Rows that are new have not been asked, so a holdout that grows or moves on
is worn less; rows that were asked too often are left out.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from components.common.layout import object_key, sha256_of_bytes
from infra.errors import OutsideError
from infra.store import ObjectStore

PREFIX = "questions/"
_TRIES = 50  # other runs that may take the next number at the same moment
Keys = npt.NDArray[np.uint64]


class Question(BaseModel):
    """One use of a holdout.

    Attributes:
        number: 1 for the first; one more each time.
        run_key, champion: Who asks, against which entry of the promotion log: asked again after a
            crash, it is the same question.
        keys: sha256 of the object that holds the rows' keys, hashed.
        rows: That were asked.
        left_out: That had been asked too often.
        uses, confidence: As `QuestionFigure` has them.
    """

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/question/1"] = "evertrain/question/1"
    number: int
    run: str
    run_key: str
    champion: int
    keys: str
    rows: int
    left_out: int
    uses: float
    confidence: float
    when: datetime = Field(default_factory=lambda: datetime.now(UTC))


def row_keys(rows: pd.DataFrame, columns: Sequence[str]) -> Keys:
    """Return a 64-bit hash of each row's key, uint64 [N]."""
    if not columns:
        raise ValueError("a row's key has at least one column")
    told = rows[list(columns)].astype(str)
    return np.asarray(pd.util.hash_pandas_object(told, index=False), dtype=np.uint64)


def confidence_of(uses: float, confidence: float) -> float:
    """Return the confidence that a question may claim which is the `uses`-th."""
    return 1 - (1 - confidence) / uses**2


class Ledger:
    """The questions in a project's object store.

    Raises:
        OutsideError: An entry is damaged, or a number is missing: nothing may be decided then.
    """

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def questions(self) -> list[Question]:
        """Return all questions, oldest first."""
        found: list[Question] = []
        for info in self.store.list(PREFIX):
            try:
                found.append(Question.model_validate_json(self.store.get(info.key)))
            except ValidationError as error:
                raise OutsideError(
                    f"{info.key} in {self.store.uri} is no question ({error.error_count()} faults)",
                    hint="restore the object from a backup: how worn the holdout is is not known",
                ) from error
        if [q.number for q in found] != list(range(1, len(found) + 1)):
            raise OutsideError(
                f"the ledger of questions in {self.store.uri} is not whole",
                hint="restore the missing objects below questions/ from a backup",
            )
        return found

    def uses(self, keys: Keys, *, run_key: str, champion: int) -> npt.NDArray[np.int64]:
        """Return how often each row has been asked, this time included, int64 [N]."""
        counts = np.ones(len(keys), dtype=np.int64)
        for question in self.questions():
            if (question.run_key, question.champion) != (run_key, champion):
                counts += np.isin(keys, self._keys_of(question))
        return counts

    def ask(
        self,
        keys: Keys,
        *,
        run: str,
        run_key: str,
        champion: int,
        confidence: float,
        left_out: int = 0,
    ) -> Question:
        """Write down a question to these rows; the same one, asked before, is returned as it was.

        Args:
            keys: Of the rows that are asked.
            run, run_key: Who asks.
            champion: Number of the entry of the promotion log that is compared against.
            confidence: Of the settings.
            left_out: Rows that were asked too often before.
        """
        sha256 = self._keep(keys)
        for _ in range(_TRIES):
            past = self.questions()
            for question in past:
                if (question.run_key, question.champion, question.keys) == (
                    run_key, champion, sha256,
                ):  # fmt: skip
                    return question
            uses = float(self.uses(keys, run_key=run_key, champion=champion).mean())
            made = Question(
                number=len(past) + 1,
                run=run,
                run_key=run_key,
                champion=champion,
                keys=sha256,
                rows=len(keys),
                left_out=left_out,
                uses=uses,
                confidence=confidence_of(uses, confidence),
            )
            content = made.model_dump_json(indent=1).encode()
            if self.store.create(f"{PREFIX}{made.number:08d}.json", content):
                return made
        raise OutsideError(
            f"the ledger of questions in {self.store.uri} could not be written: other runs took "
            f"{_TRIES} numbers at the same moment",
            hint="run the same command again",
        )

    def _keep(self, keys: Keys) -> str:
        """Store keys under their content hash; the order of the rows is no part of it."""
        file = io.BytesIO()
        np.save(file, np.sort(keys), allow_pickle=False)
        content = file.getvalue()
        sha256 = sha256_of_bytes(content)
        if self.store.info(object_key(sha256)) is None:
            self.store.put(object_key(sha256), content)
        return sha256

    def _keys_of(self, question: Question) -> Keys:
        content = self.store.get(object_key(question.keys))
        if sha256_of_bytes(content) != question.keys:
            raise OutsideError(
                f"the rows of question {question.number} in {self.store.uri} are not those asked",
                hint=f"restore {object_key(question.keys)} from a backup",
            )
        keys: Any = np.load(io.BytesIO(content), allow_pickle=False)
        return np.asarray(keys, dtype=np.uint64)
