"""What the winner is worth: trained again with other seeds, beside the settings as they are.

The best of many trials looks better than it is: its seed and these rows were kind to it. So the
best few are trained with seeds that the search did not use, and the best of them by the mean is the
winner. The settings as they are get the same seeds, and so does the winner with each changed
setting put back. All of that is on the validation split. Then, once, winner and present settings
are compared on the holdout, and the ledger of questions says that it was asked.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from components.common.tune_figures import (
    ChangeFigures,
    ComparisonFigures,
    Repeated,
    TuneFigures,
)
from components.common.tune_settings import Value
from components.train_distributed.failures import Failure
from components.tune.holdout import look_once
from components.tune.outcomes import best_of, outcome_of
from components.tune.pool import Done, Evaluation, Pool
from components.tune.search import Place, stop_requests
from components.tune.space import Space, override
from training_core.errors import TrainingFailed

FINALISTS = 3
_SURE = 2.0  # standard errors of the mean over seeds that a gain has to lie above 0
Values = Mapping[str, Value]


class Repeats:
    """Trainings of some settings with each of the seeds; those that are done are not repeated."""

    def __init__(self, place: Place) -> None:
        self._place = place
        first = place.project.settings.training.seed + 1  # the search's own is not among them
        self.seeds = [first + number for number in range(place.settings.repeats)]
        self.steps: dict[str, int] = {}  # best checkpoint, by key
        self.preprocessor: dict[str, dict[str, object]] = {}

    def key(self, name: str, seed: int) -> str:
        """Run key of one training."""
        return self._place.key(f"{name}-{seed}")

    def scores(self, asked: Mapping[str, Values]) -> dict[str, list[float]]:
        """Train settings by name; return each one's metric, seed by seed; NaN: it failed."""
        place = self._place
        todo = [(name, seed) for name in asked for seed in self.seeds]
        found: dict[str, float] = {}
        pool = Pool(place.folder, size=place.settings.parallel)
        with stop_requests() as stop:
            try:
                while todo or pool.busy:
                    if stop():
                        raise KeyboardInterrupt
                    while todo and pool.free:
                        name, seed = todo.pop(0)
                        pool.start(
                            place.training(
                                self.key(name, seed), asked[name], f"training.seed={seed}"
                            ),
                            name=f"{place.project.settings.name} {name}, seed {seed}",
                            tags=place.tags(**{"evertrain.repeat": name}),
                        )
                    for event in pool.events(0.1):
                        if not isinstance(event, Evaluation):
                            found[event.key] = self._value(event)
            finally:
                pool.close()
        return {n: [found[self.key(n, seed)] for seed in self.seeds] for n in asked}

    def clean(self, names: Sequence[str]) -> None:
        """Remove the checkpoints of trainings that are not needed any more."""
        for name in names:
            for seed in self.seeds:
                self._place.clean(self.key(name, seed))

    def _value(self, done: Done) -> float:
        outcome = outcome_of(done, self._place.settings, pruned=False)
        if outcome is None:
            if done.died is not None:
                raise TrainingFailed(
                    f"the process of {done.key} died ({done.died})",
                    hint=f"its log is in {self._place.folder}; run the same command again",
                )
            raise KeyboardInterrupt
        if outcome["ended"] == "finished":
            assert done.result is not None
            self.steps[done.key] = _kept_step(done.result["checkpoints"], outcome)
            self.preprocessor[done.key] = done.result["preprocessor"]
            return float(outcome["value"])
        if outcome["ended"] == "failed" and done.failure is not None:
            raise Failure.from_dict(done.failure).exception()
        return math.nan


def _kept_step(checkpoints: list[int], outcome: Mapping[str, object]) -> int:
    """The best step among the checkpoints that are kept; evaluations may be more often."""
    best = outcome["best_step"]
    assert isinstance(best, int)
    return best if best in checkpoints else min(checkpoints, key=lambda step: abs(step - best))


def compare(
    place: Place,
    space: Space,
    figures: TuneFigures,
    *,
    holdout: bool,
    say: Callable[[str], None] = lambda words: None,
) -> TuneFigures:
    """Return the figures with the winner, what it is worth, and the patch.

    Args:
        place, space: Of the search.
        figures: With its trials.
        holdout: Whether the holdout is looked at, once, at the end.
        say: Told what is done.
    """
    ranked = best_of(figures.trials, place.settings)
    if not ranked:
        words = "no trial came to its end: nothing is proposed"
        return figures.model_copy(update={"notes": [*figures.notes, words]})
    present = {each.path: each.present for each in space.dimensions}
    finalists = {f"trial-{t.number:04d}": t for t in ranked[:FINALISTS] if t.values != present}
    sign = -1.0 if place.settings.direction == "maximise" else 1.0
    repeats = Repeats(place)
    scores = repeats.scores({"present": present, **{n: t.values for n, t in finalists.items()}})
    means = {name: sign * statistics.fmean(scores[name]) for name in finalists}
    able = {name: mean for name, mean in means.items() if math.isfinite(mean)}
    if not able or not math.isfinite(statistics.fmean(scores["present"])):
        repeats.clean(list(scores))
        words = (
            "the settings as they are were the best trial"
            if not finalists
            else ("with other seeds the best trials, or the settings as they are, came to no end")
        )
        return figures.model_copy(
            update={"notes": [*figures.notes, f"{words}: nothing is proposed"]}
        )
    name = min(able, key=lambda each: (able[each], each))
    winner = finalists[name]
    validation = _repeated(scores["present"], scores[name], sign)
    better = validation.mean > _SURE * validation.error
    changed = {p: v for p, v in winner.values.items() if v != present[p]}
    put_back = {f"without-{i}": {**winner.values, p: present[p]} for i, p in enumerate(changed)}
    say(f"trial {winner.number} won; each of its {len(changed)} changes is tried put back")
    # With a single change, the winner without it is the settings as they are.
    undone = repeats.scores(put_back) if len(changed) > 1 else {"without-0": scores["present"]}
    changes = [
        ChangeFigures(
            path=path, old=present[path], new=value,
            **_gain(undone[f"without-{i}"], scores[name], sign),
        )
        for i, (path, value) in enumerate(changed.items())
    ]  # fmt: skip
    looked = None
    if holdout:
        say("winner and present settings are compared on the holdout, once")
        looked = look_once(place, repeats, present=present, winner=winner.values, name=name)
    found = ComparisonFigures(
        validation=validation, present=scores["present"], winner=scores[name], better=better,
        words=_words(validation, better, repeats.seeds), holdout=looked,
    )  # fmt: skip
    repeats.clean([*scores, *put_back])
    overrides = [override(path, value) for path, value in changed.items()]
    if figures.batch_size is not None:
        overrides.insert(0, override("training.batch_size", figures.batch_size))
        old = figures.batch_size
        changes.insert(0, _asked_for(place, old))
    return figures.model_copy(
        update={
            "winner": winner.number,
            "comparison": found,
            "changes": changes,
            "overrides": overrides,
        }
    )


def repeated_words(found: Repeated) -> str:
    """Say a gain with its noise."""
    return f"{found.mean:+.4g} ± {found.error:.2g} ({len(found.seeds)} seeds)"


def _repeated(others: list[float], own: list[float], sign: float) -> Repeated:
    seeds = [sign * (a - b) for a, b in zip(others, own, strict=True)]
    error = statistics.stdev(seeds) / math.sqrt(len(seeds))
    return Repeated(mean=statistics.fmean(seeds), error=error, seeds=seeds)


def _gain(others: list[float], own: list[float], sign: float) -> dict[str, object]:
    found = (
        _repeated([v if math.isfinite(v) else math.inf for v in others], own, sign)
        if all(map(math.isfinite, others))
        else None
    )
    if found is None:
        return {"note": "without it a training diverged"}
    return {"gained": found}


def _asked_for(place: Place, batch_size: int) -> ChangeFigures:
    from components.common.project import open_project

    project = place.project
    before = open_project(project.folder, overrides=list(project.overrides[:-1]))
    return ChangeFigures(
        path="training.batch_size", old=before.settings.training.batch_size, new=batch_size,
        note="asked for by --batch-size",
    )  # fmt: skip


def _words(found: Repeated, better: bool, seeds: list[int]) -> str:
    gain = repeated_words(found)
    if better:
        return f"the winner is ahead on validation by {gain}, on the rows that it was chosen by"
    return f"the winner is not shown to be ahead on validation: {gain}"
