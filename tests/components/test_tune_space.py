"""Which settings are searched, between which ends, and what is refused before anything trains."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from components.common.project import Project, open_project
from components.tune.batch_size import rescaled
from components.tune.space import override, space_of
from training_core.errors import ConfigurationError


def opened(fresh_project: Path, *overrides: str) -> Project:
    return open_project(fresh_project, overrides=list(overrides))


def searching(fresh_project: Path, parameters: dict[str, object], *overrides: str) -> Project:
    """The small project with these parameters in its file: their paths have dots."""
    file = fresh_project / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    content["tune"] = {"parameters": parameters}
    file.write_text(yaml.safe_dump(content))
    return opened(fresh_project, *overrides)


def test_without_parameters_a_space_around_the_present_values_is_proposed(
    fresh_project: Path,
) -> None:
    space = space_of(opened(fresh_project))
    found = {each.path: (each.low, each.high, each.log) for each in space.dimensions}
    assert found == {
        "training.optimiser.lr": (0.002, 0.2, True),
        "training.optimiser.weight_decay": (0.0003333, 0.3, True),
        "training.schedule.warmup": (0.0, 0.3, False),
    }
    assert "names no tune.parameters" in space.notes[0]
    assert space.present() == {
        "training.optimiser.lr": 0.02,
        "training.optimiser.weight_decay": 0.01,
        "training.schedule.warmup": 0.05,
    }


def test_a_whole_number_stays_whole_and_choices_may_be_lists(fresh_project: Path) -> None:
    project = searching(
        fresh_project,
        {
            "training.batch_size": {"low": 64, "high": 512, "log": True, "role": "scientific"},
            "training.optimiser.betas": {"choices": [[0.9, 0.999], [0.9, 0.95]]},
            "training.epochs": {"role": "fixed"},
        },
    )
    space = space_of(project)
    size, betas = space.dimensions
    assert size.whole
    assert size.value(100.0) == 100
    assert isinstance(size.value(100.0), int)
    assert betas.value(betas.distribution().choices[1]) == [0.9, 0.95]  # type: ignore[attr-defined]
    assert space.held == {"training.epochs": 3.0}


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"training.optimiser.rl": {"low": 1, "high": 2}}, "there is no setting"),
        ({"training.optimiser": {"low": 1, "high": 2}}, "is a section"),
        ({"decision.margin": {"low": 0.1, "high": 0.2}}, "no setting of the training"),
        ({"training.optimiser.name": {"low": 1, "high": 2}}, "has no low and high"),
        ({"training.schedule.warmup": {"low": 0.5, "high": 1.5}}, "less than 1"),
        ({"training.optimiser.name": {"choices": ["adam", "adamx"]}}, "adamx"),
        ({"training.optimiser.lr": {"low": 2, "high": 1}}, "low below high"),
        ({"training.optimiser.lr": {"low": 0, "high": 1, "log": True}}, "log needs low above 0"),
        ({"training.optimiser.lr": {"role": "fixed"}}, "nothing that is searched"),
    ],
)
def test_a_wrong_space_is_refused_with_what_is_wrong(
    fresh_project: Path, parameters: dict[str, object], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        space_of(searching(fresh_project, parameters))


@pytest.mark.parametrize("value", [1e-5, 2.5e-07, 1e16, 0.1, 3.0, 7, True, "off", "1e-5", [1, 2]])
def test_a_value_comes_back_from_an_override_as_it_was(fresh_project: Path, value: object) -> None:
    project = opened(fresh_project, override("task.options.value", value))  # type: ignore[arg-type]
    found = project.settings.task.options["value"]
    assert (found, type(found)) == (value, type(value))


def test_after_a_change_of_the_batch_size_the_rate_is_scaled_and_searched_anew(
    fresh_project: Path,
) -> None:
    parameters = {
        "training.optimiser.lr": {"low": 0.001, "high": 0.1, "log": True},
        "training.schedule.warmup": {"low": 0.0, "high": 0.2},
        "training.optimiser.weight_decay": {"choices": [0.0, 0.01], "role": "scientific"},
    }
    project = searching(fresh_project, parameters)
    space = rescaled(project, space_of(project), batch_size=1024)
    rate, warmup = space.dimensions
    assert (rate.low, rate.high, rate.log) == (0.01, 0.16, True)  # 0.02 × √4, by a factor of four
    assert (warmup.low, warmup.high) == (0.0, 0.2)
    assert space.held == {"training.optimiser.weight_decay": 0.01}
    assert any("square root" in note for note in space.notes)
    assert any("kept at 0.01" in note for note in space.notes)

    plain = searching(fresh_project, parameters, "training.optimiser.name=sgd")
    rate = rescaled(plain, space_of(plain), batch_size=1024).dimensions[0]
    assert (rate.low, rate.high) == (0.02, 0.32)  # 0.02 × 4


def test_a_search_of_scientific_settings_alone_cannot_be_repeated_for_a_batch_size(
    fresh_project: Path,
) -> None:
    project = searching(
        fresh_project, {"training.epochs": {"low": 1, "high": 3, "role": "scientific"}}
    )
    with pytest.raises(ConfigurationError, match="nothing is searched anew"):
        rescaled(project, space_of(project), batch_size=512)
