"""All healthy tasks: on none of them may a check fail."""

from __future__ import annotations

from tests.planted_bugs import (
    healthy_arrows,
    healthy_averaged,
    healthy_bag_of_words,
    healthy_categories,
    healthy_counts,
    healthy_digits,
    healthy_gru,
    healthy_language_model,
    healthy_multilabel,
    healthy_noisy_labels,
    healthy_odd_scale,
    healthy_rare,
    healthy_regression,
    healthy_residual,
    healthy_sgd,
    healthy_tagger,
    healthy_tiny,
    healthy_transformer,
    healthy_wide,
)
from tests.planted_bugs.contract import Healthy

HEALTHY: tuple[Healthy, ...] = tuple(
    kind.HEALTHY
    for kind in (
        healthy_regression,
        healthy_odd_scale,
        healthy_counts,
        healthy_rare,
        healthy_noisy_labels,
        healthy_multilabel,
        healthy_categories,
        healthy_tiny,
        healthy_wide,
        healthy_sgd,
        healthy_residual,
        healthy_averaged,
        healthy_digits,
        healthy_arrows,
        healthy_bag_of_words,
        healthy_transformer,
        healthy_tagger,
        healthy_language_model,
        healthy_gru,
    )
)
