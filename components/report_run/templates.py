"""The templates of the pages: escaped, strict about what they are given, small in the end."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from components.report_run import formats
from components.report_run.svg import tiny_bar

HERE = Path(__file__).parent
LARGEST = 300_000  # bytes: what a mail or a chat still takes, and opens at once
# Rows of a long table, fewer where names and values are so long that the page would be too large.
ROWS = (200, 120, 60, 30, 10)
FILTERS = (
    "count",
    "decimals",
    "fixed",
    "instant",
    "interval",
    "measured",
    "number",
    "percent",
    "plain",
    "plural",
    "seconds",
    "sentence",
    "share",
    "short",
    "size",
    "title",
)


def fitted(name: str, values: dict[str, Any]) -> str:
    """Render a template with as many rows to a table as a page of `LARGEST` bytes holds.

    Args:
        name: Of the template.
        values: What it needs, but for `most`, the rows of a long table.
    """
    template = environment().get_template(name)
    page = ""
    for most in ROWS:
        page = formats.clean(template.render(most=most, **values))
        if len(page.encode()) < LARGEST:
            break
    return page


@cache
def environment() -> Environment:
    """Everything is escaped; a name that a template does not get is an error."""
    made = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in FILTERS:
        made.filters[name] = getattr(formats, name)
    made.globals["tiny_bar"] = tiny_bar
    made.globals["style"] = _style
    return made


def _style(name: str) -> Markup:
    return Markup((HERE / name).read_text())  # noqa: S704 (our own file)
