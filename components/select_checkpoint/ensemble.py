"""Package the mean of several models instead of one: of other seeds, or of the last champions."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.select_checkpoint.members import Member, champions, package_mean
from training_core.package import Package

if TYPE_CHECKING:
    from components.common.records import StepContext
    from components.select_checkpoint.packaging import Packaging
    from components.select_checkpoint.selection import Selection


def package_ensemble(
    context: StepContext,
    packaging: Packaging,
    parts: dict[str, Any],
    trained: dict[str, Any],
    model: Path,
) -> Selection:
    """Write the package of an ensemble, or of the run's own model if nothing can be added to it.

    Args:
        context: Of the step.
        packaging: Of the run's trainings.
        parts: What split_data left.
        trained: What train_distributed left.
        model: Folder of the package.

    Returns:
        What was chosen of the run's own training, with the ensemble in its figures.

    Raises:
        TrainingFailed: A training of another seed left no checkpoint that can be used.
    """
    settings = context.project.settings
    asked, seed = settings.ensemble, settings.training.seed
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="members-") as place:
        first = {**trained, "seed": seed}
        trainings = [first, *(trained["members"] if asked.of == "seeds" else [])]
        members, chosen = [], None
        for number, training in enumerate(trainings):
            folder = Path(place, str(number))
            done = packaging.package(training, folder)
            chosen = chosen or done.chosen
            package = Package(folder, type(packaging.preprocessor))
            what = f"seed {training['seed']}" if asked.of == "seeds" else "this run's model"
            predictions = package.predict(packaging.validation)
            members.append(
                Member(
                    what, package, done.files, packaging.seen, predictions, training.get("seconds")
                )
            )
        assert chosen is not None
        left_out: list[str] = []
        if asked.of == "champions":
            found, left_out = champions(
                context, parts, packaging.validation, members[0],
                task=packaging.task, most=asked.members - 1,
            )  # fmt: skip
            members += found
        for words in left_out:
            print(f"ensemble: {words}", file=sys.stderr)
        if len(members) == 1:  # the run's own model is the candidate, as without an ensemble
            shutil.copytree(members[0].package.folder, model, dirs_exist_ok=True)
            figures = chosen.figures.model_copy(update={"alone": left_out})
        else:
            ensemble = package_mean(
                context, members, packaging.validation, task=packaging.task,
                facts=members[0].package.manifest["facts"], folder=model, left_out=left_out,
            )  # fmt: skip
            figures = chosen.figures.model_copy(update={"ensemble": ensemble})
        return chosen._replace(figures=figures)
