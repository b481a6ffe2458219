"""What `evertrain tune` says."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.table import Table

from components.report_run.formats import percent, plural, seconds
from components.tune.space import told
from pipelines.show import DATA, TALK

if TYPE_CHECKING:
    from components.common.tune_figures import TrialFigures, TuneFigures


@contextmanager
def progress(
    trials: int,
) -> Iterator[tuple[Callable[[TrialFigures], None], Callable[[str], None]]]:
    """Say each trial that ends in a line, and what is done beside."""
    began = time.monotonic()
    with TALK.status("searching"):

        def on_trial(trial: TrialFigures) -> None:
            value = "" if trial.value is None else f"{trial.value:.4f}"
            chosen = ", ".join(f"{p.rpartition('.')[2]} {told(v)}" for p, v in trial.values.items())
            TALK.print(
                f"trial {trial.number:>3} of {trials}  {trial.ended:<8} {value:>8}  {chosen}  "
                f"({seconds(time.monotonic() - began)} so far)",
                markup=False, soft_wrap=True,
            )  # fmt: skip

        def say(words: str) -> None:
            TALK.print(words, markup=False, soft_wrap=True)

        yield on_trial, say


def result(found: TuneFigures, page: str, patch: str, *, applied: bool, as_json: bool) -> None:
    """What was searched and found, the patch, and where the page is."""
    if as_json:
        said = found.model_dump(mode="json") | {"page": page, "patch": patch, "applied": applied}
        print(json.dumps(said, indent=2))
        return
    table = Table(title=f"{found.project}: {_counts(found)}, {seconds(found.seconds)}")
    for name in ("setting", "role", "searched", "present", "best", "importance", "boundary"):
        table.add_column(name, overflow="fold")
    best = next((t for t in found.trials if t.number == found.winner), None)
    for each in found.dimensions:
        table.add_row(
            each.path, each.role, each.range, told(each.present),
            "" if best is None else told(best.values[each.path]),
            "" if each.importance is None else percent(each.importance), each.advice,
        )  # fmt: skip
    DATA.print(table)
    for words in [found.enough, *found.notes]:
        DATA.print(words, markup=False, soft_wrap=True)
    for curve in found.curves:
        DATA.print(
            f"trial {curve.trial}, {curve.finding}: {curve.words}. Try: {curve.advice}",
            markup=False, soft_wrap=True,
        )  # fmt: skip
    DATA.print(patch or "nothing is proposed", markup=False, soft_wrap=True)
    if patch:
        after = (
            "written into evertrain.yaml" if applied else "--apply writes it into evertrain.yaml"
        )
        DATA.print(after, markup=False)
    DATA.print(page, markup=False, soft_wrap=True)


def _counts(found: TuneFigures) -> str:
    ends = [each.ended for each in found.trials]
    kinds = [f"{ends.count(k)} {k}" for k in ("pruned", "diverged", "failed") if k in ends]
    return plural(len(ends), "trial") + (f" ({', '.join(kinds)})" if kinds else "")
