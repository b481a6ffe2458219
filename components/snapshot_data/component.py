"""KFP signature of snapshot_data."""

from typing import List, NamedTuple  # noqa: UP035 (KFP reads typing's spelling)

from kfp import dsl
from kfp.dsl import Dataset, Output

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def snapshot_data(
    project: str,
    data: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    force: bool,
    snapshot: Output[Dataset],
) -> NamedTuple("Outputs", [("Output", str), ("data_digest", str), ("run_key", str)]):  # type: ignore[valid-type]
    """Take the lease and a snapshot of the data, and say whether there is anything new to train on.

    One run of a project works at a time. If another one has the lease, this one ends here, green,
    or waits for its turn, as `lease.busy` says.

    Args:
        project: Folder of the project, inside the image.
        data: Data URI; empty: as in evertrain.yaml.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        force: Train even if the same data, code and configuration were trained before.
        snapshot: Digest, source, rows and number of objects (JSON); the manifest is in the store.

    Returns:
        Output: `train`, `nothing_new` or `busy` (kfp.local finds conditions under this name only).
        data_digest: Hash of the snapshot; empty if there is none.
        run_key: Hash of data, code and configuration; empty if there is no snapshot.
    """
    from components.snapshot_data.step import run

    return run(project, data, store, overrides, force, snapshot.path)  # type: ignore[return-value]
