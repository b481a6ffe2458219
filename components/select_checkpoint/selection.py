"""From scores to a choice, said in figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from components.common.decision_figures import Candidate, SelectFigures
from components.common.decision_settings import Rule
from components.common.resampling import Draws
from components.select_checkpoint.choosing import WORDS, Choice, Place, Scored, choose
from components.select_checkpoint.optimism import expected_optimism
from components.select_checkpoint.scoring import Score


class Selection(NamedTuple):
    """Who was chosen, and all that is known of it and of the others."""

    place: Place
    candidate: Candidate
    figures: SelectFigures


def select(
    scores: Sequence[Score],
    draws: Draws,
    *,
    rule: Rule,
    confidence: float,
    damaged: list[str],
    averaged: bool = False,
) -> Selection:
    """Choose among candidates that were scored on the same rows.

    Args:
        scores: One or more, finite.
        draws: Of the rows' clusters.
        rule: As in the settings.
        confidence: Of every interval.
        damaged: What was passed over, in words.
        averaged: Checkpoints stand for the average that training kept.
    """
    scores = sorted(scores, key=lambda score: score.place)
    scored = Scored(
        places=[score.place for score in scores],
        totals=np.stack([score.totals for score in scores], axis=1),
        units=scores[0].units,
        draws=draws,
    )
    choice = choose(scored, rule, confidence=confidence)
    candidates = [
        _candidate(score, low=interval.low, high=interval.high, choice=choice, index=k)
        for k, (score, interval) in enumerate(
            zip(scores, scored.intervals(confidence=confidence), strict=True)
        )
    ]
    chosen = candidates[choice.chosen]
    figures = SelectFigures(
        metric="loss",
        rule=WORDS[rule],
        candidates=candidates,
        chosen=chosen.step,
        damaged=damaged,
        chosen_members=chosen.members,
        averaged=averaged,
        optimism=expected_optimism(scored, rule, confidence=confidence),
    )
    return Selection(scores[choice.chosen].place, chosen, figures)


def _candidate(score: Score, *, low: float, high: float, choice: Choice, index: int) -> Candidate:
    difference, reach = float(choice.differences[index]), float(choice.reach[index])
    return Candidate(
        step=score.place.step,
        metrics={name: value for name, value in score.metrics.items() if math.isfinite(value)},
        low=low,
        high=high,
        members=sorted(score.place.members),
        difference=difference,
        difference_low=difference - reach,
        difference_high=difference + reach,
        as_good=bool(choice.as_good[index]),
    )
