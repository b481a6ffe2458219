"""Compile the pipeline to KFP's intermediate representation (IR YAML)."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from pipelines.placing import Place


def compile_pipeline(
    target: Path,
    *,
    parameters: dict[str, Any] | None = None,
    place: Place | None = None,
    tuned: bool = False,
    refitted: bool = False,
) -> None:
    """Write the IR YAML.

    Args:
        target: File to write; its folder is made.
        parameters: Other defaults of the pipeline's parameters (a project's folder, its store).
        place: Gives each task its place on a cluster; not given: as on a laptop.
        tuned: With the step tune (`tune.in_pipeline`).
        refitted: With the step refit_model (`refit.enabled`).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp's own deprecations
        from kfp import compiler

        from pipelines.continuous_training import build

        target.parent.mkdir(parents=True, exist_ok=True)
        built = build if place is None else partial(build, place)
        pipeline = built(tuned=tuned, refitted=refitted)
        compiler.Compiler().compile(pipeline, str(target), pipeline_parameters=parameters or {})


def name_image(compiled: Path, image: str) -> None:
    """Let all steps of a compiled pipeline run in one image, named by digest or id."""
    documents = list(yaml.safe_load_all(compiled.read_text()))
    for executor in documents[0]["deploymentSpec"]["executors"].values():
        executor["container"]["image"] = image
    compiled.write_text(yaml.safe_dump_all(documents, sort_keys=False))
