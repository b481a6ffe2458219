"""Retrain or not: an advice with its uncertainty, never silent, and when in doubt for retraining.

    advice = advise(moved=[…], kept=Kept(…), waiting=waiting_of(lost, 1.5), worth=0.005)
    if advice.retrain: …

Pure functions of three things that may each be unknown: what validate_data says has moved, how the
champion does on labels that came after it, and what waiting cost in past backtests. The metric is
one where lower is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from components.common.data_figures import ValidateFigures
from components.common.data_settings import CheckName

# Findings after which a model may no longer know the rows that come.
_MOVES: tuple[CheckName, ...] = (
    "drift", "label_shift", "label_relation", "joint_shift", "new_category",
)  # fmt: skip
_MOST_MOVES = 3  # that are said one by one
_ALIKE = 1.5  # ages are alike within this factor


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Estimate(_Said):
    """A value and where it may lie."""

    mean: float
    low: float
    high: float

    def minus(self, other: Estimate) -> Estimate:
        """The difference of two that know nothing of each other."""
        mean = self.mean - other.mean
        return Estimate(
            mean=mean,
            low=mean - math.hypot(self.mean - self.low, other.high - other.mean),
            high=mean + math.hypot(self.high - self.mean, other.mean - other.low),
        )


class Kept(_Said):
    """Whether the champion keeps what it promised.

    Attributes:
        promised: Its metric on the holdout that it was promoted on.
        now: Its metric on labelled rows that came later.
        rows, clusters: Of these.
    """

    metric: str
    promised: Estimate
    now: Estimate
    rows: int
    clusters: int


class Lost(NamedTuple):
    """What an older model lost to the newest in one period of a backtest."""

    period: str
    months: float
    gain: float


class Waiting(_Said):
    """What waiting so long cost in past backtests: the metric given away by not retraining.

    Attributes:
        months: How long.
        mean, deviation: Of the periods' means, and between periods.
        periods: How many were looked at.
        alike: Models of about that age were seen; else it is scaled up or down from all ages, which
            overstates where a loss levels off.
    """

    months: float
    mean: float
    deviation: float
    periods: int
    alike: bool


class Advice(_Said):
    """Whether to retrain.

    Attributes:
        retrain: What to do. `cannot say` is True: doubt costs hours, silence costs the model.
        gain: What retraining now is expected to improve the metric by; None: not known.
        reasons: Sentences with numbers, those that decided first.
        unknown: What was not known, in sentences.
        moved: Whether the data have moved; None: not known.
        decayed: Whether the champion's metric on new labels is worse for certain; None: not known.
    """

    advice: Literal["retrain", "wait", "cannot say"]
    retrain: bool
    gain: Estimate | None
    worth: float
    reasons: list[str]
    unknown: list[str]
    moved: bool | None = None
    decayed: bool | None = None


def moves_of(figures: ValidateFigures | None) -> list[str] | None:
    """Return what has moved, in sentences; none: nothing has; None: nobody looked."""
    if figures is None or not figures.drift:
        return None
    return [finding.message for finding in figures.findings if finding.check in _MOVES]


def waiting_of(lost: Sequence[Lost], months: float) -> Waiting | None:
    """Sum up what backtests saw of models about so many months older; each period counts once.

    None where there are fewer than two periods, or no time has passed.
    """
    if months <= 0:
        return None
    older = [each for each in lost if each.months > 0]
    like = [x for x in older if months / _ALIKE <= x.months <= months * _ALIKE]
    alike = len({x.period for x in like}) > 1
    chosen = like if alike else older
    by_period = [[x for x in chosen if x.period == period] for period in {x.period for x in chosen}]
    if len(by_period) < 2:
        return None
    if alike:
        means = [sum(x.gain for x in of_it) / len(of_it) for of_it in by_period]
    else:
        means = [
            months * sum(x.gain for x in of_it) / sum(x.months for x in of_it)
            for of_it in by_period
        ]
    return Waiting(
        months=months, mean=fmean(means), deviation=stdev(means), periods=len(means), alike=alike
    )


def expected_gain(waiting: Waiting, *, confidence: float) -> Estimate:
    """What retraining now gains (t interval over the periods)."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import, this 0.3

    reach = float(stdtrit(waiting.periods - 1, (1 + confidence) / 2))
    half = reach * waiting.deviation / math.sqrt(waiting.periods)
    return Estimate(mean=waiting.mean, low=waiting.mean - half, high=waiting.mean + half)


def advise(
    *,
    moved: list[str] | None,
    kept: Kept | None,
    waiting: Waiting | None,
    worth: float,
    confidence: float = 0.95,
) -> Advice:
    """Weigh what is known.

    Retrain where one thing shows that it pays; wait only where nothing does, drift and newest
    labels are both known, and the gain that is expected is not worth it; else it cannot be said.

    Args:
        moved: As `moves_of` returns it.
        kept: None: no label has come since the champion was promoted.
        waiting: For as long as the champion has waited; None: there was no backtest.
        worth: The smallest gain that is worth a training.
        confidence: Of the expected gain's interval.
    """
    gain = expected_gain(waiting, confidence=confidence) if waiting else None
    lost = kept.now.minus(kept.promised) if kept else None
    for_it, neither, unknown = [], [], []
    if moved is None:
        unknown.append("whether the data have moved: nothing was validated since the champion's")
    elif moved:
        more = f" (and {len(moved) - _MOST_MOVES} more)" if len(moved) > _MOST_MOVES else ""
        for_it.append("the data have moved: " + "; ".join(moved[:_MOST_MOVES]) + more)
    else:
        neither.append("the data have not moved: no drift finding")
    if kept is None or lost is None:
        unknown.append("how the champion does now: no label is newer than those it was judged on")
    else:
        (for_it if lost.low > 0 else neither).append(_words_of_kept(kept, lost))
    if waiting is None or gain is None:
        unknown.append(
            "what waiting costs: no backtest of two periods or more (evertrain backtest)"
        )
    else:
        (for_it if gain.low > worth else neither).append(_words_of_gain(waiting, gain, worth))
    expected = gain or lost
    if for_it:
        said: Literal["retrain", "wait", "cannot say"] = "retrain"
    elif moved is None or kept is None or expected is None or expected.mean > worth:
        said = "cannot say"
    else:
        said = "wait"
    return Advice(
        advice=said,
        retrain=said != "wait",
        gain=gain,
        worth=worth,
        reasons=[*for_it, *neither],
        unknown=unknown,
        moved=None if moved is None else bool(moved),
        decayed=None if lost is None else lost.low > 0,
    )


def _words_of_kept(kept: Kept, lost: Estimate) -> str:
    name = kept.metric.replace("_", " ")
    sure = "" if lost.low > 0 or lost.high < 0 else ", which may be chance"
    than = "worse" if lost.mean > 0 else "better"
    return (
        f"on {kept.rows:,} rows that came later the champion's {name} is {kept.now.mean:.4f}, and "
        f"{kept.promised.mean:.4f} when it was promoted: {abs(lost.mean):.4f} {than} "
        f"({lost.low:+.4f} to {lost.high:+.4f}){sure}"
    )


def _words_of_gain(waiting: Waiting, gain: Estimate, worth: float) -> str:
    worthy = "above" if gain.mean > worth else "not above"
    how = "models about that old" if waiting.alike else "models of other ages, scaled to that"
    return (
        f"after {waiting.months:.1f} months retraining is expected to gain {gain.mean:+.4f} "
        f"({gain.low:+.4f} to {gain.high:+.4f}), {worthy} the {worth:g} that is worth it: over "
        f"{waiting.periods} periods of backtests {how} lost that to the newest "
        f"(deviation {waiting.deviation:.4f})"
    )
