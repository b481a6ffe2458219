"""A model's stages from its input to its output: which of them a parameter belongs to.

Discriminative rates and gradual unfreezing go by them. A stage is a layer, or a repeated block:

- each element of the model's outermost `nn.Sequential`s and `nn.ModuleList`s, and each layer beside
  them, in the order in which they were registered;
- a normalising layer belongs to what comes before it;
- embeddings that follow each other, as a table's columns have them, are one stage;
- a parameter of the model itself (a position, a token) belongs to the stage after it.

`training.start.stages` says it where that is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn
from torch.nn import Parameter

from training_core.errors import ConfigurationError
from training_core.optim.groups import NORMS, Part
from training_core.transfer.patterns import listed, matches, matching
from training_core.transfer.settings import StartSettings

_LISTS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class Stages:
    """Tells the stage of every parameter of a model by its name.

    Args:
        model: Any; names are the same when it is sharded.
        patterns: As in `training.start.stages`; empty: the model's own structure.

    Attributes:
        count: How many there are; stage 0 is the input's.

    Raises:
        ConfigurationError: A parameter is of none, or a pattern means none.
    """

    def __init__(self, model: nn.Module, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._units: list[tuple[str, int]] = []  # prefix of names, stage
        names = [name for name, _ in model.named_parameters()]
        if patterns:
            self.count = len(patterns)
            matching(names, self._patterns, setting="training.start.stages")
            without = [name for name in names if not matches(name, self._patterns)]
            if without:
                raise ConfigurationError(
                    f"training.start.stages says no stage for {listed(without)}",
                    hint="let one of its patterns mean them; the first that does counts",
                )
            return
        self._last: nn.Module | None = None
        self._top = -1
        self._walk(model, "", inside_list=isinstance(model, nn.Sequential))
        self.count = max(1, self._top + 1)

    def of(self, name: str) -> int:
        """Return the stage of a parameter, or of anything else with a dotted name."""
        if self._patterns:
            fitting = (i for i, p in enumerate(self._patterns) if matches(name, (p,)))
            return next(fitting, self.count - 1)
        best = max(
            (unit for unit in self._units if name == unit[0] or name.startswith(f"{unit[0]}.")),
            key=lambda unit: len(unit[0]),
            default=("", 0),
        )
        return min(best[1], self.count - 1)

    def _walk(self, module: nn.Module, prefix: str, *, inside_list: bool) -> None:
        for name, _ in module.named_parameters(recurse=False):
            self._units.append((prefix + name, self._top + 1))
        for name, child in module.named_children():
            if next(child.parameters(), None) is None:
                continue
            is_list = isinstance(child, _LISTS)
            if inside_list or _only_embeddings(child) or not (is_list or _has_list(child)):
                self._add(f"{prefix}{name}", child)
            else:
                self._walk(child, f"{prefix}{name}.", inside_list=is_list)

    def _add(self, name: str, module: nn.Module) -> None:
        joins = isinstance(module, NORMS)
        joins |= _only_embeddings(module) and _only_embeddings(self._last)
        if not joins or self._top < 0:
            self._top += 1
        self._units.append((name, self._top))
        self._last = module


def parts_of(model: nn.Module, settings: StartSettings) -> dict[Parameter, Part] | None:
    """Return what each trained parameter's learning rate is multiplied with, and when it thaws.

    None where all are trained alike.

    Raises:
        ConfigurationError: More shares in `unfreeze` than there are stages to thaw.
    """
    if settings.lr_decay == 1 and not settings.unfreeze:
        return None
    stages = Stages(model, settings.stages)
    below = stages.count - 1
    if len(settings.unfreeze) > below:
        raise ConfigurationError(
            f"training.start.unfreeze has {len(settings.unfreeze)} shares, and the model has "
            f"{below} stages below its topmost",
            hint="leave some out, or cut the model into more stages by training.start.stages",
        )
    return {
        parameter: Part(
            lr_factor=settings.lr_decay ** (below - stages.of(name)),
            level=min(below - stages.of(name), len(settings.unfreeze)),
        )
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }


def _has_list(module: nn.Module) -> bool:
    lists = [each for each in module.modules() if isinstance(each, _LISTS)]
    return any(next(each.parameters(), None) is not None for each in lists)


def _only_embeddings(module: nn.Module | None) -> bool:
    if module is None:
        return False
    owners = [m for m in module.modules() if next(m.parameters(recurse=False), None) is not None]
    return all(isinstance(owner, nn.Embedding | nn.EmbeddingBag) for owner in owners)
