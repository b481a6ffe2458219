"""The pages: one template, filled by what each command found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from jinja2 import ChoiceLoader, FileSystemLoader
from markupsafe import Markup

from components.report_run import formats, templates


@dataclass(frozen=True, kw_only=True)
class Section:
    """One part of a page.

    Attributes:
        pictures: Drawn first; empty ones are left out.
        words: A paragraph each.
        items: A list.
        columns, rows: A table.
        aside: How to read it.
    """

    title: str
    pictures: Sequence[Markup] = ()
    words: Sequence[str] = ()
    items: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    aside: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page.

    Attributes:
        title: What it is.
        project: Its name.
        when: It was made.
        data: What was measured on, in words.
        headline: The one thing to know.
        lead: The next things.
    """

    title: str
    project: str
    when: datetime
    data: str
    headline: str
    lead: Sequence[str]
    sections: Sequence[Section] = field(default_factory=list)


def render(page: Page) -> str:
    """Return the page, with as many rows in its tables as a page may hold."""
    shared = templates.environment()
    loaders = [FileSystemLoader(Path(__file__).parent), shared.loader]
    environment = shared.overlay(loader=ChoiceLoader([each for each in loaders if each]))
    template = environment.get_template("template_profiling.html")
    made = ""
    for most in templates.ROWS:
        made = formats.clean(template.render(page=page, most=most))
        if len(made.encode()) < templates.LARGEST:
            break
    return made
