"""The KFP API's experiments and pipelines: `experiment_server.go`, `pipeline_server.go`."""

from __future__ import annotations

import json
from typing import Any

from tests.cluster.http_double import HttpDouble, Reply, Request
from tests.cluster.kfp_entities import Experiment, Pipeline, Version
from tests.cluster.kfp_errors import ABORTED, EXISTS, INVALID, KfpError, internal, upload_error
from tests.cluster.kfp_listing import page_of
from tests.cluster.kfp_packages import package_text, spec_of, uploaded_file
from tests.cluster.kfp_state import State
from tests.cluster.kfp_tasks import filled

_BASE = "/apis/v2beta1"


class Experiments:
    def __init__(self, server: HttpDouble, state: State) -> None:
        self.state = state
        server.route("POST", f"{_BASE}/experiments", self.create)
        server.route("GET", f"{_BASE}/experiments", self.list)
        server.route("GET", f"{_BASE}/experiments/{{id}}", self.get)
        server.route("DELETE", f"{_BASE}/experiments/{{id}}", self.delete)
        server.route("POST", f"{_BASE}/experiments/{{id}}:archive", self.archive)
        server.route("POST", f"{_BASE}/experiments/{{id}}:unarchive", self.unarchive)

    def create(self, request: Request) -> Reply:
        told = request.json()
        name = told.get("display_name", "")
        if not name:
            raise internal(
                "Failed to convert API experiment to model experiment: Invalid input error: "
                "Experiment must have a non-empty name"
            ).within("Failed to create an experiment")
        if len(name) > 128:
            said = f"Experiment.Name length cannot exceed 128 characters, got {len(name)}"
            raise internal(said).within("Failed to create an experiment")
        namespace = self.state.namespace(told.get("namespace", ""))
        self.state.allow(request, namespace, verb="create", resource="experiments")
        same = (name, namespace)
        if any((each.name, each.namespace) == same for each in self.state.experiments.values()):
            raise KfpError(
                EXISTS,
                f"Failed to create a new experiment. The name {name} already exists. "
                "Please specify a new name",
                "Failed to create an experiment",
            )
        made = Experiment(name, namespace, told.get("description", ""))
        self.state.experiments[made.key] = made
        return Reply.of(made.view())

    def get(self, request: Request) -> Reply:
        return Reply.of(self._allowed(request, "get").view())

    def list(self, request: Request) -> Reply:
        namespace = self.state.namespace(request.query.get("namespace", ""))
        self.state.allow(request, namespace, verb="list", resource="experiments")
        rows = [e for e in self.state.experiments.values() if e.namespace == namespace]
        page, total, token = page_of(rows, request.query, kind="Experiment")
        views = [each.view() for each in page]
        return Reply.of(filled(experiments=views, total_size=total, next_page_token=token))

    def delete(self, request: Request) -> Reply:
        found = self._allowed(request, "delete")
        if found.key == self.state.default_experiment:
            said = "The default experiment cannot be deleted"
            raise KfpError(ABORTED, f"Failed to delete experiment {found.key}. {said}")
        del self.state.experiments[found.key]
        return Reply.of({})

    def archive(self, request: Request) -> Reply:
        """Its runs go with it, and its schedules are switched off."""
        found = self._allowed(request, "archive")
        found.archived = True
        for run in self.state.runs.values():
            run.archived = run.archived or run.experiment == found.key
        for schedule in self.state.recurring.values():
            if schedule.experiment == found.key:
                schedule.enabled = False
        return Reply.of({})

    def unarchive(self, request: Request) -> Reply:
        """Runs stay archived and schedules off, as on the server."""
        self._allowed(request, "unarchive").archived = False
        return Reply.of({})

    def _allowed(self, request: Request, verb: str) -> Experiment:
        found = self.state.experiment(request.named["id"])
        self.state.allow(request, found.namespace, verb=verb, resource="experiments")
        return found


class Pipelines:
    def __init__(self, server: HttpDouble, state: State) -> None:
        self.state = state
        self._count = 0
        one, versions = f"{_BASE}/pipelines/{{id}}", f"{_BASE}/pipelines/{{id}}/versions"
        server.route("POST", f"{_BASE}/pipelines/upload", self.upload)
        server.route("POST", f"{_BASE}/pipelines/upload_version", self.upload_version)
        server.route("GET", f"{_BASE}/pipelines/names/{{name}}", self.get_by_name)
        server.route("POST", f"{_BASE}/pipelines", self.create)
        server.route("GET", f"{_BASE}/pipelines", self.list)
        server.route("GET", one, self.get)
        server.route("DELETE", one, self.delete)
        server.route("GET", versions, self.list_versions)
        server.route("GET", versions + "/{version}", self.get_version)
        server.route("DELETE", versions + "/{version}", self.delete_version)

    def upload(self, request: Request) -> Reply:
        query, file = request.query, uploaded_file(request)
        if file is None:
            return upload_error(400, "Failed to read pipeline from file")
        try:
            text = package_text(*file)
        except KfpError:
            return upload_error(400, "Failed to read a pipeline spec file")
        namespace = self.state.namespace(query.get("namespace", ""))
        if refused := self._refused(request, namespace):
            return refused
        name = query.get("name") or query.get("display_name") or file[0]
        if len(name) > 128:
            return _too_long("Pipeline", name, 128)
        try:
            spec = spec_of(text)
        except KfpError as error:
            return upload_error(400, error.said)
        if any((p.name, p.namespace) == (name, namespace) for p in self.state.pipelines.values()):
            return upload_error(409, "Failed to create a pipeline and a pipeline version")
        made = Pipeline(
            name, query.get("display_name") or name, namespace, query.get("description", ""),
            _tags(query),
        )  # fmt: skip
        self.state.pipelines[made.key] = made
        self._add(made, Version(made.key, name, made.display_name, spec, text, made.description))
        return Reply.of(made.view())

    def upload_version(self, request: Request) -> Reply:
        query, file = request.query, uploaded_file(request)
        what = "Failed to create a pipeline version"
        pipeline = self.state.pipelines.get(query.get("pipelineid", ""))
        if file is None or pipeline is None:
            return upload_error(400, what)
        try:
            text = package_text(*file)
        except KfpError:
            return upload_error(400, what)
        name = query.get("name") or query.get("display_name") or file[0]
        if len(name) > 127:
            return _too_long("PipelineVersion", name, 127)
        if refused := self._refused(request, pipeline.namespace):
            return refused
        try:
            spec = spec_of(text)
        except KfpError as error:
            return upload_error(400, error.said)
        if any(each.name == name for each in pipeline.versions.values()):
            return upload_error(409, what)
        made = Version(
            pipeline.key, name, query.get("display_name") or name, spec, text,
            query.get("description", ""), _tags(query),
        )  # fmt: skip
        self._add(pipeline, made)
        return Reply.of(made.view())

    def create(self, request: Request) -> Reply:
        told, what = request.json(), "Failed to create a pipeline"
        name = told.get("name") or told.get("display_name", "")
        if not name:
            raise KfpError(INVALID, "pipeline's name cannot be empty", what)
        namespace = self.state.namespace(told.get("namespace", ""))
        self.state.allow(request, namespace, verb="create", resource="pipelines")
        if any((p.name, p.namespace) == (name, namespace) for p in self.state.pipelines.values()):
            raise KfpError(
                EXISTS,
                f"Failed to create a new pipeline. The name {name} already exist. "
                "Please specify a new name",
                what,
            )
        made = Pipeline(
            name, told.get("display_name") or name, namespace, told.get("description", ""),
            told.get("tags") or {},
        )  # fmt: skip
        self.state.pipelines[made.key] = made
        return Reply.of(made.view())

    def get(self, request: Request) -> Reply:
        return Reply.of(self._allowed(request, "get").view())

    def get_by_name(self, request: Request) -> Reply:
        namespace = self.state.namespace(request.query.get("namespace", ""))
        name = request.named["name"]
        for each in self.state.pipelines.values():
            if (each.name, each.namespace) == (name, namespace):
                return Reply.of(each.view())
        raise KfpError(5, f"Pipeline {name} not found.", "Failed to get a pipeline by name")

    def list(self, request: Request) -> Reply:
        """Without a namespace: the pipelines that all share."""
        namespace = self.state.namespace(request.query.get("namespace", ""))
        if namespace:
            self.state.allow(request, namespace, verb="list", resource="pipelines")
        rows = [p for p in self.state.pipelines.values() if p.namespace == namespace]
        page, total, token = page_of(rows, request.query, kind="Pipeline")
        views = [each.view() for each in page]
        return Reply.of(filled(pipelines=views, total_size=total, next_page_token=token))

    def delete(self, request: Request) -> Reply:
        found = self._allowed(request, "delete")
        if found.versions and request.query.get("cascade", "false").lower() != "true":
            raise KfpError(
                INVALID,
                f"Failed to delete pipeline {found.key} as it has existing pipeline versions",
                "Failed to delete a pipeline",
            )
        del self.state.pipelines[found.key]
        return Reply.of({})

    def list_versions(self, request: Request) -> Reply:
        found = self._allowed(request, "get")
        page, total, token = page_of(found.versions.values(), request.query, kind="PipelineVersion")
        views = [each.view() for each in page]
        return Reply.of(filled(pipeline_versions=views, total_size=total, next_page_token=token))

    def get_version(self, request: Request) -> Reply:
        self._allowed(request, "get")
        return Reply.of(self.state.version(request.named["version"]).view())

    def delete_version(self, request: Request) -> Reply:
        found = self._allowed(request, "delete")
        version = self.state.version(request.named["version"])
        found.versions.pop(version.key, None)
        return Reply.of({})

    def _add(self, pipeline: Pipeline, version: Version) -> None:
        self._count += 1
        version.order = self._count
        pipeline.versions[version.key] = version

    def _allowed(self, request: Request, verb: str) -> Pipeline:
        found = self.state.pipeline(request.named["id"])
        if found.namespace:
            self.state.allow(request, found.namespace, verb=verb, resource="pipelines")
        return found

    def _refused(self, request: Request, namespace: str) -> Reply | None:
        try:
            if namespace:
                self.state.allow(request, namespace, verb="create", resource="pipelines")
        except KfpError as error:
            return upload_error(400, f"pipeline upload denied: {error.said}")
        return None


def _too_long(kind: str, name: str, most: int) -> Reply:
    said = f"{kind}.Name length cannot exceed {most} characters, got {len(name)}\n"
    return Reply(400, said.encode(), {"Content-Type": "text/plain; charset=utf-8"})


def _tags(query: dict[str, str]) -> dict[str, Any]:
    return dict(json.loads(query["tags"])) if query.get("tags") else {}
