"""The mean of several models' predictions, as one package like any other.

    write_ensemble(folder, members=[package, ...], task=task, sample=rows, facts={...})

The mean is part of the graph, so whatever loads, serves, measures or judges packages knows nothing
of it. Members are packages: whatever network and preparation they were trained with, they keep.
Members that prepare rows alike share their arrays.

Averaged are predictions: probabilities of classes and tokens, numbers of a regression. By Jensen's
inequality the log loss, and the squared error, of the mean is never above the mean of the members'.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from training_core import joined
from training_core.errors import TrainingFailed
from training_core.joined import JoinedPreprocessor
from training_core.package import Package, export, seal
from training_core.task import Preprocessor, Task


class _Mean(nn.Module):
    """From arrays to the mean of all members' predictions, added up in float64.

    Args:
        members: Graphs from arrays to predictions.
        prefixes: Of each member's names of arrays.
    """

    def __init__(self, members: Sequence[nn.Module], prefixes: Sequence[str]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self._prefixes = tuple(prefixes)

    def forward(self, arrays: dict[str, Tensor]) -> Tensor:
        total: Tensor | None = None
        for member, prefix in zip(self.members, self._prefixes, strict=True):
            own = {
                name.removeprefix(prefix): array
                for name, array in arrays.items()
                if name.startswith(prefix)
            }
            predictions = member(own).double()
            total = predictions if total is None else total + predictions
        assert total is not None
        return total / len(self.members)


def write_ensemble(
    folder: Path,
    *,
    members: Sequence[Package],
    task: Task,
    sample: pd.DataFrame,
    facts: dict[str, Any],
) -> dict[str, str]:
    """Write the package of some packages' mean, and prove that it predicts that mean.

    Args:
        folder: Made if it is not there.
        members: Two or more, for this task, whose preprocessors are of one class. One that is the
            mean of several preparations is no member of another: name its members.
        task: What they were trained for.
        sample: Two raw rows or more.
        facts: As of any package.

    Returns:
        sha256 by file name, `package.json` included.

    Raises:
        TrainingFailed: Their graphs cannot be joined, or the package predicts something else.
    """
    if any(isinstance(member.preprocessor, JoinedPreprocessor) for member in members):
        raise TrainingFailed(
            "a member of the ensemble is itself a mean of models with preparations of their own",
            hint="give its members instead: facts.ensemble in its package.json names them",
        )
    preprocessor, prefixes = _joined(members)
    arrays = {n: torch.from_numpy(a) for n, a in preprocessor.transform(sample).items()}
    mean = _Mean([member.network for member in members], prefixes)
    export(mean, arrays, folder)
    kind = type(members[0].preprocessor)
    source = Path(inspect.getfile(kind)).read_text()
    if isinstance(preprocessor, JoinedPreprocessor):
        more = Path(joined.__file__).read_text()
        source = f"{source}\n\n{more.replace('from __future__ import annotations', '', 1)}"
    sealed = seal(folder, task=task, preprocessor=preprocessor, source=source, facts=facts)
    expected = np.mean([member.predict(sample) for member in members], axis=0)
    found = Package(folder, kind).predict(sample)
    if not np.allclose(expected, found, rtol=1e-4, atol=1e-5):
        raise TrainingFailed(
            "the packaged ensemble predicts something else than the mean of its members "
            f"(largest difference {np.abs(expected - found).max():.2g})",
            hint="does a member's forward depend on anything but its inputs and weights?",
        )
    return sealed


def parameters_of(package: Package) -> int:
    """Return how many numbers a package's networks have learned; buffers count as well."""
    return sum(tensor.numel() for tensor in package.network.state_dict().values())


def _joined(members: Sequence[Package]) -> tuple[Preprocessor, list[str]]:
    """Return one preprocessor for all members, and what each one's arrays begin with."""
    states = [json.dumps(m.preprocessor.state_dict(), sort_keys=True) for m in members]
    different = list(dict.fromkeys(states))
    if len(different) == 1:
        return members[0].preprocessor, [""] * len(members)
    fitted = [members[states.index(state)].preprocessor for state in different]
    prefixes = [f"m{different.index(state)}_" for state in states]
    return cast(Preprocessor, JoinedPreprocessor(fitted)), prefixes
