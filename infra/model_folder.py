"""The folder of a model made from code, as MLflow's pyfunc flavour wants it."""

from __future__ import annotations

import importlib
import logging
import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any


def write_model_folder(
    folder: Path, stored: Any, *, serve_file: Path, code_files: Sequence[Path], **rest: Any
) -> None:
    """Write the folder of a logged model, with no use of MLflow's global address.

    `mlflow.pyfunc.log_model` does the same and more, but at the address of
    `mlflow.set_tracking_uri`, which belongs to the whole process.

    Raises:
        ValueError: The file does not make a model, or the model cannot predict its own example.
    """
    import mlflow.models.model
    from mlflow.exceptions import MlflowException

    described = mlflow.models.model.Model(
        artifact_path=stored.artifact_location,
        run_id=stored.source_run_id,
        model_uuid=stored.model_id,
        model_id=stored.model_id,
    )
    # what an earlier file has set would be taken for what this one forgot to set
    mlflow.models.model.__mlflow_model__ = None
    with own_code(code_files), _warnings() as said:
        try:
            pyfunc().save_model(
                path=str(folder),
                mlflow_model=described,
                python_model=str(serve_file.absolute()),
                code_paths=[str(path.absolute()) for path in code_files],
                **rest,
            )
        except MlflowException as error:
            raise ValueError(f"no model can be made of {serve_file}: {error.message}") from error
    if rest["input_example"] is not None and described.signature is None:
        raise ValueError(
            f"the model of {serve_file} cannot predict its own input example: {'; '.join(said)}"
        )
    for cache in list(folder.rglob("__pycache__")):
        shutil.rmtree(cache)


def pyfunc() -> Any:
    """Return `mlflow.pyfunc`, which warns of its own type hints when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mlflow.pyfunc
    return mlflow.pyfunc


@contextmanager
def own_code(places: Sequence[Path]) -> Iterator[None]:
    """Let code files and folders be imported by their names, and forget them afterwards.

    MLflow leaves a loaded model's code in `sys.modules`, and there the next model with a module of
    the same name finds it: a champion would run its challenger's code.
    """
    names = {place.stem for place in places}
    path, before = list(sys.path), _modules(names)
    for name, module in before.items():
        file = getattr(module, "__file__", None) or ""
        if not any(Path(file).is_relative_to(place.absolute()) for place in places):
            del sys.modules[name]
    sys.path[:0] = [str(place.absolute().parent) for place in places]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = path
        for name in _modules(names):
            del sys.modules[name]
        sys.modules.update(before)


def _modules(names: set[str]) -> dict[str, ModuleType]:
    return {
        name: module
        for name, module in sys.modules.items()
        if module is not None and name.partition(".")[0] in names
    }


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Collect what MLflow only warns of: it goes on after a model that fails on its example."""
    said: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("mlflow")
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)
