"""Write each component's README from its signature: `python -m pipelines.describe`.

A test compares the files with what this writes.
"""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import yaml

from components.common.records import STEPS

_COMPONENTS = Path(__file__).resolve().parents[1] / "components"


def readme(step: str) -> str:
    """Return the README of a step's component."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kfp's own deprecations
        component = getattr(importlib.import_module(f"components.{step}.component"), step)
    metadata = yaml.safe_load((_COMPONENTS / step / "metadata.yaml").read_text())
    spec = component.component_spec
    lines = [
        f"# {step}",
        "",
        f"{metadata['description']}.",
        "",
        f"Stops the run when: {metadata['stops_the_run_when']}.",
        "",
        "| input | type | what |",
        "|---|---|---|",
        *(f"| `{n}` | {_type(i.type)} | {_words(i)} |" for n, i in (spec.inputs or {}).items()),
        "",
        "| output | type | what |",
        "|---|---|---|",
        *(f"| `{n}` | {_type(o.type)} | {_words(o)} |" for n, o in (spec.outputs or {}).items()),
        "",
        f"Figures in its record: `{metadata['figures']}` (`components/common/figures.py`).",
        "",
        "This page is written from `component.py` and `metadata.yaml` by `make docs`.",
    ]
    return "\n".join(lines) + "\n"


def _type(text: str) -> str:
    return text.removeprefix("system.").removeprefix("typing.").partition("@")[0].partition("[")[0]


def _words(slot: Any) -> str:
    return " ".join((slot.description or "").split())


def main() -> None:
    """Write every README."""
    for step in STEPS:
        (_COMPONENTS / step / "README.md").write_text(readme(step))


if __name__ == "__main__":
    main()
