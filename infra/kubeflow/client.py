"""Kubeflow Pipelines: the way in, and what can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from infra.errors import OutsideError
from infra.kubeflow.access import Access, pod_namespace
from infra.kubeflow.calls import Calls
from infra.kubeflow.entities import Run, Version
from infra.kubeflow.errors import NotThere
from infra.kubeflow.listing import every, named
from infra.kubeflow.pipelines import Pipelines
from infra.kubeflow.runs import Runs
from infra.kubeflow.schedules import Schedules


class Kubeflow:
    """One Kubeflow, one namespace. Made by `connect`."""

    def __init__(self, client: Any, calls: Calls, namespace: str) -> None:
        self.host, self.namespace = calls.host, namespace
        self._client, self._calls = client, calls
        self.runs = Runs(client, calls, namespace)
        self.pipelines = Pipelines(client, calls, namespace)
        self.schedules = Schedules(client, calls, namespace)

    @classmethod
    def connect(
        cls,
        *,
        host: str = "",
        namespace: str = "",
        access: Access | None = None,
        patience: float = 30.0,
        timeout: tuple[float, float] = (10.0, 60.0),
    ) -> Kubeflow:
        """Reach Kubeflow and see that it answers.

        Args:
            host: URL of the API; empty: KF_PIPELINES_ENDPOINT, else found as kfp's client does.
            namespace: Of the profile; empty: the pod's own, or none where it is not multi-user.
            access: By which credentials; not given: the usual variables and files.
            patience: Seconds for which every failing call is tried again.
            timeout: Seconds to connect, and seconds between two pieces of an answer.

        Raises:
            OutsideError: It does not answer (exit code 3).
            NotAllowed: It does not let one in (exit code 2).
            NotThere: It has several users, and no namespace is named (exit code 2).
        """
        way = access or Access()
        client = way.client(host)
        api = client._run_api.api_client  # public in no other way (kfp 2.17)
        _no_retries_of_its_own(api)
        calls = Calls(
            host=api.configuration.host, access=way.words(), patience=patience, timeout=timeout
        )
        health = calls.ask("reach Kubeflow", client._healthz_api.healthz_service_get_healthz)
        space = namespace or (pod_namespace() if health.multi_user else "")
        if health.multi_user and not space:
            raise NotThere(
                f"Kubeflow at {calls.host} has several users, and no namespace is named",
                hint="give --namespace NAME, or cluster.namespace in evertrain.yaml: that of your "
                "profile",
            )
        return cls(client, calls, space)

    def start(
        self,
        pipeline: str,
        *,
        name: str,
        parameters: dict[str, Any],
        experiment: str,
        version: Version | None = None,
        service_account: str = "",
    ) -> str:
        """Start a run of a pipeline and return its id; a lost reply does not start two.

        Args:
            pipeline: Its name in Kubeflow.
            name: Of the run.
            parameters: Of the pipeline; what is not given has its compiled default.
            experiment: Its name; made if missing.
            version: Which one; not given: the newest.
            service_account: What its pods run as; empty: Kubeflow's usual.

        Raises:
            NotThere: There is no such pipeline, or it has no version.
        """
        return self.runs.start(
            version or self.pipelines.newest(pipeline),
            name=name,
            parameters=parameters,
            experiment=self.experiment(experiment),
            service_account=service_account,
        )

    def find(self, name: str) -> list[Run]:
        """Return the runs of this name, the newest first, archived ones included."""
        return self.runs.find(name)

    def wait(
        self,
        run: str,
        *,
        timeout: float,
        poll: float = 5.0,
        on_look: Callable[[Run], None] = lambda run: None,
    ) -> Run:
        """Wait until a run has ended, however, and return it."""
        return self.runs.wait(run, timeout=timeout, poll=poll, on_look=on_look)

    def terminate(self, run: str) -> None:
        """Ask Kubeflow to stop a run; one that has ended is left alone."""
        self.runs.terminate(run)

    def experiment(self, name: str) -> str:
        """Return the id of an experiment, made if missing.

        Raises:
            OutsideError: Somebody archived it.
        """
        from kfp_server_api import V2beta1Experiment

        there: Any = self._experiment(name)
        if there is None:
            body = V2beta1Experiment(display_name=name, namespace=self.namespace or None)
            there = self._calls.create(
                f"make the experiment {name!r}",
                lambda: self._experiment(name),
                self._client.experiments.experiment_service_create_experiment,
                body,
            )
        if there.storage_state == "ARCHIVED":
            raise OutsideError(
                f"the experiment {name!r} at {self.host} is archived, so no run can start in it",
                hint="restore it in the Kubeflow user interface, or name another: "
                "cluster.experiment in evertrain.yaml",
            )
        return str(there.experiment_id)

    def page_of(self, run: str) -> str:
        """Where a person looks at a run."""
        return f"{self._client._get_url_prefix().rstrip('/')}/#/runs/details/{run}"

    def find_experiment(self, name: str) -> str:
        """Return the id of an experiment; empty: there is none."""
        there = self._experiment(name)
        return str(there.experiment_id) if there is not None else ""

    def _experiment(self, name: str) -> Any | None:
        found = every(
            self._calls, "list the experiments",
            self._client.experiments.experiment_service_list_experiments, "experiments",
            filter=named(name), namespace=self.namespace,
        )  # fmt: skip
        return next((each for each in found if each.display_name == name), None)


def _no_retries_of_its_own(api: Any) -> None:
    """Leave trying again to `Calls`, and see a redirection to a page to log in at as what it is.

    Followed, it would end in a page that the generated client takes for an empty answer: no runs,
    no pipelines, no schedules.
    """
    import urllib3

    api.rest_client.pool_manager.connection_pool_kw["retries"] = urllib3.Retry(
        total=0, connect=0, read=0, redirect=False, status=0, other=0
    )
