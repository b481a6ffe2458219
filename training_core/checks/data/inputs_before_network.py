"""The tensors just before the network: form, finite numbers, scale, and what became of raw ones."""

from __future__ import annotations

from training_core.checks.contract import Check, Finding
from training_core.checks.data import problems
from training_core.checks.data.alignment import of_alignment
from training_core.checks.data.arrays import column_name, flat, thinned
from training_core.checks.data.arrivals import of_responses
from training_core.checks.data.as_trained import of_regularisation, with_trained
from training_core.checks.data.levels import of_levels
from training_core.checks.data.pictures import SHOWN, samples_of
from training_core.checks.data.scales import Scales
from training_core.checks.data.singles import of_singles
from training_core.checks.data.squeezed import of_noise, of_stand_ins
from training_core.checks.data.standardising import of_standardising
from training_core.checks.data.target import of_target
from training_core.checks.data.unknown import of_nulls, of_unknown
from training_core.checks.data.unseen import of_unseen
from training_core.checks.subject import Subject
from training_core.feeds.order import order

_TABLE = 40  # columns in the table of the finding


class InputsBeforeNetwork(Check):
    """Look at the data right before the net: Karpathy, A Recipe for Training Neural Networks.

    Its samples show raw rows beside what the network gets of them, also in training where
    `training.regularisation` changes that.
    """

    name = "inputs_before_network"
    looks_at = "what arrives at the network is finite, of a sane scale, and still what the rows say"

    def look(self, subject: Subject) -> Finding:
        found = []
        for look in (
            problems.of_form,
            problems.of_indices,
            problems.of_scale,
            problems.of_splits,
            of_target,
            of_alignment,
            of_unseen,
            of_nulls,
            of_unknown,
            of_noise,
            of_stand_ins,
            of_levels,
            of_singles,
            of_responses,
            of_standardising,
            of_regularisation,
        ):
            found += list(look(subject))
            if any(problem.fails for problem in found):
                break
        shown = order(seed=4, epoch=0, count=len(subject.train))[:SHOWN].tolist()
        samples = samples_of(subject, shown)
        if not any(problem.fails for problem in found):
            samples = with_trained(subject, shown[:SHOWN], samples)
        said = {"table": _table(subject), "samples": samples}
        found.sort(key=lambda problem: not problem.fails)
        if not found:
            arrays = subject.examples.arrays
            return self.passed(f"{len(arrays)} arrays of {len(subject.examples)} rows", **said)
        first, *others = found
        message = first.message
        if others:
            message += f"; also: {others[0].message}"
        say = self.failed if first.fails else self.warned
        return say(message, advice=first.advice, measured=first.measured, limit=first.limit, **said)


def _table(subject: Subject) -> list[dict[str, str | float]]:
    """One line a column, or a whole array of more columns than a page holds."""
    lines: list[dict[str, str | float]] = []
    for name, array in thinned(subject.examples).items():
        columns = flat(array)
        one_by_one = columns.shape[1] <= _TABLE
        pieces = columns.T if one_by_one else [columns.ravel()]
        for place, values in enumerate(pieces):
            scales = Scales.of(values[:, None])
            what = column_name(subject.preprocessor, name, tuple(array.shape), place)
            lines.append(
                {
                    "column": what if one_by_one else f"{name} {list(array.shape[1:])}",
                    "type": str(array.dtype).removeprefix("torch."),
                    "mean": float(scales.mean[0]),
                    "deviation": float(scales.deviation[0]),
                    "smallest": float(scales.low[0]),
                    "largest": float(scales.high[0]),
                    "zeros": float((values == 0).mean()),
                }
            )
    return lines[:_TABLE]
