"""What is searched anew after a change of the batch size, and what is kept."""

from __future__ import annotations

import math
from dataclasses import replace

from components.common.project import Project
from components.tune.space import Space, rounded, told
from training_core.errors import ConfigurationError


def rescaled(project: Project, space: Space, *, batch_size: int) -> Space:
    """Return the space of a search after a change of the batch size: the nuisances anew.

    What is scientific is held: an answer that was found does not change its meaning with the
    batch. The learning rate goes with the square root of the batch size for Adam and its kin
    (Malladi et al. 2022, arXiv:2205.10287), with the batch size itself for SGD (Goyal et al. 2017,
    arXiv:1706.02677); it is searched by a factor of four around that.

    Args:
        project: With the old batch size.
        space: Of that one.
        batch_size: The new one.

    Raises:
        ConfigurationError: No nuisance is left to be searched.
    """
    training = project.settings.training
    ratio = batch_size / training.batch_size
    plain = training.optimiser.name == "sgd"
    factor = ratio if plain else math.sqrt(ratio)
    notes, dimensions, held = [*space.notes], [], dict(space.held)
    for each in space.dimensions:
        if each.path == "training.batch_size" or each.role == "scientific":
            if each.path != "training.batch_size":
                held[each.path] = each.present
                notes.append(
                    f"{each.path} is scientific: kept at {told(each.present)}, for the answer to "
                    "it is not to change with the batch"
                )
        elif each.path == "training.optimiser.lr":
            assert isinstance(each.present, int | float)
            middle = each.present * factor
            dimensions.append(
                replace(
                    each, low=rounded(middle / 4), high=rounded(middle * 4), log=True, step=None,
                    choices=(),
                )
            )  # fmt: skip
            law = "the batch size" if plain else "the square root of the batch size"
            notes.append(
                f"{each.path} goes with {law} ({training.optimiser.name}): "
                f"{told(each.present)} becomes {told(rounded(middle))}, searched from "
                f"{told(rounded(middle / 4))} to {told(rounded(middle * 4))}"
            )
        else:
            dimensions.append(each)
            notes.append(
                f"{each.path} is a nuisance without a known law: searched anew, {each.words()}"
            )
    if not dimensions:
        raise ConfigurationError(
            "nothing is searched anew: no parameter is a nuisance",
            hint="give tune.parameters.training.optimiser.lr the role nuisance",
        )
    return Space(tuple(dimensions), held, tuple(notes))
