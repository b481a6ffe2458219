"""KFP signature of promote_model."""

from typing import List, NamedTuple  # noqa: UP035

from kfp import dsl
from kfp.dsl import Dataset, Input, Model

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def promote_model(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    run_key: str,
    decision: Input[Dataset],
    model: Input[Model],
) -> NamedTuple("Outputs", [("outcome", str), ("champion", str)]):  # type: ignore[valid-type]
    """Register and promote the model, or record why it is held.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        run_key: Hash of data, code and configuration.
        decision: Verdict and reasons.
        model: The packaged challenger.

    Returns:
        outcome: `promoted`, `proposed` or `held`.
        champion: The version that is champion now; empty: none.
    """
    from components.promote_model.step import run

    return run(project, store, overrides, run_key, decision.path, model.path)  # type: ignore[return-value]
