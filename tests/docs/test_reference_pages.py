"""The pages of settings and commands hold what the code takes: all of it, under its own name."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from pydantic import Field

from components.common.settings import ProjectSettings
from pipelines.cli import app
from pipelines.reference.commands import commands_page
from pipelines.reference.settings import settings_page
from training_core.settings import Settings

PAGE = settings_page(ProjectSettings.model_json_schema())


def section(page: str, name: str) -> str:
    """Return what lies below a heading, up to the next one."""
    found = re.search(rf"^#+ {re.escape(name)}\n(.*?)(?=^#|\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, name
    return found.group(1)


def keys(model: type[Settings], path: str) -> list[tuple[str, str]]:
    """Return each section's name and key of a class and of those that it holds directly."""
    found = []
    for name, field in model.model_fields.items():
        below = f"{path}.{name}" if path else name
        if isinstance(field.annotation, type) and issubclass(field.annotation, Settings):
            found += keys(field.annotation, below)
        else:
            found.append((path, name))
    return found


def test_every_setting_has_a_row_in_its_section() -> None:
    pairs = keys(ProjectSettings, "")
    assert len(pairs) > 150
    for path, name in pairs:
        within = section(PAGE, f"`{path}`") if path else PAGE
        assert f"| `{name}` |" in within or f"## `{name}" in PAGE, f"{path}.{name}"


def test_a_row_says_type_bounds_usual_value_and_meaning() -> None:
    rows = section(PAGE, "`training.optimiser`")
    assert re.search(r"^\| `lr` \| number, > 0 \| `0\.001` \| .+ \|$", rows, re.MULTILINE)
    assert "| `name` | text | empty |" not in rows
    assert "`adamw`" in rows


class Inner(Settings):
    """What lies
    inside."""

    share: float = Field(0.5, gt=0, le=1, description="Of a|b.")


class Outer(Settings):
    """Everything."""

    name: str = Field(pattern="^a|b$", description="How it is called.")
    inner: Inner = Inner()
    several: tuple[Inner, ...] = Field((), description="Some.")


def test_what_would_break_a_table_is_escaped_and_lists_of_settings_have_sections() -> None:
    page = settings_page(Outer.model_json_schema())
    assert "| `name` | text |  | How it is called. Written as `^a\\|b$`. |" in page
    assert "| `share` | number, > 0, ≤ 1 | `0.5` | Of a\\|b. |" in section(page, "`inner`")
    assert "What lies inside." in section(page, "`several[]`")


def test_every_link_within_the_pages_leads_to_a_heading() -> None:
    slugs = {
        re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
        for title in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) - slugs == set()


COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_a_section_with_all_its_options(name: str) -> None:
    said = section(commands_page(app), name)
    assert f"evertrain {name}" in said
    for each in COMMANDS[name].params:
        for option in [*each.opts, *each.secondary_opts]:
            if option.startswith("--") and option != "--help":
                assert f"`{option}`" in said
