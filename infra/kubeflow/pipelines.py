"""Pipelines and their versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from infra.kubeflow.calls import Calls
from infra.kubeflow.entities import Pipeline, Version
from infra.kubeflow.errors import NotThere
from infra.kubeflow.listing import every, moment, named


class Pipelines:
    """The pipelines of one namespace.

    Args:
        client: kfp's.
        calls: How calls are made.
        namespace: Of the profile; empty: Kubeflow is not multi-user.
    """

    def __init__(self, client: Any, calls: Calls, namespace: str) -> None:
        self._api, self._uploads = client.pipelines, client.pipeline_uploads
        self._calls, self._namespace = calls, namespace

    def find(self, name: str) -> Pipeline | None:
        """Return the pipeline of this name; None: there is none."""
        found = every(
            self._calls, "list the pipelines", self._api.pipeline_service_list_pipelines,
            "pipelines", filter=named(name), namespace=self._namespace,
        )  # fmt: skip
        return next((_pipeline(each) for each in found if each.display_name == name), None)

    def all(self) -> list[Pipeline]:
        """Return every pipeline, whoever made it, the newest first."""
        found = every(
            self._calls, "list the pipelines", self._api.pipeline_service_list_pipelines,
            "pipelines", namespace=self._namespace,
        )  # fmt: skip
        return [_pipeline(each) for each in found]

    def get(self, pipeline: str) -> Pipeline | None:
        """Return the pipeline with this id; None: there is none."""
        try:
            return _pipeline(
                self._calls.ask(
                    "look at the pipeline", self._api.pipeline_service_get_pipeline, pipeline
                )
            )
        except NotThere:
            return None

    def versions(self, pipeline: str) -> list[Version]:
        """Return the versions of a pipeline (by its id), the newest first.

        The server's times have whole seconds; versions of one second are ordered by their numbers.
        """
        found = every(
            self._calls, "list the versions", self._api.pipeline_service_list_pipeline_versions,
            "pipeline_versions", pipeline_id=pipeline,
        )  # fmt: skip
        versions = [_version(each) for each in found]
        return sorted(
            versions, key=lambda v: (v.created.timestamp() if v.created else 0.0, v.number),
            reverse=True,
        )  # fmt: skip

    def newest(self, name: str) -> Version:
        """Return the newest version of a pipeline, by its name.

        Raises:
            NotThere: There is no such pipeline, or it has no version.
        """
        pipeline = self.find(name)
        versions = self.versions(pipeline.id) if pipeline is not None else []
        if not versions:
            raise NotThere(
                f"there is no pipeline {name!r} at {self._calls.host}"
                if pipeline is None
                else f"the pipeline {name!r} at {self._calls.host} has no version",
                hint="upload it: evertrain deploy PROJECT",
            )
        return versions[0]

    def create(self, name: str, *, description: str) -> Pipeline:
        """Return the pipeline of this name, made if missing; it has no version then."""
        from kfp_server_api import V2beta1Pipeline

        made = self._calls.create(
            f"make the pipeline {name!r}",
            lambda: self.find(name),
            self._api.pipeline_service_create_pipeline,
            V2beta1Pipeline(
                name=name,
                display_name=name,
                description=description,
                namespace=self._namespace or None,
            ),
        )
        return made if isinstance(made, Pipeline) else _pipeline(made)

    def upload(self, package: Path, *, pipeline: Pipeline, name: str, description: str) -> Version:
        """Upload a version; one of this name that is there already is returned as it is.

        So `name` has to tell what is in it.
        """

        def found() -> Version | None:
            return next((v for v in self.versions(pipeline.id) if v.name == name), None)

        made = self._calls.create(
            f"upload version {name!r} of the pipeline {pipeline.name!r}",
            found,
            self._uploads.upload_pipeline_version,
            str(package),
            name=name,
            pipelineid=pipeline.id,
            description=description,
        )
        return made if isinstance(made, Version) else _version(made)


def _pipeline(given: Any) -> Pipeline:
    return Pipeline(
        id=given.pipeline_id, name=given.display_name or "", description=given.description or ""
    )


def _version(given: Any) -> Version:
    return Version(
        id=given.pipeline_version_id,
        pipeline=given.pipeline_id,
        name=given.display_name or "",
        description=given.description or "",
        created=moment(given.created_at),
    )
