"""The page of a profile."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from components.common.project import Project
from components.report_run.formats import number, percent
from pipelines.profiling import pictures, words
from pipelines.profiling.page import Page, Section

if TYPE_CHECKING:
    from training_core.profiling.advice import Bar
    from training_core.profiling.estimate import Estimate
    from training_core.profiling.result import Profile
    from training_core.profiling.trying import Tried


def profile_page(
    project: Project,
    data: str,
    found: Profile,
    longest: list[Bar],
    run: Estimate,
    tried: list[Tried],
    trace: str,
) -> Page:
    """Return it; `data` and `trace` say what was measured on, and where the trace is."""
    limits = ", ".join(
        f"{words.LIMITS[name]} {percent(share)}"
        for name, share in sorted(found.limits.items(), key=lambda each: -each[1])
    )
    phases = [
        (name, words.brief(seconds), percent(seconds / found.seconds))
        for name, seconds in found.phases.items()
    ]
    work = sorted(found.work.items(), key=lambda each: -found.traced.operations.get(each[0], 0.0))
    operations = [
        (
            name,
            f"{each.calls:g}",
            number(each.flops / 1e6),
            number(each.bytes / 1e6),
            words.brief(found.traced.operations.get(name, 0.0)),
        )
        for name, each in work
    ]
    compiled = "With training.compile operations are fused; they were told apart without it."
    return Page(
        title="profile",
        project=project.settings.name,
        when=datetime.now(UTC),
        data=data,
        headline=words.headline(found),
        lead=[words.steps(found), f"Of a step: {limits}."],
        sections=[
            Section(
                title="What a step is spent on, and what to try",
                pictures=[pictures.step_bars(found)],
                items=[words.bar(bar) for bar in longest],
                aside=compiled if found.compiled else "",
            ),
            *_tried_section(tried),
            Section(
                title="Waits, prints and lines",
                words=["" if found.syncs else "No line makes the host wait for the device."],
                items=[words.wait(s) for s in found.syncs] + [words.line(h) for h in found.hot],
                aside="A wait costs little on a CPU; a GPU runs dry behind it, and torch.compile "
                "breaks its graph there. A line's share is with all that it calls.",
            ),
            Section(
                title="Against the machine",
                pictures=[pictures.roofline(found)],
                words=[words.roofline(found), words.gap(found), words.memory(found)],
            ),
            Section(title="The whole planned run", words=words.run(run)),
            Section(
                title="Phases",
                columns=("phase", "of a step", "share"),
                rows=phases,
                aside="As the host saw them: feed, augmentation, copying to the device, forward, "
                "loss, backward, update, and the loop around them.",
            ),
            Section(
                title="Operations",
                columns=("operation", "calls a step", "MFLOPs", "MB moved", "time, profiled"),
                rows=operations,
                aside=f"The trace for Perfetto (https://ui.perfetto.dev): {trace}",
            ),
        ],
    )


def _tried_section(tried: list[Tried]) -> list[Section]:
    if not tried:
        return []
    rows = [
        (str(t.change), t.failed or f"{t.ratio:.2f}", f"{t.low:.2f} to {t.high:.2f}", t.verdict)
        for t in tried
    ]
    return [
        Section(
            title="Tried and measured",
            columns=("setting", "examples a second, ratio", "in the rounds", "verdict"),
            rows=rows,
            items=[f"{t.change}: mind {t.change.care}" for t in tried if t.change.care],
            aside="Each by itself against the settings as they are, a few steps in turn, round "
            "after round; the ratio is the median's, and of nine rounds the second least and the "
            "second most hold it in 96 of 100 cases. Speed alone: not how well it learns.",
        )
    ]
