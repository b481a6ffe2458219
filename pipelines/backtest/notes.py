"""What a backtest keeps of each date, so that a killed one goes on where it was."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

_FILE = "notes.json"


class Note(BaseModel):
    """What became of a date.

    Attributes:
        run: Its run in the backtest's own store.
        run_key: That run's.
        outcome: `nothing`: no row had arrived since the date before.
        reason: The run's first one, or why there is no new model.
        model: Whether it left one.
        seconds: Of each step, also where a resumed run took it from the cache.
        code: Of our packages when it ran.
    """

    model_config = ConfigDict(extra="forbid")

    run: str
    run_key: str
    outcome: Literal["promoted", "held", "stopped", "failed", "nothing"]
    reason: str
    model: bool
    seconds: dict[str, float]
    code: str
    when: datetime = Field(default_factory=lambda: datetime.now(UTC))


class Notes(BaseModel):
    """All dates that are done, by their day."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["evertrain/backtest-notes/1"] = "evertrain/backtest-notes/1"
    dates: dict[str, Note] = Field(default_factory=dict)


def read_notes(folder: Path) -> Notes:
    """Read what is there; nothing is there before the first date is done."""
    file = folder / _FILE
    return Notes.model_validate_json(file.read_text()) if file.exists() else Notes()


def write_notes(folder: Path, notes: Notes) -> None:
    """Write them whole or not at all."""
    unfinished = folder / f"{_FILE}.unfinished"
    unfinished.write_text(notes.model_dump_json(indent=1))
    unfinished.replace(folder / _FILE)
