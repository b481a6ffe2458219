"""The compiled pipeline: held against a golden file, its surface frozen, its steps lean.

After a change that is meant:

    EVERTRAIN_GOLDEN=write python -m pytest tests/pipelines/test_compile.py
"""

from __future__ import annotations

import ast
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from components.common.image import IMAGE
from components.common.records import STEPS
from pipelines.compiling import compile_pipeline

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "continuous_training.yaml"
UNCACHED = {"snapshot_data", "evaluate_model", "promote_model", "report_run"}


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The compiled documents (pipeline, Kubernetes settings); kfp's version and image put aside."""
    file = tmp_path_factory.mktemp("compiled") / "pipeline.yaml"
    compile_pipeline(file)
    found = list(yaml.safe_load_all(file.read_text()))
    found[0]["sdkVersion"] = "kfp"
    for executor in found[0]["deploymentSpec"]["executors"].values():
        assert executor["container"]["image"] == IMAGE
        executor["container"]["image"] = "image"
    return found


def tasks(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Every task of every DAG, by its step's name; those that are DAGs themselves left out."""
    components = documents[0]["components"]
    dags = [documents[0]["root"]["dag"], *(c["dag"] for c in components.values() if "dag" in c)]
    every = {name: task for dag in dags for name, task in dag["tasks"].items()}
    return {
        name.replace("-", "_"): task
        for name, task in every.items()
        if "dag" not in components[task["componentRef"]["name"]]
    }


def executors(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = documents[0]["deploymentSpec"]["executors"]
    return {
        name.removeprefix("exec-").replace("-", "_"): executor["container"]
        for name, executor in found.items()
    }


def test_what_is_compiled_is_what_was_agreed(documents: list[dict[str, Any]]) -> None:
    if os.environ.get("EVERTRAIN_GOLDEN") == "write":
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(yaml.safe_dump_all(documents, sort_keys=True, width=100))
    assert documents == list(yaml.safe_load_all(GOLDEN.read_text())), (
        "the compiled pipeline changed; if that is meant, write the golden file again with "
        "EVERTRAIN_GOLDEN=write python -m pytest tests/pipelines/test_compile.py"
    )


def test_the_pipelines_parameters_are_frozen(documents: list[dict[str, Any]]) -> None:
    parameters = documents[0]["root"]["inputDefinitions"]["parameters"]
    said = {name: (p["parameterType"], p["defaultValue"]) for name, p in parameters.items()}
    assert said == {
        "project": ("STRING", "examples/flights"),
        "data": ("STRING", ""),
        "store": ("STRING", ""),
        "overrides": ("LIST", []),
        "force": ("BOOLEAN", False),
    }


def test_every_step_of_the_list_is_a_task(documents: list[dict[str, Any]]) -> None:
    assert set(tasks(documents)) == set(STEPS)


def test_no_step_installs_packages(documents: list[dict[str, Any]]) -> None:
    found = executors(documents)
    assert set(found) == set(STEPS)
    for name, container in found.items():
        words = " ".join([*container["command"], *container.get("args", [])])
        assert not re.search(r"\bpip3?\b|ensurepip|apt-get|PIP_", words), name


def test_the_run_key_is_an_input_of_every_cached_step(documents: list[dict[str, Any]]) -> None:
    cached = {
        name
        for name, task in tasks(documents).items()
        if task["cachingOptions"].get("enableCache", False)
    }
    assert cached == set(STEPS) - UNCACHED
    for name in cached:
        key = tasks(documents)[name]["inputs"]["parameters"]["run_key"]
        assert "run_key" in str(key), name


def test_no_step_is_told_its_runs_id_as_an_input(documents: list[dict[str, Any]]) -> None:
    """It would end caching: it reaches the step through the environment."""
    platform = documents[1]["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    names = {name.removeprefix("exec-").replace("-", "_") for name in platform}
    assert names == set(STEPS)
    for settings in platform.values():
        assert [env["name"] for env in settings["fieldPathAsEnv"]] == ["EVERTRAIN_RUN_ID"]
    assert all("EVERTRAIN_RUN_ID" not in str(task) for task in tasks(documents).values())


def test_each_steps_code_is_one_call(documents: list[dict[str, Any]]) -> None:
    for name, container in executors(documents).items():
        source = container["command"][-1]
        assert f"from components.{name}.step import run" in source
        (function,) = [n for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)]
        assert len(function.body) == 3, f"{name}: a docstring, an import, a call"


@pytest.mark.parametrize("name", STEPS)
def test_a_component_imports_nothing_heavy(name: str) -> None:
    allowed = {"kfp", "typing", "components.common.image"}
    body = ast.parse((ROOT / "components" / name / "component.py").read_text()).body
    for node in body:
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            top = module.partition(".")[0]
            assert module in allowed or top == "kfp" or top in sys.stdlib_module_names, module


@pytest.mark.parametrize("name", STEPS)
def test_a_component_is_one_folder(name: str) -> None:
    folder = ROOT / "components" / name
    for file in ("component.py", "step.py", "metadata.yaml", "README.md"):
        assert (folder / file).is_file(), f"components/{name} lacks {file}"
