"""The trials of a study: asked for, told, taken up again after a kill; each counted once."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial, TrialState

from components.common.tune_figures import TrialFigures
from components.common.tune_settings import TuneSettings
from components.tune.sampling import pruner_of, sampler_of
from components.tune.space import Space

PRESENT = "present"  # the trial of the settings as they are, which comes first
_SAMPLER, _OUTCOME, _ATTEMPTS = "sampler", "outcome", "attempts"
MOST_ATTEMPTS = 3  # of a trial whose process died each time


class Trials:
    """One study's trials. Only one process uses it to write: see `turn.py`.

    Args:
        study: As `storage.open_study` gives it.
        space: That is searched, the same each time.
        settings: Of the search.
    """

    def __init__(self, study: optuna.Study, space: Space, settings: TuneSettings) -> None:
        self._study, self._space, self._settings = study, space, settings
        self._storage = study._storage
        self._pruner = pruner_of(settings)

    def all(self) -> list[TrialFigures]:
        """Return every trial that was begun, in order; those that came to nothing left out."""
        return [
            self._figures(each)
            for each in self._frozen()
            if each.state != TrialState.WAITING and self._whole(each)
        ]

    @property
    def ended(self) -> int:
        """How many count for the budget: every trial that came to an end, whichever."""
        return sum(each.ended != "running" for each in self.all())

    def orphans(self, *, only: int | None = None) -> list[TrialFigures]:
        """Return what a killed search left running, to be gone on with.

        Args:
            only: The number of a trial; no other one is looked at.

        One that had not got all its settings has done no work: it comes to nothing. One whose
        process died again and again is told as failed.
        """
        found = []
        for each in self._frozen():
            if each.state != TrialState.RUNNING or only not in (None, each.number):
                continue
            if not self._whole(each):
                self._study.tell(each.number, state=TrialState.FAIL)
            elif each.user_attrs.get(_ATTEMPTS, 0) >= MOST_ATTEMPTS:
                words = f"its process died {MOST_ATTEMPTS} times"
                self.tell(each.number, {"ended": "failed", "reason": words})
            else:
                found.append(self._figures(each))
        return found

    def ask(self) -> TrialFigures:
        """Begin a new trial."""
        frozen, space = self._frozen(), self._space.distributions()
        whole = [each for each in frozen if self._whole(each)]
        present = self._space.present()
        waiting = any(each.state == TrialState.WAITING for each in frozen)
        known = waiting or any(each.user_attrs.get(_SAMPLER) == PRESENT for each in whole)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a present value need not lie on a dimension's grid
            if present is not None and not known:
                self._study.enqueue_trial(present, user_attrs={_SAMPLER: PRESENT})
                waiting = True
            spread = sum(each.user_attrs.get(_SAMPLER) == "quasi_random" for each in whole)
            sampler, kind = sampler_of(self._settings, space, spread=spread, number=len(whole))
            # What waits has its values: no point of the sequence is to be spent on it.
            self._study.sampler = RandomSampler(seed=0) if waiting else sampler
            trial = self._study.ask(space)
        if not waiting:
            trial.set_user_attr(_SAMPLER, kind)
        return self._figures(self._trial(trial.number))

    def begun(self, number: int) -> None:
        """Note that a process takes a trial up."""
        trial = self._trial(number)
        attempts = trial.user_attrs.get(_ATTEMPTS, 0) + 1
        self._storage.set_trial_user_attr(trial._trial_id, _ATTEMPTS, attempts)

    def evaluation(self, number: int, rung: int, value: float) -> bool:
        """Tell an evaluation; return whether the trial should end now.

        Args:
            number: Of the trial.
            rung: Number of the evaluation, from 1: the same for the same step of a trial, however
                often that is trained. Told twice, the first one stays.
            value: The metric.
        """
        trial = self._trial(number)
        if rung not in trial.intermediate_values:
            self._storage.set_trial_intermediate_value(trial._trial_id, rung, value)
            trial = self._trial(number)
        if trial.user_attrs.get(_SAMPLER) == PRESENT:
            return False  # what all others are compared with is always whole
        return bool(self._pruner.prune(self._study, trial))

    def tell(self, number: int, outcome: Mapping[str, Any]) -> None:
        """Tell how a trial ended; told before, it stays as it was.

        Args:
            number: Of the trial.
            outcome: Fields of `TrialFigures`: `ended`, and what is known.
        """
        trial = self._trial(number)
        if trial.state.is_finished():
            return
        self._storage.set_trial_user_attr(trial._trial_id, _OUTCOME, dict(outcome))
        if outcome["ended"] == "finished":
            self._study.tell(number, values=outcome["value"])
        elif outcome["ended"] == "failed":
            self._study.tell(number, state=TrialState.FAIL)
        else:  # diverged as well: Optuna's samplers take a pruned trial for a bad one
            self._study.tell(number, state=TrialState.PRUNED)

    def spent(self, seconds: float = 0.0) -> float:
        """Add to the seconds that the search took so far, over all restarts; return them."""
        total = float(self._study.user_attrs.get("seconds", 0.0)) + seconds
        if seconds:
            self._study.set_user_attr("seconds", total)
        return total

    def importances(self) -> dict[str, float]:
        """Return the share that each dimension has in how trials differ; none: too few trials.

        fANOVA (Hutter et al. 2014) over trials that were whole.
        """
        whole = [each for each in self._frozen() if each.state == TrialState.COMPLETE]
        if (
            len(whole) < 8
            or len({each.value for each in whole}) < 2
            or len(self._space.dimensions) < 2
        ):
            return {}
        from optuna.importance import FanovaImportanceEvaluator, get_param_importances

        paths = [each.path for each in self._space.dimensions]
        evaluator = FanovaImportanceEvaluator(seed=self._settings.seed)
        found = get_param_importances(self._study, evaluator=evaluator, params=paths)
        return {path: float(found[path]) for path in paths if path in found}

    def _frozen(self) -> list[FrozenTrial]:
        return self._storage.get_all_trials(self._study._study_id, deepcopy=False)

    def _trial(self, number: int) -> FrozenTrial:
        trial = self._frozen()[number]
        return self._storage.get_trial(trial._trial_id)

    def _whole(self, trial: FrozenTrial) -> bool:
        """Whether a trial got its settings and is known by what proposed it."""
        paths = {each.path for each in self._space.dimensions}
        return _SAMPLER in trial.user_attrs and set(trial.params) == paths

    def _figures(self, trial: FrozenTrial) -> TrialFigures:
        outcome = trial.user_attrs.get(_OUTCOME) if trial.state.is_finished() else None
        return TrialFigures(
            number=trial.number,
            sampler=trial.user_attrs[_SAMPLER],
            values=self._space.values(trial.params),
            **(outcome or {}),
        )
