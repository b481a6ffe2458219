"""The model registry: versions with tags, and the aliases that point at them, in MLflow.

A version is a pyfunc model made from code: no pickle, but a file that builds the model from its
package folder, and the code it imports beside it. The stock client loads it anywhere:

    mlflow.pyfunc.load_model("models:/flights@champion").predict(frame)
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.errors import ObjectMissing, OutsideError
from infra.model_folder import own_code, pyfunc, write_model_folder
from infra.tracking import connect, faults, quoted

if TYPE_CHECKING:
    import pandas as pd

_MODEL = "model"
_PAGE = 1000
_DESCRIPTION = 5000  # characters of the column in MLflow 3.17's database; PostgreSQL refuses more


class Registry:
    """The registered models of an MLflow server or database.

    Raises:
        OutsideError: The server or database cannot be reached, or failed.
        ObjectMissing: There is no such version.
        ValueError: MLflow refuses what it was given, or the model cannot be served.
    """

    def __init__(self, *, uri: str, experiment: str) -> None:
        self.uri = uri
        self.experiment = experiment
        self._connection: Any = None

    def find_version(self, model: str, *, tag: str, value: str) -> str | None:
        """Return the first usable version that carries the tag, or None.

        The first, because a request that was answered and not heard is sent again by MLflow's
        client, and may leave two.
        """
        found = [each for each in self._search(model) if each.tags.get(tag) == value]
        ready = [int(each.version) for each in found if each.status == "READY"]
        return str(min(ready)) if ready else None

    def register(
        self,
        model: str,
        *,
        run_id: str,
        package: Path,
        serve_file: Path,
        code_files: Sequence[Path],
        tags: Mapping[str, str],
        input_example: pd.DataFrame | None,
        pip_requirements: Sequence[str],
    ) -> str:
        """Store a model with the run, then make it a version; return the version's number.

        The version and its tags are made by one request, and after the model is stored whole: a
        process that dies earlier leaves no version, and `find_version` tells a repetition that
        there is one. `serve_file` is run here once, as it will be where the model is loaded: it
        calls `mlflow.models.set_model`, finds the package at `context.artifacts["package"]`, and
        may import what `code_files` (files or folders) hold.

        Raises:
            ValueError: The model cannot predict its own input example.
        """
        from mlflow.entities import LoggedModelOutput

        with tempfile.TemporaryDirectory() as folder, faults(self.uri):
            client = self._client
            run = client.get_run(run_id)
            stored = client.create_logged_model(
                run.info.experiment_id, name=_MODEL, source_run_id=run_id, tags=dict(tags)
            )
            try:
                write_model_folder(
                    Path(folder, _MODEL),
                    stored,
                    serve_file=serve_file,
                    code_files=code_files,
                    artifacts={"package": str(package.absolute())},
                    input_example=input_example,
                    pip_requirements=list(pip_requirements),
                )
                client.log_model_artifacts(stored.model_id, str(Path(folder, _MODEL)))
            except BaseException:
                client.finalize_logged_model(stored.model_id, "FAILED")
                raise
            client.finalize_logged_model(stored.model_id, "READY")
            client.log_outputs(run_id, [LoggedModelOutput(stored.model_id, step=0)])
            self._ensure_model(model)
            # A database's own store looks `models:/ID` up at MLflow's global address, not at ours
            # (mlflow 3.17, sqlalchemy_store.create_model_version): give it the place itself.
            served = self.uri.startswith("http")
            version = client.create_model_version(
                model,
                source=f"models:/{stored.model_id}" if served else stored.artifact_location,
                run_id=run_id,
                tags=dict(tags),
                model_id=stored.model_id,
            )
            shown = json.dumps([{"name": model, "version": int(version.version)}])
            client.set_logged_model_tags(stored.model_id, {"mlflow.modelVersions": shown})
        return str(version.version)

    def describe(self, model: str, version: str, text: str, *, whole: str = "") -> None:
        """Set a version's description, Markdown that MLflow's pages show; again does no harm.

        A text that is too long for MLflow ends after a whole line, with a line that says so.

        Args:
            whole: Where the whole text lies.
        """
        text = text.replace("\0", "")  # which PostgreSQL refuses
        if len(text) > _DESCRIPTION:
            text = _shortened(text, f"It is too long for MLflow{whole and f'; the whole: {whole}'}")
        with faults(self.uri):
            if self._client.get_model_version(model, version).description != text:
                self._client.update_model_version(model, version, description=text)

    def versions(self, model: str) -> list[dict[str, Any]]:
        """List a model's versions, newest first: version, status, run_id, created, tags, source."""
        return [
            {
                "version": str(each.version),
                "status": each.status,
                "run_id": each.run_id,
                "created": each.creation_timestamp / 1000,
                "tags": dict(each.tags),
                "source": each.source,
            }
            for each in sorted(self._search(model), key=lambda each: -int(each.version))
        ]

    def aliases(self, model: str) -> dict[str, str]:
        """Return a model's aliases and their versions; none for a model that is not there."""
        registered = self._registered(model)
        if registered is None:
            return {}
        return {alias: str(version) for alias, version in registered.aliases.items()}

    def set_aliases(self, model: str, aliases: Mapping[str, str | None]) -> None:
        """Point aliases at versions (None takes one away), and check that they stay.

        MLflow has no compare-and-swap for aliases: two writers can both believe that they won.
        So they are a projection of the promotion log, read again after writing.

        Raises:
            OutsideError: They did not stick: another writer is at it.
        """
        before = self.aliases(model)
        with faults(self.uri):
            for alias, version in aliases.items():
                if version is not None:
                    self._point(model, alias, version)
                elif alias in before:
                    self._client.delete_registered_model_alias(model, alias)
        after = self.aliases(model)
        wrong = {
            alias: after.get(alias)
            for alias, version in aliases.items()
            if after.get(alias) != version
        }
        if wrong:
            wanted = {alias: aliases[alias] for alias in wrong}
            raise OutsideError(
                f"the aliases of {model!r} at {self.uri} did not stick: "
                f"wrote {wanted}, read {wrong}",
                hint="another writer moved them at the same moment: run the same command again",
            )

    def load(self, model: str, version_or_alias: str) -> Any:
        """Load a version, by number or alias, as a pyfunc model. This runs the model's code.

        The code that came with it is imported anew, so two versions can be loaded side by side;
        what it imports only while predicting is looked for in this process's own modules.
        """
        from mlflow.artifacts import download_artifacts
        from mlflow.exceptions import MlflowException

        version = version_or_alias
        if not version.isdigit():
            version = self.aliases(model).get(version, "0")
        with faults(self.uri):
            try:
                place = self._client.get_model_version_download_uri(model, version)
            except MlflowException as error:
                if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                    raise
                raise ObjectMissing(
                    f"the model {model!r} at {self.uri} has no version or alias {version_or_alias}",
                    hint=f"versions: {[each['version'] for each in self.versions(model)]}, "
                    f"aliases: {self.aliases(model)}",
                ) from error
            folder = Path(download_artifacts(artifact_uri=place, tracking_uri=self.uri))
            with own_code(sorted(folder.glob("code/*"))):
                return pyfunc().load_model(str(folder))

    def _point(self, model: str, alias: str, version: str) -> None:
        from mlflow.exceptions import MlflowException

        try:
            self._client.set_registered_model_alias(model, alias, version)
        except MlflowException as error:
            # of two that make an alias at one moment, the database refuses one (mlflow 3.17)
            if error.error_code != "BAD_REQUEST" or "IntegrityError" not in str(error):
                raise
            self._client.set_registered_model_alias(model, alias, version)

    @property
    def _client(self) -> Any:
        if self._connection is None:
            self._connection = connect(self.uri)
        return self._connection

    def _search(self, model: str) -> list[Any]:
        found: list[Any] = []
        token = None
        with faults(self.uri):
            while True:
                page = self._client.search_model_versions(
                    f"name = {quoted(model)}", max_results=_PAGE, page_token=token
                )
                found += page
                token = page.token
                if not token:
                    return found

    def _registered(self, model: str) -> Any:
        from mlflow.exceptions import MlflowException

        with faults(self.uri):
            try:
                return self._client.get_registered_model(model)
            except MlflowException as error:
                if error.error_code == "RESOURCE_DOES_NOT_EXIST":
                    return None
                raise

    def _ensure_model(self, model: str) -> None:
        from mlflow.exceptions import MlflowException

        if self._registered(model) is None:
            try:
                self._client.create_registered_model(model)
            except MlflowException as error:  # another process was faster
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise


def _shortened(text: str, why: str) -> str:
    """Cut Markdown after a line, outside of a block of code, and say why."""
    end = f"\n\n… *{why}.*\n"
    kept = text[: _DESCRIPTION - len(end) + 1].rpartition("\n")[0]
    if kept.count("```") % 2:
        kept = kept.rpartition("```")[0].rstrip()
    return kept + end
