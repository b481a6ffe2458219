"""KFP signature of validate_data."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import HTML, Dataset, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def validate_data(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    data_digest: str,
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
        data_digest: Names the snapshot, whose manifest is in the store. A plain parameter, so that
            caching sees the data; the manifest as an artifact would be a new one in every run.
        validated: The manifest again, once it has passed.
        data_docs: What each expectation saw.
        metrics: Rows, rows put aside, failed expectations.
    """
    from components.validate_data.step import run

    run(project, store, overrides, run_key, data_digest, validated.path, data_docs.path, metrics)
