"""Several preparations of the same rows, for a package whose members have each their own.

This file imports nothing of the project: a package of several preparations carries the members'
source with this behind it.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import pandas as pd

JOINED = "evertrain/joined/1"


class JoinedPreprocessor:
    """Prepares rows once for each of several fitted preprocessors.

    Args:
        members: All of one class, fitted; arrays of member 2 get names such as `m2_numbers`.
    """

    def __init__(self, members: list[Any]) -> None:
        self.members = members

    @property
    def columns(self) -> list[str]:
        """Raw columns that any of them reads."""
        named = [column for member in self.members for column in member.columns]
        return list(dict.fromkeys(named))

    def fit(self, train: pd.DataFrame) -> JoinedPreprocessor:
        """Return itself: its members are fitted."""
        return self

    def transform(self, frame: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        """Turn N raw rows into the arrays of every member."""
        return {
            f"m{place}_{name}": array
            for place, member in enumerate(self.members)
            for name, array in member.transform(frame).items()
        }

    def state_dict(self) -> dict[str, Any]:
        """The members' states, and the name of their class."""
        return {
            "format": JOINED,
            "class": type(self.members[0]).__name__,
            "members": [member.state_dict() for member in self.members],
        }

    @classmethod
    def from_state_dict(cls, state: dict[str, Any], kind: Any = None) -> JoinedPreprocessor:
        """Rebuild it.

        Args:
            state: As `state_dict` gave it.
            kind: The members' class; None: the one of that name beside this one in the file.
        """
        kind = kind or globals()[state["class"]]
        return cls([kind.from_state_dict(each) for each in state["members"]])
