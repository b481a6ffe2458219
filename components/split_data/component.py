"""KFP signature of split_data."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def split_data(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    validated: Input[Dataset],
    splits: Output[Dataset],
    metrics: Output[Metrics],
) -> None:
    """Divide the labelled rows by time, group or hash; stop where the parts are not apart.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        validated: Manifest of the snapshot that passed validation.
        splits: Content hashes of train, validation and holdout, and the proof (JSON).
        metrics: Rows of each part.
    """
    from components.split_data.step import run

    run(project, store, overrides, run_key, validated.path, splits.path, metrics)
