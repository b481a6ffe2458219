"""KFP signature of select_checkpoint."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Model, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def select_checkpoint(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    training: Input[Dataset],
    model: Output[Model],
    candidates: Output[Dataset],
    metrics: Output[Metrics],
) -> None:
    """Evaluate every kept checkpoint on the whole validation split and package the chosen one.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        training: Where the checkpoints lie.
        model: The packaged model (a folder).
        candidates: Every candidate's scores with their intervals (JSON).
        metrics: The chosen one's scores.
    """
    from components.select_checkpoint.step import run

    run(
        project, store, overrides, run_key, splits.path, training.path,
        model.path, candidates.path, metrics,
    )  # fmt: skip
