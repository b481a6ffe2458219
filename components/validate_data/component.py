"""KFP signature of validate_data."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import HTML, Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def validate_data(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    snapshot: Input[Dataset],
    validated: Output[Dataset],
    data_docs: Output[HTML],
    metrics: Output[Metrics],
) -> None:
    """Hold the snapshot against its Great Expectations suite; a blocking failure stops the run.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        snapshot: Manifest of the snapshot.
        validated: The manifest again, once it has passed.
        data_docs: What each expectation saw.
        metrics: Rows, rows put aside, failed expectations.
    """
    from components.validate_data.step import run

    run(project, store, overrides, run_key, snapshot.path, validated.path, data_docs.path, metrics)
