"""KFP signature of train_distributed."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train_distributed(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    training: Output[Dataset],
    metrics: Output[Metrics],
) -> None:
    """Train the network; goes on from its newest checkpoint if it was interrupted.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration; also names the checkpoints.
        splits: Content hashes of the splits.
        training: Where the checkpoints lie, and the fitted preprocessor (JSON).
        metrics: Last losses and throughput.
    """
    from components.train_distributed.step import run

    run(project, store, overrides, run_key, splits.path, training.path, metrics)
