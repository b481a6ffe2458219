"""What the commands about the champion say."""

from __future__ import annotations

import json

from rich.table import Table
from rich.text import Text

from components.common.champion import (
    PromotionEntry,
    champion_and_previous,
    champion_entry,
    open_proposal,
    state_of,
)
from pipelines.show import DATA, TALK


def champion(entries: list[PromotionEntry], *, as_json: bool) -> None:
    """The model in production, the one before it, and what waits for a decision."""
    entry, proposal = champion_entry(entries), open_proposal(entries)
    previous = champion_and_previous(entries)[1]
    if as_json:
        said = {
            "champion": entry.version if entry else None,
            "previous": previous,
            "proposal": proposal.model_dump(mode="json") if proposal else None,
            "entry": entry.model_dump(mode="json") if entry else None,
        }
        print(json.dumps(said, indent=2))
        return
    if entry is None:
        print("there is no champion yet")
    else:
        print(f"champion: version {entry.version} (since {_time(entry)} UTC, run {entry.run})")
        print(f"reason:   {entry.reason}")
        print(f"previous: {previous or 'none'}")
        if entry.refit_of:
            print(f"weights:  {_weights(entry)}")
    if proposal is not None:
        print(f"proposed: version {proposal.version} (since {_time(proposal)} UTC)")
        print(f"because:  {proposal.reason}")
        if proposal.refit_of:
            print(f"weights:  {_weights(proposal)}")
        print(f"decide:   evertrain approve PROJECT --version {proposal.version}, or reject")


def history(entries: list[PromotionEntry], *, as_json: bool) -> None:
    """Everything that happened to the champion, and to what was proposed to follow it."""
    if as_json:
        print(json.dumps({"promotions": [e.model_dump(mode="json") for e in entries]}, indent=2))
        return
    table = Table()
    for column in ("number", "when (UTC)", "action", "version", "who", "reason"):
        table.add_column(column)
    for e in entries:
        when, reason = f"{e.when:%Y-%m-%d %H:%M:%S}", Text(e.reason)
        if e.refit_of:
            reason.append(f" [{_weights(e)}]")
        table.add_row(str(e.number), when, _action(entries, e), e.version, Text(e.who), reason)
    DATA.print(table) if entries else print("nothing was promoted yet")


def repaired(changed: dict[str, str | None]) -> None:
    """Aliases that lagged behind the log."""
    words = ", ".join(f"{alias}: {version or 'none'}" for alias, version in changed.items())
    if words:
        TALK.print(f"the registry's aliases were set from the log ({words})", markup=False)


def _action(entries: list[PromotionEntry], entry: PromotionEntry) -> str:
    if entry.action == "propose":
        return f"propose ({state_of(entries, entry)})"
    return f"{entry.action} {entry.of}" if entry.of else entry.action


def _weights(entry: PromotionEntry) -> str:
    """Of a version that was trained again after the verdict: which weights are which."""
    names = (entry.package, entry.refit_of)
    own, judged = (files.get("network.pt2", "unknown")[:12] for files in names)
    return f"{own}, trained again on all rows; judged were {judged}"


def _time(entry: PromotionEntry) -> str:
    return f"{entry.when:%Y-%m-%d %H:%M}"
