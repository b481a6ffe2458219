"""Which of the kinds are tried when; each takes a second or two.

`make test` tries the first of each outcome in each family, and a few harmless changes; `make smoke`
every third of the others; `make prove-bad-data` tries all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.corruptions.benign import BENIGN, Benign
from tests.corruptions.catalogue import of_families
from tests.corruptions.kinds import Corruption

EVERY = 3
FEW = 9


def corruptions(*families: str) -> list[Any]:
    """Parameters of a test: the first of each outcome in each family, and of the others a third."""
    kinds = of_families(*families)
    first = list({(kind.family, kind.outcome): kind for kind in reversed(kinds)}.values())
    return _marked(kinds, first)


def harmless_changes() -> list[Any]:
    """Parameters of a test: a few, and of the others a third."""
    return _marked(BENIGN, BENIGN[::FEW])


def _marked(cases: Sequence[Corruption | Benign], in_any_case: Sequence[Any]) -> list[Any]:
    third = cases[::EVERY]
    return [
        pytest.param(case, id=_name(case), marks=[] if case in in_any_case else pytest.mark.smoke)
        for case in cases
        if case in in_any_case or case in third
    ]


def _name(case: Corruption | Benign) -> str:
    return f"{case.family}-{case.name}" if isinstance(case, Corruption) else case.name
