"""A project: `evertrain.yaml`, read and checked, and the task that it names."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from components.common.settings import ProjectSettings
from training_core.errors import ConfigurationError

if TYPE_CHECKING:
    from training_core.task import Task

FILE_NAME = "evertrain.yaml"
_imported_from: set[Path] = set()  # folders of projects whose modules are in this process


class _Yaml(yaml.SafeLoader):
    """With the booleans of YAML 1.2: `off`, `on`, `yes` and `no` are words, and some settings'."""


_BOOL = "tag:yaml.org,2002:bool"
_Yaml.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in known if tag != _BOOL]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Yaml.add_implicit_resolver(_BOOL, re.compile("^(true|True|TRUE|false|False|FALSE)$"), list("tTfF"))


class Project:
    """A project's folder, its settings, and its task.

    Attributes:
        folder: Absolute path.
        settings: `evertrain.yaml` with the overrides applied.
        overrides: Those overrides, as they were given.
    """

    def __init__(
        self, folder: Path, settings: ProjectSettings, overrides: tuple[str, ...] = ()
    ) -> None:
        self.folder = folder
        self.settings = settings
        self.overrides = overrides

    @property
    def data_source(self) -> str | list[str]:
        """The data's URI or URIs, relative folders made absolute."""
        source = self.settings.data.source
        if isinstance(source, str):
            return self._absolute(source)
        return [self._absolute(uri) for uri in source]

    def _absolute(self, uri: str) -> str:
        return uri if "://" in uri else str((self.folder / uri).resolve())

    def task(self) -> Task:
        """Import and build the task.

        Raises:
            ConfigurationError: Module, class or options are wrong.
        """
        from training_core.task import Task

        reference = self.settings.task
        module_name, _, class_name = reference.path.partition(":")
        if sys.path[0] != str(self.folder):
            sys.path.insert(0, str(self.folder))
        _forget_other_projects(self.folder)
        where = f"{self.folder / FILE_NAME}: task.path {reference.path!r}"
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name.partition(".")[0] and error.name != module_name:
                raise
            raise ConfigurationError(
                f"{where}: there is no module {module_name!r} in {self.folder}",
                hint=f"create {module_name.replace('.', '/')}.py there, or correct task.path",
            ) from error
        found = getattr(module, class_name, None)
        if not (isinstance(found, type) and issubclass(found, Task)):
            known = [
                name
                for name, value in vars(module).items()
                if isinstance(value, type)
                and issubclass(value, Task)
                and value.__module__ == module.__name__
            ]
            raise ConfigurationError(
                f"{where}: {module.__file__} has no task class {class_name!r}",
                hint=f"its tasks are: {', '.join(known) or 'none (subclass training_core.Task)'}",
            )
        try:
            return found(found.Options.model_validate(reference.options))
        except ValidationError as error:
            raise _explained(
                error, where=self.folder / FILE_NAME, model=found.Options, prefix="task.options."
            ) from error


def _forget_other_projects(folder: Path) -> None:
    """Let go of what was imported from other projects: theirs may have the names of ours.

    Not only the tasks' modules: two projects may each have a `features`, which both import.
    """
    for other in _imported_from - {folder}:
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file is not None and _imported_by_name(name, Path(file), other):
                del sys.modules[name]
        sys.path[:] = [entry for entry in sys.path if entry != str(other)]
    _imported_from.clear()
    _imported_from.add(folder)
    importlib.invalidate_caches()


def _imported_by_name(name: str, file: Path, folder: Path) -> bool:
    """Say whether a module was found by its name in a folder, and not by way of a package of it."""
    path = folder / Path(*name.split("."))
    return file in (path.with_suffix(".py"), path / "__init__.py")


def open_project(
    folder: str | os.PathLike[str], *, overrides: list[str] | None = None, data: str = ""
) -> Project:
    """Read a project's settings.

    Args:
        folder: The folder that holds `evertrain.yaml`.
        overrides: `dotted.key=value`, the value read as YAML.
        data: Overrides `data.source` (relative to the current folder, not to the project).

    Raises:
        ConfigurationError: No such file, no YAML, an unknown key, a value of the wrong type.
    """
    path = Path(folder).expanduser().resolve()
    file = path / FILE_NAME
    if not file.is_file():
        raise ConfigurationError(
            f"there is no {FILE_NAME} in {path}",
            hint="name the folder of a project, for example: evertrain run examples/flights",
        )
    try:
        content = yaml.load(file.read_text(), _Yaml)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(f"{file} is not YAML: {error}", hint="mend it there") from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{file} holds no settings", hint="see evertrain schema")
    for override in overrides or []:
        _apply(content, override)
    if data:
        content.setdefault("data", {})["source"] = data if "://" in data else os.path.abspath(data)
    try:
        return Project(path, ProjectSettings.model_validate(content), tuple(overrides or ()))
    except ValidationError as error:
        raise _explained(error, where=file, model=ProjectSettings) from error


def _apply(content: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigurationError(
            f"--set {override!r} is not of the form key=value",
            hint="for example: --set training.epochs=2",
        )
    *parents, last = key.strip().split(".")
    place = content
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise ConfigurationError(
                f"--set {override!r}: {parent!r} is a value, not a section",
                hint="evertrain schema lists every key",
            )
    try:
        place[last] = yaml.load(text, _Yaml)  # noqa: S506 (a SafeLoader)
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"--set {override!r}: the value is not YAML", hint="quote it, as in 'key=\"text\"'"
        ) from error


def _explained(
    error: ValidationError, *, where: Path, model: type[BaseModel], prefix: str = ""
) -> ConfigurationError:
    """Say the first fault in words: file, key, what was expected, the nearest valid key."""
    # An unknown key first: a misspelt one is also missing, and the spelling is the fault.
    first = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
    location = [part for part in first["loc"] if isinstance(part, str)]
    key = prefix + ".".join(str(part) for part in first["loc"])
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        choices = _keys_at(model, location[:-1])
        near = difflib.get_close_matches(location[-1], choices, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}? " if near else ""
        return ConfigurationError(
            f"{where}: unknown key {key!r}{more}",
            hint=f"{hint}valid keys here: {', '.join(sorted(choices))}",
        )
    if first["type"] == "missing":
        return ConfigurationError(
            f"{where}: {key!r} is missing{more}", hint="evertrain schema describes every key"
        )
    value = first.get("input")
    at = f"{key}: " if key else ""
    secret = bool(location) and location[-1].endswith("_env")  # perhaps the secret, not its name
    got = f", not {value!r}" if location and not (secret or isinstance(value, dict)) else ""
    return ConfigurationError(
        f"{where}: {at}{first['msg'].removeprefix('Value error, ')}{got}{more}",
        hint="evertrain schema describes every key",
    )


def _keys_at(model: type[BaseModel], location: list[str]) -> list[str]:
    """Names of the fields of the settings class at a location."""
    choices = [model]
    for part in location:
        tagged = [m for m in choices if part in get_args(_annotation(m, "type"))]
        if len(choices) > 1 and tagged:  # one of several kinds of section, told by its type
            choices = tagged
            continue
        choices = _models(_annotation(choices[0], part))
        if not choices:
            return []
    return list(choices[0].model_fields)


def _annotation(model: type[BaseModel], name: str) -> Any:
    field = model.model_fields.get(name)
    return field.annotation if field is not None else None


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The settings classes that a value of this type may be, or hold."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models(inner)]
