# ruff: noqa: RUF012 (pydantic copies defaults)
"""What an ensemble is made of, what it gains and what it costs."""

from __future__ import annotations

from components.common.figures import Figures


class ModelCost(Figures):
    """What one model, or an ensemble, costs.

    Attributes:
        parameters: Numbers in its weights and buffers.
        size: Bytes of its package.
        training_seconds: Of all its trainings in this run; None: not known.
        row_ms: To predict one row by itself, the median of several.
        rows_ms: To predict a thousand rows at once.
    """

    parameters: int
    size: int
    training_seconds: float | None
    row_ms: float
    rows_ms: float


class EnsembleMember(Figures):
    """One of the models that are averaged.

    Attributes:
        what: In words: which training, or which champion.
        value: Of the metric, on the validation split. A champion may have been trained on some of
            these rows: nothing is decided by it.
        package: sha256 of each of its own package's files, in the object store.
    """

    what: str
    value: float
    package: dict[str, str]


class EnsembleFigures(Figures):
    """The run's candidate is the mean of these members' predictions.

    Attributes:
        of: As in the settings.
        asked: How many members the settings ask for.
        metric: What values are of.
        value: Of the mean.
        left_out: Why there are fewer members than asked, in words.
        one: What the model costs that this run trained (with seeds: the first one).
        all: What the ensemble costs.
    """

    of: str
    asked: int
    metric: str
    members: list[EnsembleMember]
    value: float
    left_out: list[str] = []
    one: ModelCost
    all: ModelCost

    @property
    def mean(self) -> float:
        """Mean of the members' values."""
        return sum(member.value for member in self.members) / len(self.members)
