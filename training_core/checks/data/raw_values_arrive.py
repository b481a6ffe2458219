"""What raw lists, texts and images hold arrives in the tensors, as far as there is room for it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from training_core.checks.contract import Check, Finding, NotApplicable
from training_core.checks.data.axes import of_axes
from training_core.checks.data.elements import Reach, elements_of, reach_of
from training_core.checks.data.first_words import words_as_padding
from training_core.checks.data.frames import copy_of, is_plain, sample_of
from training_core.checks.data.joined import joined_texts
from training_core.checks.data.nested import key_of
from training_core.checks.data.patches import of_patches
from training_core.checks.data.problem import Problem
from training_core.checks.subject import Subject

_ROWS, _ALL = 64, 2_000  # looked at first; and where nothing changes in these
_MOST = 0.5  # of the rows, and of an array's room
_ONE_END = 0.9  # of a row's elements that follow a cut: one may be twice the same token
_ANY = 2  # elements lost: a language model never reads the last one


class RawValuesArrive(Check):
    """Metamorphic: another cell, and another element of a list, must change the tensors.

    Columns of one value a cell are looked at by `inputs_before_network`. That long lists are cut
    is common, and a warning where most is lost; that they are cut while most of the array is
    constant is a fault, since there was room.
    """

    name = "raw_values_arrive"
    looks_at = "lists, texts and images arrive in the tensors, and are cut only for want of room"

    def look(self, subject: Subject) -> Finding:
        columns = _columns(subject)
        if not columns:
            raise NotApplicable("no raw column holds lists, texts or images")
        warning = None
        said = []
        for column in columns:
            if all(_is_dead(subject, column, count=count) for count in (_ROWS, _ALL)):
                return self.failed(
                    f"column {column!r} can be exchanged between rows, and no tensor changes",
                    advice="let transform read it, or take it out of columns",
                    measured=0.0,
                )
            scrambled = _axes(subject, column)
            if scrambled is not None:
                return self.failed(
                    scrambled.message, advice=scrambled.advice,
                    measured=scrambled.measured, limit=scrambled.limit,
                )  # fmt: skip
            joined = _joined(subject, column)
            if joined:
                return self.failed(
                    joined,
                    advice="look at what cleaning leaves of them: other alphabets, capitals, signs",
                )
            patches = _patches(subject, column)
            if patches is not None:
                finding = (self.failed if patches.fails else self.warned)(
                    patches.message, advice=patches.advice,
                    measured=patches.measured, limit=patches.limit,
                )  # fmt: skip
                if patches.fails:
                    return finding
                warning = warning or finding
            reach = _reach(subject, column)
            if reach is None:
                continue
            padding = _as_padding(subject, column, reach)
            if padding:
                return self.failed(
                    f"{padding}: the network cannot tell it from nothing",
                    advice="begin the vocabulary behind the numbers of padding and unknown words",
                )
            lost = _lost(reach)
            median = float(np.median(reach.lengths))
            share = float(np.mean(1 - lost))
            said.append(f"{share:.0%} of the elements of {column!r}")
            cut = float((lost * reach.lengths >= _ANY).mean())
            unused, where = _unused(subject, reach)
            message = (
                f"{share:.0%} of the elements of {column!r} arrive (a cell has {median:g} in the "
                f"median): the rest of {cut:.0%} of rows is cut off"
            )
            if cut >= _MOST and unused >= _MOST:
                return self.failed(
                    f"{message}, while {unused:.0%} of {where!r} is the same in all rows",
                    advice="use the room of the array, or look for what cuts the cells",
                    measured=share, limit=1.0,
                )  # fmt: skip
            several = np.mean([arrives.sum() >= _ANY for arrives in reach.arrives]) > _MOST
            if several and float((lost > _MOST).mean()) > _MOST:
                warning = warning or self.warned(
                    message, advice="take longer arrays, or the end that tells more",
                    measured=share, limit=_MOST,
                )  # fmt: skip
        if warning is not None:
            return warning
        return self.passed(
            f"{', '.join(said)} arrive" if said else f"{', '.join(columns)}: cells arrive"
        )


def _columns(subject: Subject) -> list[str]:
    """Return the raw columns of lists, arrays and texts of several words."""
    rows = subject.train
    found = []
    for column in dict.fromkeys(subject.preprocessor.columns):
        if column not in rows.columns:
            continue
        values = rows[column].dropna()
        if not len(values):
            continue
        words = [elements_of(cell) or [] for cell in values[:50] if isinstance(cell, str)]
        if not is_plain(values) or (words and np.median([len(w) for w in words]) >= 2):
            found.append(str(column))
    return found


def _is_dead(subject: Subject, column: str, *, count: int) -> bool:
    """Say whether lists, or arrays, of other rows change no tensor of any row."""
    if is_plain(subject.train[column].dropna()):
        return False
    rows = sample_of(subject.train, count, seed=2).reset_index(drop=True)
    cells = list(rows[column])
    if len({key_of(cell) for cell in cells}) < min(8, len(cells)):
        return False  # hardly any that differ
    moved = copy_of(rows)
    moved[column] = pd.Series([*cells[1:], cells[0]], index=rows.index, dtype=rows[column].dtype)
    own = subject.preprocessor.transform(copy_of(rows))
    other = subject.preprocessor.transform(moved)
    return all(
        own[name].shape == other[name].shape
        and np.array_equal(own[name], other[name], equal_nan=own[name].dtype.kind == "f")
        for name in own
    )


def _reach(subject: Subject, column: str) -> Reach | None:
    try:
        return reach_of(subject.preprocessor, subject.train, column)
    except Exception:  # noqa: BLE001 (texts of a form, such as dates, may not be mixed)
        return None


def _joined(subject: Subject, column: str) -> str:
    try:
        return joined_texts(subject.preprocessor, subject.train, column)
    except Exception:  # noqa: BLE001 (a text may have to fit to the rest of its row)
        return ""


def _as_padding(subject: Subject, column: str, reach: Reach) -> str:
    try:
        return words_as_padding(subject.preprocessor, subject.train, column, reach.arrays)
    except Exception:  # noqa: BLE001 (texts of a form may not be of two words)
        return ""


def _axes(subject: Subject, column: str) -> Problem | None:
    try:
        return of_axes(subject.preprocessor, subject.train, column)
    except Exception:  # noqa: BLE001 (the user's code may refuse such cells)
        return None


def _patches(subject: Subject, column: str) -> Problem | None:
    try:
        return of_patches(subject, column)
    except Exception:  # noqa: BLE001 (the user's code may refuse such cells)
        return None


def _lost(reach: Reach) -> npt.NDArray[np.float64]:
    """Return the share of each row's elements that a cut at one end loses, float64 [rows]."""
    shares = []
    for arrives in reach.arrives:
        kept = int(arrives.sum())
        is_cut = kept == 0 or max(arrives[:kept].mean(), arrives[-kept:].mean()) >= _ONE_END
        shares.append(1 - kept / len(arrives) if is_cut and len(arrives) else 0.0)
    return np.array(shares)


def _unused(subject: Subject, reach: Reach) -> tuple[float, str]:
    """Return the largest share of positions that are constant, of arrays that the cells fill."""
    found = (0.0, "")
    for name in reach.arrays:
        array = subject.examples.arrays[name]
        rows = array.flatten(2) if array.ndim > 2 else array.unsqueeze(2)
        constant = (rows == rows[:1]).all(0).all(1)
        found = max(found, (float(constant.double().mean()), name))
    return found
