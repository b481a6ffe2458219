"""KFP signature of evaluate_model."""

from typing import List, NamedTuple  # noqa: UP035

from kfp import dsl
from kfp.dsl import ClassificationMetrics, Dataset, Input, Metrics, Model, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def evaluate_model(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    model: Input[Model],
    baselines: Input[Dataset],
    decision: Output[Dataset],
    metrics: Output[Metrics],
    classification: Output[ClassificationMetrics],
) -> NamedTuple("Outputs", [("verdict", str)]):  # type: ignore[valid-type]
    """Score the holdout with challenger, champion and baselines, and decide.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        model: The packaged challenger.
        baselines: Where the baselines' predictions lie.
        decision: Verdict, reasons, gates and comparisons (JSON).
        metrics: The challenger's scores on the holdout.
        classification: Its ROC curve and confusion matrix.

    Returns:
        verdict: promote, hold or inconclusive.
    """
    from components.evaluate_model.step import run

    return run(  # type: ignore[return-value]
        project, store, overrides, run_key, splits.path, model.path, baselines.path,
        decision.path, metrics, classification,
    )  # fmt: skip
