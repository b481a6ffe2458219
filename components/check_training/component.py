"""KFP signature of check_training."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def check_training(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    metrics: Output[Metrics],
) -> None:
    """Find broken training code in seconds; a failed check stops the run.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        metrics: The figure of each check.
    """
    from components.check_training.step import run

    run(project, store, overrides, run_key, splits.path, metrics)
