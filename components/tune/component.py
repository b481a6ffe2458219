"""KFP signature of tune."""

from typing import List, NamedTuple  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def tune(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    metrics: Output[Metrics],
) -> NamedTuple("Outputs", [("overrides", List[str])]):  # type: ignore[valid-type]  # noqa: UP006
    """Search settings on train and validation; what follows trains with the winner.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        metrics: Trials, the winner's validation metric, what it gained.
    """
    from components.tune.step import run

    return run(project, store, overrides, run_key, splits.path, metrics)
