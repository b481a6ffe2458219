"""A search alone, as a process that can be killed: `python -m tests.components.tune_child PROJECT`.

What comes after it in `evertrain tune` (repeats, analysis) is left out. The last line of stdout is
every trial as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from components.common.layout import project_store
from components.common.project import open_project
from components.tune.search import Place, search
from components.tune.space import space_of
from components.tune.storage import open_study
from components.tune.trials import Trials
from components.tune.turn import my_turn
from infra.guarded import GuardedStore


def main(folder: Path, *overrides: str) -> None:
    """Search until the budget is spent."""
    project = open_project(folder, overrides=list(overrides))
    space, plain = space_of(project), project_store(project)
    here = folder / ".evertrain" / "tune" / "s"
    with my_turn(plain, folder=here, name="s") as turn:
        store = GuardedStore(plain, turn.ensure)
        trials = Trials(
            open_study(store, "s", prefix="tune/s/journal"), space, project.settings.tune
        )
        splits = json.loads((folder / "splits.json").read_text())
        search(Place(project, store, splits, "s", here), trials, space)
        print(json.dumps([each.model_dump(mode="json") for each in trials.all()]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
