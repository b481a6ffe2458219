"""What is searched: each setting with its range, from evertrain.yaml or as proposed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from components.common.project import Project, open_project
from components.common.tune_settings import Role, TunedParameter, Value
from training_core.errors import ConfigurationError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_DIGITS = 4  # of a searched number: what a person reads in the patch is what was trained with
_AROUND = 10.0  # a proposed range goes so far, as a factor, to either side of the present value


@dataclass(frozen=True)
class Dimension:
    """One setting that is searched.

    Attributes:
        path: Of the setting, with dots.
        role: See `TunedParameter`.
        present: Its value without the search.
        low, high, log, step: Where there are no choices.
        whole: Whether its values are integers.
        choices: Values; empty: it has two ends.
    """

    path: str
    role: Role
    present: Value
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    step: float | None = None
    whole: bool = False
    choices: tuple[Value, ...] = ()

    def distribution(self) -> BaseDistribution:
        """Return it as Optuna knows it; choices are there as JSON, for some are lists."""
        from optuna import distributions

        if self.choices:
            return distributions.CategoricalDistribution([json.dumps(c) for c in self.choices])
        if self.whole:
            step = 1 if self.log else int(self.step or 1)
            return distributions.IntDistribution(
                int(self.low), int(self.high), log=self.log, step=step
            )
        return distributions.FloatDistribution(self.low, self.high, log=self.log, step=self.step)

    def value(self, given: Any) -> Value:
        """Return the setting's value for what Optuna gave."""
        if self.choices:
            chosen: Value = json.loads(given)
            return chosen
        return int(given) if self.whole else rounded(float(given))

    def internal(self) -> Any:
        """Return the present value as Optuna would give it; None: it lies outside."""
        if self.choices:
            same = [json.dumps(c) for c in self.choices if c == self.present]
            return same[0] if same else None
        if isinstance(self.present, bool | str | list):
            return None
        return self.present if self.low <= self.present <= self.high else None

    def place(self, value: Value) -> float:
        """Return where a value lies in the range, from 0 to 1; of choices, its number's share."""
        if self.choices:
            return self.choices.index(value) / (len(self.choices) - 1)
        assert isinstance(value, int | float)
        low, high, at = self.low, self.high, float(value)
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(max(at, 1e-300))
        return (at - low) / (high - low)

    def words(self) -> str:
        """Say the range."""
        if self.choices:
            return ", ".join(map(told, self.choices))
        return f"{told(self.low)} to {told(self.high)}" + (" (log)" if self.log else "")


@dataclass(frozen=True)
class Space:
    """All dimensions of a search.

    Attributes:
        dimensions: That are searched, by path, in order.
        held: Settings that are named as fixed, and their values.
        notes: Why the ranges are as they are, where nobody gave them.
    """

    dimensions: tuple[Dimension, ...]
    held: Mapping[str, Value]
    notes: tuple[str, ...] = ()

    def distributions(self) -> dict[str, BaseDistribution]:
        """Return them as Optuna knows them."""
        return {each.path: each.distribution() for each in self.dimensions}

    def values(self, params: Mapping[str, Any]) -> dict[str, Value]:
        """Return a trial's settings."""
        return {each.path: each.value(params[each.path]) for each in self.dimensions}

    def present(self) -> dict[str, Any] | None:
        """Return the present settings as a trial's; None: they lie outside of the space."""
        found = {each.path: each.internal() for each in self.dimensions}
        return None if any(value is None for value in found.values()) else found

    def facts(self) -> list[dict[str, Any]]:
        """Return what makes this space this one, as plain data."""
        return [
            {key: value for key, value in vars(each).items() if key not in ("role", "present")}
            for each in self.dimensions
        ]


def space_of(project: Project) -> Space:
    """Return what is to be searched.

    Raises:
        ConfigurationError: A path leads to no setting, or a value at an end is refused.
    """
    given = project.settings.tune.parameters
    notes: list[str] = []
    if not given:
        given, notes = _proposed(project)
    searched = {path: each for path, each in given.items() if each.role != "fixed"}
    if not searched:
        raise ConfigurationError(
            "tune.parameters names nothing that is searched: all of it is fixed",
            hint="give one of them the role scientific or nuisance, with low and high or choices",
        )
    held = {p: present_value(project, p) for p, e in given.items() if e.role == "fixed"}
    found = tuple(_dimension(project, path, each) for path, each in searched.items())
    for each in found:
        for value in each.choices or (each.value(each.low), each.value(each.high)):
            open_project(project.folder, overrides=[*project.overrides, override(each.path, value)])
    return Space(found, held, tuple(notes))


def present_value(project: Project, path: str) -> Value:
    """Return a setting's value by its path; the task's own options may be left to their defaults.

    Raises:
        ConfigurationError: There is no such setting.
    """
    options = path.removeprefix("task.options.")
    if options != path:
        place: Any = project.task().options.model_dump(mode="json")
        words = options.split(".")
    else:
        place, words = project.settings.model_dump(mode="json"), path.split(".")
    for word in words:
        if not isinstance(place, dict) or word not in place:
            raise ConfigurationError(
                f"tune.parameters: there is no setting {path!r} ({word!r} is not known)",
                hint="evertrain schema lists every key; options of the task: task.options.NAME",
            )
        place = place[word]
    if isinstance(place, dict) or place is None:
        raise ConfigurationError(
            f"tune.parameters: {path!r} is a section, not a value", hint="name one key of it"
        )
    found: Value = place
    return found


def rounded(value: float) -> float:
    """Return a number as a person would write it."""
    return float(f"{value:.{_DIGITS}g}")


def told(value: Value) -> str:
    """Say a value; short, and the same everywhere."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return json.dumps(value) if isinstance(value, list | bool) else str(value)


def override(path: str, value: Value) -> str:
    """Return a setting as --set takes it: a float keeps its point, or YAML makes a word of 1e-5."""
    if isinstance(value, float):
        number = repr(value)
        mantissa, letter, exponent = number.partition("e")
        if letter and "." not in mantissa:
            number = f"{mantissa}.0e{exponent}"
        return f"{path}={number}"
    return f"{path}={json.dumps(value)}"


def _dimension(project: Project, path: str, given: TunedParameter) -> Dimension:
    present = present_value(project, path)
    if path.split(".")[0] not in ("training", "task"):
        raise ConfigurationError(
            f"tune.parameters: {path!r} is no setting of the training",
            hint="search what lies below training or task.options: all else changes what is judged",
        )
    if given.choices:
        return Dimension(path, given.role, present, choices=given.choices)
    if isinstance(present, bool | str | list):
        raise ConfigurationError(
            f"tune.parameters: {path!r} is {told(present)}, which has no low and high",
            hint=f"give choices: tune.parameters.{path}: {{choices: [...]}}",
        )
    assert given.low is not None
    assert given.high is not None
    ends = [given.low, given.high, given.step or 1.0]
    whole = isinstance(present, int) and all(float(end).is_integer() for end in ends)
    return Dimension(
        path, given.role, present, low=given.low, high=given.high, log=given.log, step=given.step,
        whole=whole,
    )  # fmt: skip


def _proposed(project: Project) -> tuple[dict[str, TunedParameter], list[str]]:
    """A space for those who name none: what matters most in most trainings, around what is."""
    optimiser = project.settings.training.optimiser
    decay = optimiser.weight_decay or 0.01
    found = {
        "training.optimiser.lr": _around(optimiser.lr, _AROUND),
        "training.optimiser.weight_decay": _around(decay, 3 * _AROUND),
        "training.schedule.warmup": TunedParameter(role="nuisance", low=0.0, high=0.3),
    }
    notes = [
        "evertrain.yaml names no tune.parameters: learning rate and weight decay are searched "
        "around their present values, the warm-up up to 0.3 of all steps"
    ]
    options = project.task().options.model_dump(mode="json")
    if isinstance(options.get("dropout"), float):
        found["task.options.dropout"] = TunedParameter(role="scientific", low=0.0, high=0.5)
        notes.append("the task has a dropout: it is what is asked about, from 0 to 0.5")
    return found, notes


def _around(value: float, factor: float, role: Role = "nuisance") -> TunedParameter:
    return TunedParameter(
        role=role, low=rounded(value / factor), high=rounded(value * factor), log=True
    )
