"""What happens to the examples of a training step beside the task's own augmentation.

Noise: on numbers Gaussian (Bishop 1995: it is Tikhonov regularisation), on categories SwapNoise
(Jahrer 2018, the winning solution of Kaggle's Porto Seguro: cells from other rows keep each
column's distribution). Then mixing, which is of what has become of the examples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from training_core.errors import ConfigurationError
from training_core.examples import Examples
from training_core.feeds.order import mixed_seed
from training_core.regularisation.mixing import mixed
from training_core.regularisation.settings import RegularisationSettings


class Changes:
    """An augmentation (`training_core.augmentation.Augmentation`) after another one.

    Args:
        before: The other one: the task's.
        task: Whose examples they are.
        settings: What happens.
        seed: Of the draws.

    Raises:
        ConfigurationError: The task's categories are tokens, which are not swapped.
    """

    def __init__(
        self, before: Any, *, task: Any, settings: RegularisationSettings, seed: int
    ) -> None:
        if settings.swap_noise and getattr(task, "kind", None) == "sequence":
            raise ConfigurationError(
                "training.regularisation.swap_noise is set, and this is a sequence task",
                hint="drop tokens in Task.augment (training_core.augmentations.token_dropout)",
            )
        self._before, self._settings, self._seed = before, settings, seed

    def __call__(self, examples: Examples, *, sample: int, part: int) -> Examples:
        """Return changed examples (see `Augmentation`)."""
        examples = self._before(examples, sample=sample, part=part)
        # the task draws by (seed, part, sample): one number more is another stream
        random = np.random.default_rng(mixed_seed(self._seed, part, sample, 1))
        settings = self._settings
        if settings.gaussian_noise or settings.swap_noise:
            arrays = {n: self._noisy(a, random) for n, a in examples.arrays.items()}
            examples = Examples(arrays, examples.target, examples.units, examples.teacher)
        return mixed(examples, random, settings) if settings.mixes else examples

    def _noisy(self, array: Tensor, random: np.random.Generator) -> Tensor:
        if array.is_floating_point():
            deviation = self._settings.gaussian_noise
            if not deviation:
                return array
            drawn = torch.from_numpy(random.standard_normal(tuple(array.shape), dtype=np.float32))
            return array + deviation * drawn.to(array.dtype)
        if not self._settings.swap_noise:
            return array
        swapped = torch.from_numpy(random.random(tuple(array.shape)) < self._settings.swap_noise)
        rows = torch.from_numpy(random.integers(0, len(array), tuple(array.shape)))
        others = array if array.ndim == 1 else array.flatten(1)
        others = others.gather(0, rows.view(others.shape)).view(array.shape)
        return torch.where(swapped, others, array)
