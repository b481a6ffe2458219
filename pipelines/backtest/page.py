"""A backtest as one self-contained page, in the look of a run's report."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from jinja2 import ChoiceLoader, FileSystemLoader

from components.report_run import formats, templates
from components.report_run.formats import fixed, interval, percent, plural, signed
from pipelines.backtest import pictures
from pipelines.backtest.policies import ORACLE, OURS
from pipelines.backtest.result import BacktestResult, PolicyFigures, waiting_in


def write_page(file: Path, found: BacktestResult) -> None:
    """Write the page, whole or not at all."""
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(render(found))
    unfinished.replace(file)


def render(found: BacktestResult) -> str:
    """Return the page, with as many periods in its tables as a page may hold."""
    shared = templates.environment()
    loaders = [FileSystemLoader(Path(__file__).parent), shared.loader]
    environment = shared.overlay(loader=ChoiceLoader([each for each in loaders if each]))
    template = environment.get_template("template_backtest.html")
    values = {
        "found": found,
        "looks": pictures.LOOKS,
        "pictures": {
            "metric": pictures.metric_by_period(found),
            "cost": pictures.cumulative_cost(found),
            "hours": pictures.cumulative_hours(found),
        },
        "unit": "days",
        "said": SimpleNamespace(
            headline=headline, sentences=sentences, between=between, signed=signed, day=day
        ),
    }
    page = ""
    for most in templates.ROWS:
        page = formats.clean(template.render(most=most, **values))
        if len(page.encode()) < templates.LARGEST:
            break
    return page


def headline(found: BacktestResult) -> str:
    """Whether another policy is shown to be better than ours."""
    better = [p for p in _followed(found) if p.high is not None and p.high < 0]
    if not better:
        return f"No policy is shown to beat ours: {_name(found)} {_ours(found).metric:.4f}"
    best = min(better, key=lambda each: each.metric)
    return (
        f"The policy {best.policy} would have beaten ours: {_name(found)} {best.metric:.4f} "
        f"instead of {_ours(found).metric:.4f}"
    )


def sentences(found: BacktestResult) -> list[str]:
    """What the figures show, what they leave open, and what ours took."""
    others = [each for each in _followed(found) if each.policy != OURS]
    said = {
        "Shown to be better than ours": [p for p in others if p.high is not None and p.high < 0],
        "Shown to be worse than ours": [p for p in others if p.low is not None and p.low > 0],
    }
    told = [each for found_ones in said.values() for each in found_ones]
    said["Not to be told from ours"] = [each for each in others if each not in told]
    words = [
        f"{what}: {', '.join(each.policy for each in which)}."
        for what, which in said.items()
        if which
    ]
    ours = _ours(found)
    words.append(
        f"Ours took {fixed(ours.hours or 0, 2)} hours for {ours.trainings} trainings and stayed "
        f"{percent(ours.regret)} behind the best that hindsight has."
    )
    return [*words, *waiting_words(found)]


def waiting_words(found: BacktestResult) -> list[str]:
    """What waiting cost, in a sentence; none where too little was seen."""
    seen = [waiting_in([found], found.metric, months) for months in (1, 3, 6, 12)]
    parts = [
        f"{plural(round(waiting.months), 'month')} older {signed(waiting.mean, 4)}"
        for waiting in seen
        if waiting is not None and waiting.alike
    ]
    if not parts:
        return []
    return [f"What an older model lost to the newest, in {_name(found)}: {', '.join(parts)}."]


def day(date: str) -> str:
    """A date without its year, for narrow columns."""
    return date[5:]


def between(figures: PolicyFigures) -> str:
    """The interval of the difference from ours."""
    if figures.policy == OURS or figures.low is None or figures.high is None:
        return ""
    return interval(figures.low, figures.high)


def _followed(found: BacktestResult) -> list[PolicyFigures]:
    return [each for each in found.policies if each.policy != ORACLE]


def _ours(found: BacktestResult) -> PolicyFigures:
    return next(each for each in found.policies if each.policy == OURS)


def _name(found: BacktestResult) -> str:
    return found.metric.replace("_", " ")
