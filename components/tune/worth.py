"""Whether a winner is taken: only where it is shown to be better."""

from __future__ import annotations

from components.common.tune_figures import TuneFigures


def worth(figures: TuneFigures) -> bool:
    """Say whether the winner is to be trained with, or written into evertrain.yaml.

    The seeds have to show it ahead on validation; on the holdout, if that was looked at, its mean
    has to be ahead as well.
    """
    compared = figures.comparison
    if compared is None or not compared.better or not figures.overrides:
        return False
    return compared.holdout is None or compared.holdout.mean > 0
