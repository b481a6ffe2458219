"""The KFP API's runs: `run_server.go` and `resource_manager.go` of kubeflow/pipelines."""

from __future__ import annotations

from typing import Any

from tests.cluster.http_double import HttpDouble, Reply, Request
from tests.cluster.kfp_entities import Experiment, Run
from tests.cluster.kfp_errors import ABORTED, INVALID, KfpError, internal, not_found, upload_error
from tests.cluster.kfp_listing import page_of
from tests.cluster.kfp_packages import check_parameters
from tests.cluster.kfp_state import State
from tests.cluster.kfp_tasks import filled

_BASE = "/apis/v2beta1"


class Owned:
    """What lies in an experiment."""

    resource = ""

    def __init__(self, state: State) -> None:
        self.state = state

    def experiment(self, request: Request, told: dict[str, Any]) -> Experiment:
        key = told.get("experiment_id") or self.state.default_experiment
        if not key:
            raise KfpError(INVALID, "Experiment id and namespace cannot both be empty")
        found = self.state.experiment(key)
        self.state.allow(request, found.namespace, verb="create", resource=self.resource)
        return found

    def listed(self, request: Request, rows: list[Any], kind: str) -> tuple[list[Any], int, str]:
        query = request.query
        if key := query.get("experiment_id", ""):
            namespace = self.state.experiment(key).namespace
            rows = [each for each in rows if each.experiment == key]
        else:
            namespace = self.state.namespace(query.get("namespace", ""))
            rows = [each for each in rows if each.namespace == namespace]
        self.state.allow(request, namespace, verb="list", resource=self.resource)
        page, total, token = page_of(rows, query, kind=kind)
        return [each.view() for each in page], total, token


class Runs(Owned):
    resource = "runs"

    def __init__(self, server: HttpDouble, state: State) -> None:
        super().__init__(state)
        one = f"{_BASE}/runs/{{id}}"
        server.route("POST", f"{_BASE}/runs", self.create)
        server.route("GET", f"{_BASE}/runs", self.list)
        server.route("GET", one, self.get)
        server.route("DELETE", one, self.delete)
        for verb in ("archive", "unarchive", "terminate", "retry"):
            server.route("POST", f"{one}:{verb}", getattr(self, verb))
        server.route("GET", "/apis/v1alpha1/runs/{id}/nodes/{node}/log", self.log)

    def create(self, request: Request) -> Reply:
        told, what = request.json(), "Failed to create a new run"
        if not told.get("display_name"):
            raise internal(
                "Failed to convert a API run detail to its internal representation: "
                "Invalid input error: Run name cannot be empty"
            ).within(what)
        try:
            experiment = self.experiment(request, told)
            source = self.state.source(told)
            check_parameters(self.state.spec(source), source.parameters)
        except KfpError as error:
            raise error.within(what) from None
        run = Run(
            told["display_name"], experiment.key, experiment.namespace, source,
            told.get("description", ""), told.get("service_account") or "pipeline-runner",
        )  # fmt: skip
        return Reply.of(self.add(run, experiment).view())

    def add(self, run: Run, experiment: Experiment) -> Run:
        run.scheduled = run.scheduled or run.created
        if run.source.pipeline and not run.source.version:
            latest = self.state.pipeline(run.source.pipeline).latest()
            assert latest is not None
            run.source.version = latest.key
        experiment.last_run = run.created
        self.state.runs[run.key] = run
        self.state.start(run)
        return run

    def get(self, request: Request) -> Reply:
        run = self._allowed(request, "get")
        self.state.look(run)
        return Reply.of(run.view())

    def list(self, request: Request) -> Reply:
        views, total, token = self.listed(request, list(self.state.runs.values()), "Run")
        return Reply.of(filled(runs=views, total_size=total, next_page_token=token))

    def delete(self, request: Request) -> Reply:
        run = self._allowed(request, "delete")
        run.cancelled.set()
        del self.state.runs[run.key]
        return Reply.of({})

    def archive(self, request: Request) -> Reply:
        self._allowed(request, "archive").archived = True
        return Reply.of({})

    def unarchive(self, request: Request) -> Reply:
        run = self._allowed(request, "unarchive")
        if self.state.experiment(run.experiment).archived:
            said = (
                f"Failed to unarchive run {run.key} as experiment {run.experiment} must be "
                "un-archived first"
            )
            raise KfpError(ABORTED, said, "Failed to unarchive a run")
        run.archived = False
        return Reply.of({})

    def terminate(self, request: Request) -> Reply:
        run = self._allowed(request, "terminate")
        if run.state not in ("PAUSED", "PENDING", "RUNNING", "RUNTIME_STATE_UNSPECIFIED"):
            said = f"Failed to terminate a run {run.key}. Row not found"
            raise KfpError(INVALID, said, "Failed to terminate a run")
        run.become("CANCELING")
        run.cancelled.set()
        return Reply.of({})

    def retry(self, request: Request) -> Reply:
        run = self._allowed(request, "retry")
        if run.state not in ("FAILED", "CANCELED"):
            raise KfpError(
                ABORTED, "Workflow must be Failed/Error to retry",
                f"Failed to retry run {run.key}",
            )  # fmt: skip
        run.state, run.finished, run.error = "RUNTIME_STATE_UNSPECIFIED", 0, ""
        run.attempt += 1
        self.state.start(run)
        return Reply.of({})

    def log(self, request: Request) -> Reply:
        run = self._allowed(request, "readArtifact")
        node = request.named["node"]
        for name, lines in run.logs.items():
            task = run.tasks.get(name)
            pod = task.pod(run.workflow) if task else ""
            if node == pod or (not self.state.argo and node in (name, f"{name}-pod")):
                text = "".join(f"{line}\n" for line in lines)
                return Reply(200, text.encode(), {"Content-Type": "text/plain; charset=utf-8"})
        if self.state.argo:
            said = f"BadRequestError: Failed to read logs for run {run.key}"
            return upload_error(500, f'{said}: pods "{node}" not found')
        raise not_found("Pod", node)

    def _allowed(self, request: Request, verb: str) -> Run:
        run = self.state.run(request.named["id"])
        self.state.allow(request, run.namespace, verb=verb, resource=self.resource)
        return run
