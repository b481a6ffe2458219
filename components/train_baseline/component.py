"""KFP signature of train_baseline."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Metrics, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train_baseline(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    baselines: Output[Dataset],
    metrics: Output[Metrics],
) -> None:
    """Train prior, rule, table, linear model, trees and a network without inputs.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        baselines: Where their predictions for each holdout row lie (JSON).
        metrics: Their validation losses.
    """
    from components.train_baseline.step import run

    run(project, store, overrides, run_key, splits.path, baselines.path, metrics)
