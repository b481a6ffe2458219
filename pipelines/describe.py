"""Write what is generated: component READMEs, JSON Schemas, pages of the reference, a picture.

    python -m pipelines.describe

A test compares the files with what this writes.
"""

from __future__ import annotations

import importlib
import json
import runpy
import warnings
from pathlib import Path
from typing import Any

import docstring_parser
import yaml
from pydantic import BaseModel

from components.common import data_figures, decision_figures, figures, tune_figures
from components.common.records import EVERY_STEP
from components.common.run_record import RunRecord
from components.common.settings import ProjectSettings
from components.report_run.twin import Report
from pipelines.cli import app
from pipelines.reference.commands import commands_page
from pipelines.reference.settings import settings_page

_COMPONENTS = Path(__file__).resolve().parents[1] / "components"
_DOCS = _COMPONENTS.parent / "docs"


def readme(step: str) -> str:
    """Return the README of a step's component."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp's own deprecations
        component = getattr(importlib.import_module(f"components.{step}.component"), step)
    metadata = yaml.safe_load((_COMPONENTS / step / "metadata.yaml").read_text())
    spec = component.component_spec
    said = {
        entry.arg_name: entry.description
        for entry in docstring_parser.parse(component.python_func.__doc__).params
    }
    lines = [
        f"# {step}",
        "",
        f"{metadata['description']}.",
        "",
        f"Stops the run when: {metadata['stops_the_run_when']}.",
        "",
        "| input | type | what |",
        "|---|---|---|",
        *_rows(spec.inputs, said),
        "",
        "| output | type | what |",
        "|---|---|---|",
        *_rows(spec.outputs, said),
        "",
        _figures(metadata["figures"]),
        "",
        "This page is written from `component.py` and `metadata.yaml` by `make docs`.",
    ]
    return "\n".join(lines) + "\n"


def _figures(name: str) -> str:
    """Where the class of a step's figures is."""
    for module in (figures, data_figures, decision_figures, tune_figures):
        if vars(module).get(name, object).__module__ == module.__name__:
            place = module.__name__.replace(".", "/")
            return f"Figures in its record: `{name}` (`{place}.py`)."
    return "It has no figures in its record."


def _rows(slots: dict[str, Any] | None, said: dict[str, str | None]) -> list[str]:
    return [
        f"| `{name}` | {_type(slot.type)} | {_words(name, slot, said)} |"
        for name, slot in (slots or {}).items()
    ]


def _type(text: str) -> str:
    return text.removeprefix("system.").removeprefix("typing.").partition("@")[0].partition("[")[0]


def _words(name: str, slot: Any, said: dict[str, str | None]) -> str:
    """KFP keeps no description of output artifacts: those come from the docstring."""
    return " ".join((slot.description or said.get(name) or "").split())


def generated() -> dict[Path, str]:
    """Return every generated file and what belongs in it."""
    schemas: dict[str, type[BaseModel]] = {
        "run": RunRecord,
        "report": Report,
        "evertrain": ProjectSettings,
    }
    return {
        **{_COMPONENTS / step / "README.md": readme(step) for step in EVERY_STEP},
        **{
            _DOCS / f"{name}.schema.json": json.dumps(model.model_json_schema(), indent=2) + "\n"
            for name, model in schemas.items()
        },
        _DOCS / "pictures" / "schedules.svg": picture("schedules"),
        _DOCS / "settings.md": settings_page(ProjectSettings.model_json_schema()),
        _DOCS / "commands.md": commands_page(app),
    }


def picture(name: str) -> str:
    """Return what a script of the pictures draws."""
    drawn: str = runpy.run_path(str(_DOCS / "pictures" / f"{name}.py"))["picture"]()
    return drawn


def main() -> None:
    """Write every generated file."""
    for file, content in generated().items():
        file.write_text(content)


if __name__ == "__main__":
    main()
