"""A whole search, from the splits to the figures: what `evertrain tune` and the step both do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from components.common.layout import digest_of, home, location
from components.common.project import Project
from components.common.provenance import code_digest
from components.common.tune_figures import TuneFigures
from components.tune.batch_size import rescaled
from components.tune.space import Space, override, space_of
from infra.errors import ObjectMissing
from infra.guarded import GuardedStore
from infra.store import ObjectStore

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What a search is made of.

    Attributes:
        project: Opened with its overrides.
        store: The project's.
        splits: As split_data left them.
        run: Whose splits they are.
        batch_size: The nuisances are searched anew for this one; None: no.
        holdout: Whether the winner is compared on the holdout as well, at the end.
        lease: Number of the run's lease, in a pipeline.
    """

    project: Project
    store: ObjectStore
    splits: dict[str, Any]
    run: str = ""
    batch_size: int | None = None
    holdout: bool = True
    lease: int = 0


def planned(asked: Asked) -> tuple[Project, Space]:
    """Return the project as trials see it, and the space.

    Raises:
        ConfigurationError: The space is wrong, or trials would need several machines.
    """
    from components.common.project import open_project
    from training_core.errors import ConfigurationError

    project = asked.project
    if project.settings.training.nodes > 1:
        raise ConfigurationError(
            f"training.nodes is {project.settings.training.nodes}, and trials train on one machine",
            hint="evertrain tune PROJECT --set training.nodes=1",
        )
    space = space_of(project)
    if asked.batch_size is not None:
        space = rescaled(project, space, batch_size=asked.batch_size)
        given = [*project.overrides, override("training.batch_size", asked.batch_size)]
        project = open_project(project.folder, overrides=given)
    return project, space


def name_of(asked: Asked, project: Project, space: Space) -> str:
    """Name a search by what its trials are made of; its budget is no part of that."""
    settings = project.settings
    of_trials = {"metric", "direction", "seed", "sequence", "bayesian", "pruning", "spared"}
    return digest_of(
        {
            "task": settings.task.model_dump(mode="json"),
            "training": settings.training.model_dump(mode="json"),
            "tune": settings.tune.model_dump(mode="json", include=of_trials),
            "space": space.facts(),
            "splits": {name: part["sha256"] for name, part in asked.splits["parts"].items()},
            "code": code_digest(project),
        }
    )[:16]


def tune(
    asked: Asked,
    *,
    on_trial: Callable[[Any], None] = lambda trial: None,
    say: Say = lambda words: None,
) -> TuneFigures:
    """Search, analyse, compare; go on with what was begun.

    Args:
        asked: What to search.
        on_trial: Told of each trial that ends.
        say: Told what is done, in words.

    Raises:
        ConfigurationError, TrainingFailed: As `search` says.
        OutsideError: The search is under way elsewhere, or the store failed.
        KeyboardInterrupt: Asked to stop; the same command goes on.
    """
    project, space = planned(asked)

    from components.tune.analysis import analysed
    from components.tune.comparison import compare
    from components.tune.parent import Parent
    from components.tune.search import Place, search
    from components.tune.storage import open_study
    from components.tune.trials import Trials
    from components.tune.turn import my_turn

    name = name_of(asked, project, space)
    folder = home(project) / "tune" / name
    settings = project.settings.tune
    with my_turn(asked.store, folder=folder, name=name) as turn:
        store = GuardedStore(asked.store, turn.ensure)
        budget = _budget(asked, project)
        if (kept := _kept(store, name, budget)) is not None:
            say(f"study {name}: this search is over; what it found is said again")
            return kept
        study = open_study(store, name, prefix=f"tune/{name}/journal", direction=settings.direction)
        parent = Parent(project, name)
        place = Place(project, store, asked.splits, name, folder, asked.lease, parent.run_id)
        trials = Trials(study, space, settings)
        known = len(trials.all())
        said = f"study {name}: {len(space.dimensions)} settings, {settings.trials} trials"
        say(f"{said}, {known} of them begun before" if known else said)
        with parent:
            stopped_by = search(place, trials, space, on_trial=on_trial)
        say(f"the search is over ({stopped_by}); its winner is trained again with other seeds")
        figures = TuneFigures(
            study=name,
            asked=budget,
            project=project.settings.name,
            metric=settings.metric,
            direction=settings.direction,
            run=asked.run,
            batch_size=asked.batch_size,
            trials=trials.all(),
            seconds=round(trials.spent(), 1),
            stopped_by=stopped_by,
            dimensions=[],
            held=dict(space.held),
            notes=[*space.notes],
        )
        compared = compare(place, space, figures, holdout=asked.holdout, say=say)
        figures = analysed(compared, space, project, trials.importances())
        store.put(f"tune/{name}/tune.json", figures.model_dump_json(indent=1).encode())
        return figures


def _budget(asked: Asked, project: Project) -> str:
    """Digest of all that makes a search of the same study another one."""
    shared = {"in_pipeline", "parallel", "parameters"}
    settings = project.settings
    return digest_of(
        {
            "tune": settings.tune.model_dump(mode="json", exclude=shared),
            "decision": settings.decision.model_dump(mode="json"),
            "holdout": asked.holdout,
        }
    )[:16]


def _kept(store: ObjectStore, name: str, budget: str) -> TuneFigures | None:
    """Return what a search found that came to its end with the same budget."""
    try:
        found = TuneFigures.model_validate_json(store.get(f"tune/{name}/tune.json"))
    except (ObjectMissing, ValueError):
        return None
    return found if found.asked == budget else None


def page_of(asked: Asked, figures: TuneFigures) -> str:
    """Write the page of a search, and return where it is."""
    from components.tune.page import render

    key = f"tune/{figures.study}/tune.html"
    asked.store.put(key, render(figures).encode())
    return location(asked.store, key)
