"""How far a refit trains: from the judged run, for nothing is held out to tell.

Goodfellow, Bengio and Courville 2016, Deep Learning, section 7.8, name both rules for training on
all data after early stopping, and say that neither is known to be right: as many passes over the
rows, or as many updates. The schedule of rates is the judged one's, stretched over the new number
of steps, and ends as early in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from training_core.errors import TrainingFailed
from training_core.preparation import total_steps
from training_core.settings import TrainingSettings

Rule = Literal["passes", "updates"]
_KEPT_BESIDE = 2  # checkpoints beside those that are needed


@dataclass(frozen=True)
class Plan:
    """A refit.

    Attributes:
        overrides: Settings that differ from the judged training's, as key=value.
        until: Steps to train.
        members: Steps whose mean of weights is wanted; empty: the last one alone.
        words: The rule.
    """

    overrides: tuple[str, ...]
    until: int
    members: tuple[int, ...]
    words: str


def plan_of(
    settings: TrainingSettings,
    *,
    judged_step: int,
    judged_members: tuple[int, ...],
    rows: tuple[int, int],
    rule: Rule,
) -> Plan:
    """Plan a refit.

    Args:
        settings: Of the judged training.
        judged_step: Of the judged checkpoint.
        judged_members: Steps that its weights are the mean of; empty: it is one checkpoint.
        rows: That the judged model was trained on, and that the refit is.
        rule: How to scale.

    Raises:
        TrainingFailed: The steps of a mean cannot be told apart on the new scale.
    """
    before, now = rows
    ratio = now / before if rule == "passes" else 1.0
    planned = total_steps(settings, samples=before)
    limit = settings.stopping.max_steps
    changed = {
        # What ends a training early ended the judged one where it did, and here by `until`.
        "stopping.patience": 0,
        "stopping.plateau": 0,
        "stopping.gradient_norm": 0.0,
        "stopping.max_steps": _scaled(limit, ratio) if rule == "passes" else planned,
        "checkpoints.keep_best": 0,
        "checkpoints.keep_every": 0,
        "checkpoints.keep_exponential": False,
    }
    for name in ("evaluate_every", "averaging.every"):
        changed[name] = _scaled(_value(settings, name), ratio)
    stopping = settings.stopping.model_copy(update={"max_steps": changed["stopping.max_steps"]})
    whole = total_steps(settings.model_copy(update={"stopping": stopping}), samples=now)

    def place(step: int) -> int:
        return whole if step >= planned else min(whole, max(1, round(step * ratio)))

    members: tuple[int, ...] = ()
    if judged_members:
        every = settings.checkpoints.every or settings.evaluate_every or max(1, planned // 10)
        grid = max(1, round(every * ratio))
        members = tuple(
            whole if step >= planned else min(whole, max(1, round(step / every)) * grid)
            for step in judged_members
        )
        if len(set(members)) < len(members):
            raise TrainingFailed(
                f"the mean of the steps {sorted(judged_members)} would be one of the steps "
                f"{sorted(members)}, of which some are the same",
                hint="select.average: 0 chooses single checkpoints",
            )
        changed["checkpoints.every"] = grid
        apart = max(members) - min(members)
        changed["checkpoints.keep_last"] = -(-apart // grid) + _KEPT_BESIDE
    else:
        changed["checkpoints.every"] = _scaled(settings.checkpoints.every, ratio)
        changed["checkpoints.keep_last"] = _KEPT_BESIDE
    until = max(members) if members else place(judged_step)
    many = "as many passes over the rows" if rule == "passes" else "as many updates"
    return Plan(
        overrides=tuple(f"training.{name}={_text(value)}" for name, value in changed.items()),
        until=until,
        members=members,
        words=f"{many} as the judged model: {until} of {whole} steps, for its "
        f"{judged_step} of {planned}",
    )


def _scaled(steps: int, ratio: float) -> int:
    """Return a number of steps on the new scale; 0 stays the word for none."""
    return max(1, round(steps * ratio)) if steps else 0


def _value(settings: TrainingSettings, name: str) -> int:
    section, _, last = name.rpartition(".")
    return int(getattr(getattr(settings, section) if section else settings, last))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
