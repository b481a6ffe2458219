"""What `evertrain deploy` says: the plan, what was done, a run as it goes, and its end."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from pipelines.cron import parse_cron
from pipelines.deploy.deploying import Prepared
from pipelines.deploy.follow import Outcome, as_data
from pipelines.deploy.plan import Line
from pipelines.show import DATA, TALK

_MARKS = {
    "create": "+", "upload": "+", "replace": "~", "enable": "~", "disable": "~", "remove": "-",
    "keep": "=", "leave": "·",
}  # fmt: skip
_NEXT = 3


def plan(prepared: Prepared, *, as_json: bool) -> None:
    """What will be done, and what is warned of; as talk where stdout is for JSON."""
    for warning in prepared.warnings:
        TALK.print(f"warning: {warning}", markup=False, soft_wrap=True)
    if as_json:
        return
    kubeflow, package = prepared.kubeflow, prepared.package
    where = f"{kubeflow.host}, namespace {kubeflow.namespace or 'none: not multi-user'}"
    table = Table(title=f"plan for {where}", title_justify="left", show_header=False)
    for line in prepared.plan.lines:
        words = f"{_MARKS[line.kind]} {line.kind}"
        table.add_row(Text(words), Text(line.what), Text(line.name), Text(_said(line)))
    DATA.print(table)
    if package is not None:
        DATA.print(f"image:    {package.image}", markup=False)
        DATA.print(f"project:  {package.project}, in the image", markup=False)
        DATA.print(f"store:    {package.store}", markup=False)
    for name, times in firings(prepared).items():
        DATA.print(f"next:     {name} at {', '.join(times)}", markup=False, soft_wrap=True)
    if not prepared.plan.to_do:
        DATA.print("nothing to do: Kubeflow has what the file says")


def _said(line: Line) -> str:
    changes = [f"{name}: {_short(now)} → {_short(then)}" for name, now, then in line.changes]
    return "\n".join([*([line.why] if line.why else []), *changes])


def _short(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def firings(prepared: Prepared) -> dict[str, list[str]]:
    """The next times of each schedule that fires."""
    settings = prepared.project.settings
    if prepared.package is None:
        return {}
    now, zone = datetime.now(UTC), settings.cluster.timezone
    return {
        each.name: [
            f"{at:%Y-%m-%d %H:%M:%S} UTC"
            for at in parse_cron(each.cron, zone=zone).firings(now, count=_NEXT)
        ]
        for each in settings.schedules
        if each.enabled
    }


def done(words: str) -> None:
    """One thing that was done."""
    TALK.print(words, markup=False, soft_wrap=True)


def state(step: str, now: str) -> None:
    """A step that changed its state, as Kubeflow sees it."""
    TALK.print(f"{datetime.now(UTC):%H:%M:%S} {step:<18} {now}", markup=False)


def log_line(step: str, line: str) -> None:
    """A line that a step's pod printed."""
    print(f"         {step:<18} {line}", file=sys.stderr)


def no_logs(why: str, run: str, namespace: str) -> None:
    """Why there are no logs here, and where they are."""
    place = f" -n {namespace}" if namespace else ""
    TALK.print(
        f"no logs from here: {why}\nhint: kubectl{place} logs -f -c main -l pipeline/runid={run}",
        markup=False,
        soft_wrap=True,
    )


def result(
    prepared: Prepared, *, applied: bool, run: str, outcome: Outcome | None, as_json: bool
) -> None:
    """The end: what was planned and whether it was done, and how the run ended."""
    if as_json:
        _as_json(prepared, applied=applied, run=run, outcome=outcome)
        return
    if outcome is None:
        return
    DATA.print(f"run:      {outcome.run}", markup=False)
    DATA.print(f"outcome:  {outcome.words}", markup=False)
    for reason in outcome.reasons:
        DATA.print(f"reason:   {reason}", markup=False, soft_wrap=True)
    if outcome.hint:
        DATA.print(f"hint:     {outcome.hint}", markup=False, soft_wrap=True)


def _as_json(prepared: Prepared, *, applied: bool, run: str, outcome: Outcome | None) -> None:
    package = prepared.package
    said = {
        "host": prepared.kubeflow.host,
        "namespace": prepared.kubeflow.namespace,
        "image": package.image if package else "",
        "store": package.store if package else "",
        "digest": package.digest if package else "",
        "plan": [
            {
                "do": line.kind, "what": line.what, "name": line.name, "why": line.why,
                "changes": [
                    {"what": name, "now": now, "wanted": then} for name, now, then in line.changes
                ],
            }
            for line in prepared.plan.lines
        ],
        "next": firings(prepared),
        "warnings": list(prepared.warnings),
        "to_do": prepared.plan.to_do,
        "applied": applied,
        "run": run,
        "outcome": as_data(outcome) if outcome else None,
    }  # fmt: skip
    print(json.dumps(said, indent=2))
