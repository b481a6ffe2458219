"""A search as one self-contained page, in the look of a run's report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from jinja2 import ChoiceLoader, FileSystemLoader

from components.common.tune_figures import TuneFigures
from components.report_run import formats, templates
from components.report_run.formats import plural
from components.tune import pictures
from components.tune.comparison import repeated_words
from components.tune.patch import holdout_words, patch
from components.tune.space import told


def render(found: TuneFigures) -> str:
    """Return the page, with as many trials in its table as a page may hold."""
    shared = templates.environment()
    loaders = [FileSystemLoader(Path(__file__).parent), shared.loader]
    environment = shared.overlay(loader=ChoiceLoader([each for each in loaders if each]))
    template = environment.get_template("template_tune.html")
    values = {
        "found": found,
        "ranked": pictures.ranked(found),
        "patch": patch(found),
        "said": SimpleNamespace(
            headline=headline, sentences=sentences, told=told, repeated=repeated_words
        ),
        "pictures": {
            "history": pictures.history(found),
            "parallel": pictures.parallel(found),
            "importance": pictures.importance(found),
            "curves": pictures.curves(found),
            "isolation": [pictures.isolation(found, each) for each in found.isolation],
        },
    }
    page = ""
    for most in templates.ROWS:
        page = formats.clean(template.render(most=most, **values))
        if len(page.encode()) < templates.LARGEST:
            break
    return page


def headline(found: TuneFigures) -> str:
    """What came of it, in a sentence."""
    compared = found.comparison
    if compared is None:
        return "Nothing is proposed"
    if compared.holdout is not None:
        looked = compared.holdout
        if looked.low > 0:
            return f"Trial {found.winner} is better than the present settings"
        if looked.high < 0:
            return f"Trial {found.winner} is worse than the present settings on the holdout"
    elif compared.better:
        return f"Trial {found.winner} is ahead of the present settings on validation"
    return f"Trial {found.winner} is not shown to be better than the present settings"


def sentences(found: TuneFigures) -> list[str]:
    """What was done and seen."""
    ends = [each.ended for each in found.trials]
    counted = ", ".join(f"{ends.count(kind)} {kind}" for kind in dict.fromkeys(ends))
    said = [
        f"{plural(len(ends), 'trial')} ({counted}) in {formats.seconds(found.seconds)}; ended by "
        f"{found.stopped_by}."
    ]
    if found.comparison is not None:
        words = found.comparison.words
        said.append(f"{words[0].upper()}{words[1:]}.")
        if found.comparison.holdout is not None:
            said.append(holdout_words(found) + ".")
        else:
            said.append("The holdout was not looked at.")
    return said
