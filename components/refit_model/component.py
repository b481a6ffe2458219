"""KFP signature of refit_model."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Model, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def refit_model(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    splits: Input[Dataset],
    training: Input[Dataset],
    judged: Input[Model],
    verdict: Input[Dataset],
    model: Output[Model],
    decision: Output[Dataset],
) -> None:
    """Train what is to be promoted again on all rows; the judged model stays if that goes wrong.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        splits: Content hashes of the splits.
        training: What the judged model's training saw and began with.
        judged: The packaged challenger.
        verdict: Verdict and reasons.
        model: The package to promote: the refitted one, or the judged one as it is.
        decision: The verdict, and the refit's certificate (JSON).
    """
    from components.refit_model.step import run

    run(
        project, store, overrides, run_key, splits.path, training.path, judged.path, verdict.path,
        model.path, decision.path,
    )  # fmt: skip
