"""What each policy would have served: pure functions of what was known at each date.

never     the first model for ever
newest    always the model of the newest date
point     the new model if its mean on the holdout is better than that of the one in production
ours      as evaluate_model and promote_model decided
drift     trains only where the advice (components/common/advice.py) does not say wait, and then
          takes the new model
oracle    for each period the best of all models so far, in hindsight: nobody can serve that
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from components.common.advice import Advice
from training_core.errors import ConfigurationError

ORACLE, OURS = "oracle", "ours"
# Without these a model could be watched, but not made.
_WATCHING = ("snapshot_data", "validate_data")
_NO_COST = ("report_run",)


@dataclass(frozen=True)
class Moment:
    """What is known at a date.

    Attributes:
        date: Its day; also the name of the model that was trained then.
        model: Whether there is such a model.
        promoted: Whether the pipeline promoted it.
        seconds: Of each step of the run.
        holdout: Mean of the judged metric on this date's holdout, by model; lower is better.
        advice: Gives, for the model in production, whether to retrain; None: nobody can say.
    """

    date: str
    model: bool
    promoted: bool
    seconds: dict[str, float] = field(default_factory=dict)
    holdout: dict[str, float] = field(default_factory=dict)
    advice: Callable[[str], Advice | None] = lambda champion: None


@dataclass(frozen=True)
class Choice:
    """What a policy did at a date.

    Attributes:
        served: The model in production from here on; None: there is none yet.
        took: Whether it is the new one.
        trained: Whether the policy needed this date's run.
        seconds: What that took; of a date without training, of watching the data.
    """

    date: str
    served: str | None
    took: bool
    trained: bool
    seconds: float


Rule = Callable[[Moment, str | None], tuple[bool, bool]]  # whether it trains, and takes the result


def _never(moment: Moment, champion: str | None) -> tuple[bool, bool]:
    return champion is None, champion is None


def _newest(moment: Moment, champion: str | None) -> tuple[bool, bool]:
    return True, True


def _point(moment: Moment, champion: str | None) -> tuple[bool, bool]:
    if champion is None:
        return True, True
    new, old = (moment.holdout.get(name) for name in (moment.date, champion))
    return True, new is not None and old is not None and new < old


def _ours(moment: Moment, champion: str | None) -> tuple[bool, bool]:
    return True, moment.promoted


def _drift(moment: Moment, champion: str | None) -> tuple[bool, bool]:
    advice = moment.advice(champion) if champion else None
    retrain = advice is None or advice.retrain  # without advice nothing speaks for waiting
    return retrain, retrain


POLICIES: dict[str, Rule] = {
    "never": _never, "newest": _newest, "point": _point, OURS: _ours, "drift": _drift,
}  # fmt: skip


def chosen_policies(names: Sequence[str]) -> list[str]:
    """Return the policies that were asked for in the order of `POLICIES`; all where none was.

    `ours` is among them always: the others are compared with it.

    Raises:
        ConfigurationError: One is not known.
    """
    unknown = [name for name in names if name not in POLICIES]
    if unknown:
        raise ConfigurationError(
            f"--policy {unknown[0]!r} is not known", hint=f"policies: {', '.join(POLICIES)}"
        )
    return [name for name in POLICIES if not names or name in names or name == OURS]


def follow(policy: str, moments: Sequence[Moment]) -> list[Choice]:
    """Return what a policy would have done at each date."""
    rule, champion, choices = POLICIES[policy], None, []
    for moment in moments:
        trains, takes = rule(moment, champion)
        took = takes and moment.model
        if took:
            champion = moment.date
        steps = {name: s for name, s in moment.seconds.items() if name not in _NO_COST}
        watched = sum(steps.get(name, 0.0) for name in _WATCHING) if policy == "drift" else 0.0
        choices.append(
            Choice(
                date=moment.date,
                served=champion,
                took=took,
                trained=trains,
                seconds=sum(steps.values()) if trains else watched,
            )
        )
    return choices


def best_so_far(models: Sequence[str], means: dict[str, float]) -> str:
    """The model with the smallest mean on a period; on a tie the newest."""
    return min(sorted(models, reverse=True), key=lambda name: means[name])
