"""Weights of a start put into a model: by name, all of them, or an error that lists what differs.

started = start_from(model, settings.start, weights)     # before Trainer(model=model, …)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.errors import ConfigurationError
from training_core.transfer.patterns import listed, matches, matching
from training_core.transfer.settings import StartSettings

STARTED = "_evertrain_started"  # attribute of a model that has its start


@dataclass(frozen=True)
class Started:
    """What came of the weights of a start.

    Attributes:
        carried: Names that were taken over.
        replaced: Names that stay as initialised, as `replace` says.
        unused: Names of the start that the model has not.
    """

    carried: list[str]
    replaced: list[str]
    unused: list[str]


def start_from(model: nn.Module, settings: StartSettings, weights: Mapping[str, Tensor]) -> Started:
    """Put the weights of a start into a model that was just initialised.

    Args:
        model: On the CPU, not sharded; changed.
        settings: `names`, `replace`, `shrink`, `perturb`.
        weights: By name; another dtype is converted.

    Raises:
        ConfigurationError: What is neither in the start nor in `replace`, or has another shape:
            all such names are listed.
    """
    found = renamed(weights, settings.names)
    state = model.state_dict()
    replaced = matching(list(state), settings.replace, setting="training.start.replace")
    carried = [name for name in state if name not in replaced and name in found]
    _refuse_what_differs(state, found, replaced)
    frozen = settings.freeze
    with torch.no_grad():
        for name in carried:
            fresh, value = state[name], found[name].to(state[name].dtype)
            mixed = fresh.is_floating_point() and name in dict(model.named_parameters())
            if (
                mixed
                and not matches(name, frozen)
                and (settings.shrink, settings.perturb) != (1, 0)
            ):
                value = settings.shrink * value + settings.perturb * fresh
            fresh.copy_(value)
    setattr(model, STARTED, True)
    return Started(carried, sorted(replaced), sorted(found.keys() - state.keys()))


def start_without(model: nn.Module) -> None:
    """Leave a model as initialised, knowingly: there is no champion to start from yet."""
    setattr(model, STARTED, True)


def refuse_forgotten_start(model: nn.Module, settings: StartSettings) -> None:
    """Refuse to train a model from random weights where a start is asked for.

    Raises:
        ConfigurationError: Nobody gave it its weights.
    """
    if settings.weights != "none" and not getattr(model, STARTED, False):
        raise ConfigurationError(
            f"training.start.weights is {settings.weights}, and the model has not been given them",
            hint="call training_core.transfer.weights.start_from(model, settings.start, weights)",
        )


def renamed(weights: Mapping[str, Tensor], names: Mapping[str, str]) -> dict[str, Tensor]:
    """Return weights under the names that replacements make of theirs.

    Raises:
        ConfigurationError: Two get the same name.
    """
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        new = name
        for pattern, replacement in names.items():
            new = re.sub(pattern, replacement, new)
        if new in found:
            raise ConfigurationError(
                f"training.start.names gives two of the file's tensors the name {new!r}",
                hint="let the regular expressions tell them apart",
            )
        found[new] = value
    return found


def _refuse_what_differs(
    state: Mapping[str, Tensor], found: Mapping[str, Tensor], replaced: set[str]
) -> None:
    wanted = [name for name in state if name not in replaced]
    # a counter that BatchNorm reads only without a momentum; older files have none
    missing = [n for n in wanted if n not in found and not n.endswith("num_batches_tracked")]
    different = [
        f"{n} ({'×'.join(map(str, found[n].shape)) or 'a number'} in the start, "
        f"{'×'.join(map(str, state[n].shape)) or 'a number'} in the model)"
        for n in wanted
        if n in found and found[n].shape != state[n].shape
    ]
    if not (missing or different):
        return
    unused = sorted(found.keys() - state.keys())
    words = [f"not there: {listed(missing)}"] if missing else []
    words += [f"of another shape: {', '.join(different)}"] if different else []
    more = f"; the start also has {listed(unused)}" if unused else ""
    raise ConfigurationError(
        f"the weights of the start do not fit the model: {'; '.join(words)}{more}",
        hint="name in training.start.replace what shall stay as initialised, or give the file's "
        "names the model's by training.start.names",
    )
