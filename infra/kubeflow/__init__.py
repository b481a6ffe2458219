"""Kubeflow Pipelines, as this project uses it.

    kubeflow = Kubeflow.connect(host="https://kubeflow.example.org/pipeline", namespace="team")
    run = kubeflow.start("flights", name="flights 1a2b", parameters={"force": True},
                         experiment="flights")
    ended = kubeflow.wait(run, timeout=3600)

`access` says by which credentials, `calls` what is tried again and how an error reads, `runs`,
`pipelines` and `schedules` what can be asked for.
"""

from infra.kubeflow.access import Access as Access
from infra.kubeflow.client import Kubeflow as Kubeflow
from infra.kubeflow.entities import Pipeline as Pipeline
from infra.kubeflow.entities import Run as Run
from infra.kubeflow.entities import Schedule as Schedule
from infra.kubeflow.entities import TaskState as TaskState
from infra.kubeflow.entities import Version as Version
from infra.kubeflow.errors import AlreadyThere as AlreadyThere
from infra.kubeflow.errors import NotAllowed as NotAllowed
from infra.kubeflow.errors import NotThere as NotThere
from infra.kubeflow.errors import Refused as Refused
