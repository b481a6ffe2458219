"""Rows of embeddings carried over by what they stand for, where vocabularies have changed.

New rows of data bring new categories, and every index behind a new one moves: the weights of a
model that was trained with another vocabulary fit, if at all, the wrong categories.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, nn

from training_core.errors import ConfigurationError
from training_core.tabular import UNSEEN, TabularPreprocessor
from training_core.transfer.patterns import matches


@dataclass(frozen=True)
class Vocabularies:
    """What became of the categories.

    Attributes:
        weights: Of the start, the rows of its embeddings in the new order.
        known: Categories that were carried over.
        new: Categories whose rows stay as initialised.
        gone: Categories that are no longer there.
    """

    weights: dict[str, Tensor]
    known: int = 0
    new: int = 0
    gone: int = 0


def by_vocabulary(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    *,
    before: TabularPreprocessor,
    now: TabularPreprocessor,
    replace: tuple[str, ...] = (),
) -> Vocabularies:
    """Put the rows of embeddings where the new vocabularies have their categories.

    Args:
        model: As initialised for `now`: gives the rows of new categories.
        weights: Of a model that was built for `before`.
        before, now: Both fitted.
        replace: Patterns of what stays as initialised anyway.

    Raises:
        ConfigurationError: The inputs are other ones, or it cannot be told which embedding is of
            which column.
    """
    _refuse_other_inputs(before, now)
    if before.vocabularies == now.vocabularies:
        known = sum(len(values) for values in now.vocabularies.values())
        return Vocabularies(dict(weights), known=known)
    found = dict(weights)
    known = new = gone = 0
    for column, name in _embeddings(model, weights, before=before, now=now).items():
        old_places = {v: i + 1 for i, v in enumerate(before.vocabularies[column])}
        values = now.vocabularies[column]
        both = [(i + 1, old_places[v]) for i, v in enumerate(values) if v in old_places]
        known, new = known + len(both), new + len(values) - len(both)
        gone += len(old_places) - len(both)
        fresh, old = model.get_parameter(name).detach(), weights[name]
        if matches(name, replace) or fresh.shape[1:] != old.shape[1:]:
            continue  # what fits nothing is said where all of it is compared
        rows = fresh.clone()
        rows[UNSEEN] = old[UNSEEN]
        for to, place in both:
            rows[to] = old[place]
        found[name] = rows
    return Vocabularies(found, known, new, gone)


def _embeddings(
    model: nn.Module,
    weights: Mapping[str, Tensor],
    *,
    before: TabularPreprocessor,
    now: TabularPreprocessor,
) -> dict[str, str]:
    """Return the name of each category column's embedding: those of the model, in their order."""
    names = [
        f"{name}.weight" for name, each in model.named_modules() if isinstance(each, nn.Embedding)
    ]
    sizes = [len(model.get_parameter(name)) for name in names]
    old_sizes = [len(weights[name]) if name in weights else 0 for name in names]
    if sizes == now.cardinalities and old_sizes == before.cardinalities:
        return dict(zip(now.categories, names, strict=True))
    raise ConfigurationError(
        "the champion's categories are not those of the new rows, and it cannot be told which "
        f"embedding is of which column: {len(now.categories)} category columns with "
        f"{now.cardinalities} indices, {len(names)} embeddings with {sizes} rows "
        f"({before.cardinalities} and {old_sizes} in the champion)",
        hint="give the model one nn.Embedding for each category column, in the columns' order; or "
        "set training.start.weights to none",
    )


def _refuse_other_inputs(before: TabularPreprocessor, now: TabularPreprocessor) -> None:
    changed = [
        f"{what} were {list(old)}, and are {list(new)}"
        for what, old, new in (
            ("categories", before.categories, now.categories),
            ("numbers", before.number_columns, now.number_columns),
        )
        if list(old) != list(new)
    ]
    if changed:
        raise ConfigurationError(
            f"the champion was trained on other inputs: {'; '.join(changed)}",
            hint="set training.start.weights to none for this run; the next one can start from its "
            "model again",
        )
