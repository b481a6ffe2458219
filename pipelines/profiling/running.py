"""From a project to what is said: lines, data and a page, for each of the three commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from components.common.layout import location, project_store
from components.common.project import Project
from components.report_run.formats import plain as shortly
from pipelines.profiling import pictures, words
from pipelines.profiling.data import planned_training
from pipelines.profiling.page import Page, Section, render
from pipelines.profiling.plain import plain
from pipelines.profiling.profile_page import profile_page

if TYPE_CHECKING:
    from training_core.profiling.trying import Tried

FOLDER = "profile"  # in the object store; the next page takes the place of the last
Say = Callable[[str], None]


@dataclass(frozen=True)
class Said:
    """What a command says.

    Attributes:
        lines: For people.
        data: For --json.
    """

    lines: list[str]
    data: dict[str, Any]


def profile_project(project: Project, *, trying: bool, price: float, say: Say) -> Said:
    """Take the steps of a project's training apart.

    Args:
        project: Opened with its overrides.
        trying: Whether each advised setting is tried and measured.
        price: Of an hour; 0: the settings'.
        say: Told what is under way.
    """
    with _talking():
        say("reading the data")
        with planned_training(project) as (planned, data), TemporaryDirectory() as folder:
            from training_core.profiling.advice import bars, changes
            from training_core.profiling.estimate import estimate
            from training_core.profiling.profile import profile
            from training_core.profiling.trying import try_changes

            say("taking steps apart")
            trace = Path(folder) / "trace.json.gz"
            found = profile(planned, trace_file=trace)
            longest, run = bars(planned, found), estimate(planned, found, price=price)
            advised = changes(planned, found)
            tried: list[Tried] = []
            if trying and advised:
                say("trying " + ", ".join(map(str, advised)))
                tried = try_changes(planned, advised)
            store = project_store(project)
            store.put_file(f"{FOLDER}/trace.json.gz", trace)
        traced = location(store, f"{FOLDER}/trace.json.gz")
        page = profile_page(project, data, found, longest, run, tried, traced)
        where = _write(project, "profile.html", page)
    lines = [
        page.headline,
        *page.lead,
        *(f"{i}. {words.bar(bar)}" for i, bar in enumerate(longest, 1)),
        *(f"wait:    {words.wait(sync)}" for sync in found.syncs),
        *(f"line:    {words.line(hot)}" for hot in found.hot[:3]),
        *(f"memory:  {each}" for each in [words.memory(found)]),
        *(f"run:     {each}" for each in words.run(run)),
        *(f"tried:   {words.tried(each)}" for each in tried),
        *([] if tried else [f"next:    {change}: {change.why}" for change in advised]),
        *(["next:    try and measure them: --try"] if advised and not tried else []),
        f"data:    {data}",
        f"trace:   {traced} (open it at https://ui.perfetto.dev)",
        f"page:    {where}",
    ]
    said = {
        "project": project.settings.name,
        "bound": found.bound,
        "profile": plain(found),
        "bars": plain(longest),
        "estimate": plain(run),
        "advised": plain(advised),
        "tried": [{**plain(each), "verdict": each.verdict} for each in tried],
        "data": data,
        "trace": traced,
        "page": where,
    }
    return Said(lines, said)


def sweep_project(project: Project, *, steps: int, low: float, high: float, say: Say) -> Said:
    """Make a learning-rate range test of a project's training."""
    with _talking():
        say("reading the data")
        with planned_training(project) as (planned, data):
            from training_core.profiling.confirming import better, confirm
            from training_core.profiling.learning_rate import STEPS, sweep

            say("raising the rate")
            found = sweep(planned, steps=steps or STEPS, low=low, high=high)
            say("training briefly at what is proposed")
            probes = confirm(planned, found)
            verdict = better(probes)
        compared = words.compared(probes, verdict, found.planned)
        page = Page(
            title="learning rate",
            project=project.settings.name,
            when=datetime.now(UTC),
            data=data,
            headline=words.proposal(found, verdict),
            lead=[f"Planned is {shortly(found.planned)}.", *([compared] if compared else [])],
            sections=[
                Section(
                    title="The range test",
                    pictures=[pictures.sweep_picture(found)],
                    words=[" ".join(words.swept(found))],
                    aside="After Smith 2017 (arXiv:1506.01186). What holds for a few steps is a "
                    "place to begin a search, not its end.",
                ),
                Section(
                    title="From the same start",
                    pictures=[pictures.probes_picture(probes)],
                    aside="What a rate does late in a sweep says little of what it does from the "
                    "start, so each was trained with by itself.",
                ),
            ],
        )
        where = _write(project, "lr.html", page)
    lines = [
        page.headline,
        *page.lead,
        *words.swept(found),
        f"data:    {data}",
        f"page:    {where}",
    ]
    said = {
        "project": project.settings.name,
        **plain(found),
        "proposed": found.proposed,
        "better": verdict,
        "ends": {
            name: None if p.diverged else {"lr": found.planned * p.factor, "loss": p.loss}
            for name, p in probes.items()
        },
        "data": data,
        "page": where,
    }
    return Said(lines, said)


def batch_sizes_of_project(project: Project, *, noise: bool, say: Say) -> Said:
    """Find the batch sizes that fit and are fast, and that the gradient has a use for."""
    with _talking():
        say("reading the data")
        with planned_training(project) as (planned, data):
            from training_core.profiling.batch_sizes import find_batch_sizes
            from training_core.profiling.noise_scale import noise_along

            size = planned.settings.batch_size
            say("timing batch sizes")
            found = find_batch_sizes(
                planned, on_speed=lambda s: say(f"timing batch sizes: {s.batch_size} done")
            )
            say("measuring the gradient's noise")
            scales = noise_along(planned) if noise else []
        proposal = words.size_proposal(found, scales, size)
        said_of_noise = words.noise(scales, size) if noise else []
        page = Page(
            title="batch size",
            project=project.settings.name,
            when=datetime.now(UTC),
            data=data,
            headline=proposal,
            lead=[*words.sizes(found, size)],
            sections=[
                Section(
                    title="What the machine does",
                    pictures=[pictures.throughput(found, size)],
                    columns=("batch size", "examples a second", "a step"),
                    rows=[
                        (
                            f"{s.batch_size:,}",
                            f"{s.examples_per_second:,.0f}",
                            words.brief(s.seconds),
                        )
                        for s in found.speeds
                    ],
                ),
                *_noise_section(scales, said_of_noise),
            ],
        )
        where = _write(project, "batch_size.html", page)
    lines = [proposal, *page.lead, *said_of_noise, f"data:    {data}", f"page:    {where}"]
    said = {
        "project": project.settings.name,
        "planned": size,
        "sizes": plain(found),
        "knee": found.knee.batch_size,
        "noise": plain(scales),
        "proposal": proposal,
        "data": data,
        "page": where,
    }
    return Said(lines, said)


def _noise_section(scales: Any, said: list[str]) -> list[Section]:
    if not said:
        return []
    return [
        Section(
            title="What the gradient has a use for",
            pictures=[pictures.noise(scales)],
            words=said,
            aside="After McCandlish et al. 2018 (arXiv:1812.06162), unbiased, with a jackknife's "
            "standard error. A rule for plain SGD that leaves curvature out: with Adam and far "
            "into a training the size that pays may be some times larger. BatchNorm mixes the "
            "examples of a batch, which the rule knows nothing of.",
        )
    ]


def _write(project: Project, name: str, page: Page) -> str:
    store = project_store(project)
    store.put(f"{FOLDER}/{name}", render(page).encode())
    return location(store, f"{FOLDER}/{name}")


@contextmanager
def _talking() -> Iterator[None]:
    """What a task prints is talk, for stdout is data."""
    with redirect_stdout(sys.stderr):
        yield
