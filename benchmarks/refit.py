"""Refit against the judged model: flights, month after month, scored on the month that follows.

    make bench-refit        # or: python -m benchmarks.refit --count 2 --months 4-12

For each month the months before it are divided as the pipeline does: the newest 14 days are held
out, the 14 before them choose the best of ten checkpoints, the rest is trained on. That is the
judged model. It is trained again with the seed and the settings that it had, on all of these rows,
by each rule of `refit.rule` (`components/refit_model/plan.py`). Then all are scored on the month,
which none has seen. Beside it: how far each refit's predictions are from the judged model's on the
rows that were held out, which is what the bound `refit.shift` is held against, and on the month;
how far another seed of the judged model is; and how far a refit is whose held-out labels are all
wrong, which is what a bound has to notice.

Every interval draws days, not flights. `--count` is the number of seeds.
"""

from __future__ import annotations

import copy
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import yaml
from torch import Tensor

from benchmarks.months import CPU, FLIGHTS, studied
from benchmarks.reporting import last_line, table
from components.common.shift import mean_shift
from components.evaluate_model.slices import declared
from components.refit_model.plan import Rule, plan_of
from training_core import (
    Examples,
    SingleProcess,
    Trainer,
    TrainingSettings,
    outputs_of,
    seed_everything,
)

Floats = np.ndarray[Any, np.dtype[np.float64]]
RULES: tuple[Rule, ...] = ("passes", "updates")
_HELD_OUT = pd.Timedelta(days=14)
_SHOWN = {
    "passes": "passes", "updates": "updates", "seed": "another seed", "month": "in the month",
    "carrier": "largest of a carrier", "spoilt": "held-out labels wrong",
}  # fmt: skip


@dataclass(frozen=True)
class Fitted:
    """What a model predicts.

    Attributes:
        step: Of its weights.
        holdout, month: Probabilities of the rows that were held out, and of the month's.
    """

    step: int
    holdout: Floats
    month: Floats


def settings_of(seed: int) -> TrainingSettings:
    """The example's settings of training."""
    base = yaml.safe_load((FLIGHTS / "evertrain.yaml").read_text())["training"]
    return TrainingSettings.model_validate({**base, "seed": seed, "device": "cpu"})


def parts_of(year: ModuleType, rows: pd.DataFrame, month: int) -> dict[str, pd.DataFrame]:
    """Train, validation, holdout and the month that follows."""
    before, holdout, test = year.split(rows, month=month)
    dates = pd.to_datetime(before["date"])
    cut = pd.to_datetime(holdout["date"]).min() - _HELD_OUT
    return {
        "train": before[dates < cut], "validation": before[dates >= cut],
        "holdout": holdout, "month": test,
    }  # fmt: skip


def fit(
    year: ModuleType,
    parts: dict[str, pd.DataFrame],
    settings: TrainingSettings,
    *,
    train: pd.DataFrame,
    until: int = 0,
) -> Fitted:
    """Train; keep the best of ten checkpoints or, where its end is given, the last."""
    task = year.FlightsTask()
    preprocessor = task.preprocessor().fit(train)
    examples = {
        name: Examples.from_frame(task, preprocessor, frame)
        for name, frame in {**parts, "train": train}.items()
    }
    seed_everything(settings.seed)
    model = task.build_model(preprocessor)
    best: dict[str, Tensor] = {}
    found: list[tuple[float, int]] = []

    def keep(step: int, metrics: dict[str, float]) -> None:
        if until or metrics["loss"] < min((loss for loss, _ in found), default=np.inf):
            best.update(copy.deepcopy(model.state_dict()))
            found.append((metrics["loss"], step))

    Trainer(
        task=task, model=model, train=examples["train"], validation=examples["validation"],
        settings=settings, strategy=SingleProcess(CPU), on_evaluation=keep, until=until,
    ).fit()  # fmt: skip
    model.load_state_dict(best)
    predicted = {
        name: task.predict(outputs_of(model, examples[name], device=CPU)).double().numpy()
        for name in ("holdout", "month")
    }
    return Fitted(found[-1][1], predicted["holdout"], predicted["month"])


def refitted(
    year: ModuleType, parts: dict[str, pd.DataFrame], judged: Fitted, seed: int, rule: Rule,
    *, spoilt: bool = False,
) -> Fitted:  # fmt: skip
    """Train on all rows but the month's, as far as the plan says.

    Args:
        year, parts, judged, seed, rule: Of the study.
        spoilt: Each label of the holdout says the opposite.
    """
    holdout = parts["holdout"]
    if spoilt:
        holdout = holdout.assign(**{year.LABEL: 1 - holdout[year.LABEL]})
    whole = pd.concat([parts["train"], parts["validation"], holdout])
    settings = settings_of(seed)
    rows = (len(parts["train"]), len(whole))
    plan = plan_of(settings, judged_step=judged.step, judged_members=(), rows=rows, rule=rule)
    # of the plan's settings, only this one means something here
    most = next(o for o in plan.overrides if o.startswith("training.stopping.max_steps="))
    stopping = settings.stopping.model_copy(update={"max_steps": int(most.partition("=")[2])})
    return fit(
        year, parts, settings.model_copy(update={"stopping": stopping}),
        train=whole, until=plan.until,
    )  # fmt: skip


def study(
    year: ModuleType, rows: pd.DataFrame, months: range, seed: int
) -> dict[int, dict[str, Fitted]]:
    """Judge, refit and repeat month after month; return the models by month."""
    found = {}
    for month in months:
        parts = parts_of(year, rows, month)
        judged = fit(year, parts, settings_of(seed), train=parts["train"])
        other = fit(year, parts, settings_of(1000 + seed), train=parts["train"])
        models = {"judged": judged, "seed": other}
        for rule in RULES:
            models[rule] = refitted(year, parts, judged, seed, rule)
        models["spoilt"] = refitted(year, parts, judged, seed, "passes", spoilt=True)
        found[month] = models
        losses = {n: float(_loss(year, parts, m).mean()) for n, m in models.items()}
        told = "  ".join(f"{n} {loss:.4f}" for n, loss in losses.items())
        print(f"seed {seed} month {month}: {told}", file=sys.stderr, flush=True)
    return found


def report(
    year: ModuleType, rows: pd.DataFrame, by_seed: list[dict[int, dict[str, Fitted]]]
) -> dict[str, list[float]]:
    """Print the months; return the figures, one value a seed or, of shifts, a month and a seed."""
    figures: dict[str, list[float]] = {f"{rule}_minus_judged": [] for rule in RULES}
    figures |= {f"{name}_shift": [] for name in (*RULES, "seed", "spoilt", "month", "carrier")}
    gained: dict[str, list[list[float]]] = {rule: [] for rule in RULES}
    lines = []
    for month in by_seed[0]:
        parts = parts_of(year, rows, month)
        days = parts["month"]["date"].to_numpy()
        loss = {
            name: np.mean([_loss(year, parts, models[month][name]) for models in by_seed], axis=0)
            for name in ("judged", *RULES)
        }
        cells = [str(month), f"{loss['judged'].mean():.4f}"]
        for rule in RULES:
            seen = year.compare(loss[rule], loss["judged"], days, seed=month)
            low, high = seen["interval"]
            cells.append(f"{seen['mean']:+.4f} ({low:+.4f} to {high:+.4f})")
            gained[rule].append(
                [
                    float((_loss(year, parts, m[month][rule])
                           - _loss(year, parts, m[month]["judged"])).mean())
                    for m in by_seed
                ]
            )  # fmt: skip
        apart = {
            name: [_apart(parts, "holdout", m[month]["judged"], m[month][name]) for m in by_seed]
            for name in (*RULES, "seed", "spoilt")
        }
        there = [_apart(parts, "month", m[month]["judged"], m[month]["passes"]) for m in by_seed]
        apart |= {"month": there, "carrier": [_by_carrier(parts, m[month]) for m in by_seed]}
        for name, values in apart.items():
            figures[f"{name}_shift"] += values
        shown = [apart[name] for name in _SHOWN]
        lines.append([*cells, *(f"{np.mean(each):.4f}" for each in shown)])
    for rule in RULES:
        figures[f"{rule}_minus_judged"] = [float(v) for v in np.mean(gained[rule], axis=0)]
    head = ["month", "judged", *(f"{rule} − judged" for rule in RULES)]
    head += [f"shift, {words}" for words in _SHOWN.values()]
    print(table(head, lines))
    return figures


def _loss(year: ModuleType, parts: dict[str, pd.DataFrame], model: Fitted) -> Floats:
    found: Floats = year.log_loss(model.month, parts["month"][year.LABEL].to_numpy())
    return found


def _apart(parts: dict[str, pd.DataFrame], where: str, one: Fitted, other: Fitted) -> float:
    truth: Floats = np.zeros(len(parts[where]))
    return mean_shift(getattr(one, where), getattr(other, where), truth, kind="binary")


def _by_carrier(parts: dict[str, pd.DataFrame], models: dict[str, Fitted]) -> float:
    """The largest mean shift of a carrier's rows, as the gate of the slices sees it."""
    apart = np.abs(models["judged"].holdout - models["passes"].holdout)
    slices = declared(parts["holdout"].reset_index(drop=True), ["carrier"])
    return max(float(apart[part.rows].mean()) for part in slices)


def main() -> None:
    """Print the table and the figures."""
    year, rows, by_seed = studied(__doc__ or "", study, seeds=2)
    print(last_line("refit", report(year, rows, by_seed)))


if __name__ == "__main__":
    main()
