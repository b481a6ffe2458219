"""KFP signature of report_run."""

from typing import List  # noqa: UP035

from kfp import dsl
from kfp.dsl import HTML, Output, PipelineTaskFinalStatus

from components.common.image import IMAGE


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def report_run(
    project: str,
    store: str,
    overrides: List[str],  # noqa: UP006
    report: Output[HTML],
    status: PipelineTaskFinalStatus,
) -> None:
    """Write run.json and the report page.

    Args:
        project: Folder of the project, inside the image.
        store: Object store URI; empty: as in evertrain.yaml or the environment.
        overrides: Settings as key=value.
        report: The page, shown in the user interface.
        status: How the pipeline ended, as Kubeflow sees it.
    """
    from components.report_run.step import run

    run(project, store, overrides, report.path, status.state)
