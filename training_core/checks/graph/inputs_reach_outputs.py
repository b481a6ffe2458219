"""Every array and every column of it reaches the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding, Heat, NotApplicable
from training_core.checks.graph.calling import after_training, change, listed, outputs_of, place_of
from training_core.checks.graph.inputs import Donors, Input, donors_of, inputs_of
from training_core.checks.graph.own_position import OWN, misplaced
from training_core.checks.graph.positions_reached import MANY, Unread, leaping, unread_positions
from training_core.checks.graph.told_apart import not_told_apart
from training_core.checks.subject import Subject
from training_core.examples import Examples

FIRST, THOROUGH = 4, 48  # rows in which an input is replaced; many where it seemed dead
SEEDS = (0, 1)  # untrained networks looked at besides the trained one
MOST = 4_096  # rows of one round over all inputs, above FIRST each
ELEMENTS = 2_000_000  # of a call's arrays
CHARTED = 40
NEARLY_ALL = 0.75  # of an array's positions: so little is read on purpose of a shorter array


@dataclass(frozen=True)
class Replaceable:
    """An input that is not the same in all rows."""

    input: Input
    donors: Donors


class InputsReachOutputs(Check):
    name = "inputs_reach_outputs"
    looks_at = "replacing the values of any column, position or channel changes outputs"

    def look(self, subject: Subject) -> Finding:
        examples = subject.examples
        inputs = inputs_of(examples, subject.preprocessor)
        found = {each: donors_of(each, examples) for each in inputs}
        moving = [Replaceable(each, donors) for each, donors in found.items() if donors]
        constant = [each.label for each, donors in found.items() if donors is None]
        if not moving:
            raise NotApplicable("every input is the same in all rows of the sample")
        trained = after_training(subject)
        heat = _influences(trained, examples, moving, rows=FIRST)
        unmoved = [each for each, row in zip(moving, heat, strict=True) if float(row.max()) == 0]
        dead = _dead(subject, [trained, *map(subject.build, SEEDS)], unmoved)
        chart = _chart(moving, heat, dead)
        said = f"; constant in the sample: {listed(constant)}" if constant else ""
        if dead:
            return self._dead(dead, inputs, constant, trained, chart)
        unread = unread_positions([trained, subject.build(SEEDS[1]).eval()], examples)
        if unread:
            return self._unread(unread, trained, chart)
        moved = self._misplaced(subject, trained, chart)
        if moved is not None:
            return moved
        alike = not_told_apart(subject, trained)
        if alike:
            names = {column.raw: None for pair in alike for column in pair}
            one, other = (column.raw for column in alike[0])
            return self.failed(
                f"the network cannot tell {listed(list(names))} apart: exchanging the indices of "
                f"{one!r} and {other!r} changes no output, though each of them alone does, and "
                "though the same index is another value in each",
                advice="add each column's offset to its indices into a shared table, or give each "
                "a table of its own",
                measured=len(alike),
                limit=0.0,
                heat=chart,
            )
        empty = [name for name in examples.arrays if _mostly(name, inputs, constant)]
        if empty:
            return self.warned(
                f"more than half of {listed(empty)} is the same in all {len(examples)} rows{said}",
                advice="see that nothing is cut off before, and that the right columns are read",
                measured=len(constant),
                heat=chart,
            )
        return self.passed(
            f"each of {len(moving)} inputs reaches the outputs{said}", measured=0, heat=chart
        )

    def _misplaced(self, subject: Subject, trained: nn.Module, chart: Heat) -> Finding | None:
        if subject.task.kind != "sequence":
            return None
        found = misplaced([trained, subject.build(SEEDS[1]).eval()], subject.examples)
        if found is None:
            return None
        image = subject.examples.arrays[found.array].ndim == 4
        was, viewed = ("[N, C, H, W]", "[N, H*W, C]") if image else ("[N, C, T]", "[N, T, C]")
        by = "permute(0, 2, 3, 1).flatten(1, 2)" if image else "transpose(1, 2)"
        return self.failed(
            f"outputs do not look at their own positions of {found.array!r}: {was} was viewed as "
            f"{viewed}",
            advice=f"move the classes to the end, as {by} does; a view leaves all where it is",
            measured=found.own,
            limit=OWN,
            heat=chart,
        )

    def _unread(self, unread: list[Unread], model: nn.Module, chart: Heat) -> Finding:
        """Fail where a stride leaps over them, or few are left; a part cut away may be meant."""
        most = max(unread, key=lambda each: (each.inside, each.share))
        message = f"{most.share:.0%} of the positions of {most.array!r} never reach the outputs"
        told = {"measured": most.share, "limit": MANY, "heat": chart}
        culprits = leaping(model) if most.inside else []
        if culprits:
            places = listed([place_of(model, name) for name in culprits])
            return self.failed(
                f"{message}: strides are longer than what is read at each step, in {places}",
                advice="see that kernel size and stride are not in each other's place",
                **told,
            )
        advice = "see that what is cut away or left out is meant to be"
        if most.share >= NEARLY_ALL:
            return self.failed(message, advice=advice, **told)
        return self.warned(message, advice=advice, **told)

    def _dead(
        self,
        dead: list[Input],
        inputs: list[Input],
        constant: list[str],
        model: nn.Module,
        chart: Heat,
    ) -> Finding:
        labels = [each.label for each in dead]
        whole = [
            name
            for name in {each.array: None for each in dead}
            if all(e in dead or e.label in constant for e in inputs if e.array == name)
        ]
        what = f"all of {listed(whole)}: " if whole else ""
        message = (
            f"{len(dead)} of {len(inputs)} inputs never reach the outputs ({what}{listed(labels)}):"
            f" replaced in {THOROUGH} rows of a trained and {len(SEEDS)} untrained networks, they "
            "changed nothing"
        )
        told = {"measured": len(dead), "limit": 0.0, "heat": chart}
        if _left_by_strides(dead, inputs, model):
            return self.warned(
                message,
                advice="pad the inputs, if strides should not leave out the last ones",
                **told,
            )
        return self.failed(
            message, advice="let the network read them, or take them out of the inputs", **told
        )


def _dead(subject: Subject, models: Sequence[nn.Module], unmoved: list[Replaceable]) -> list[Input]:
    """Return the inputs that move no output of any model in many rows.

    ReLU networks are flat in places, and a layer that starts at zero lets nothing through before it
    is trained; a dead input is so everywhere.
    """
    for model in models:
        if not unmoved:
            break
        rows = max(FIRST, min(THOROUGH, MOST // len(unmoved)))
        heat = _influences(model.eval(), subject.examples, unmoved, rows=rows)
        unmoved = [each for each, row in zip(unmoved, heat, strict=True) if float(row.max()) == 0]
    return [each.input for each in unmoved]


def _influences(
    model: nn.Module, examples: Examples, inputs: list[Replaceable], *, rows: int
) -> Tensor:
    """Return how far outputs move on average when inputs are replaced: float32 [inputs, outputs].

    Each input is replaced in rows of its own, so that one call serves many.
    """
    generator = torch.Generator().manual_seed(rows)
    width = sum(array[0].numel() for array in examples.arrays.values())
    together = max(1, min(256, ELEMENTS // (rows * max(1, width))))
    found = []
    for start in range(0, len(inputs), together):
        part = inputs[start : start + together]
        chosen = torch.randint(0, len(examples), (len(part) * rows,), generator=generator)
        before = examples.take(chosen)
        after = before.clone()
        for place, each in enumerate(part):
            block = slice(place * rows, (place + 1) * rows)
            values = each.input.of(after)[block]
            donors = each.donors.for_rows(values.reshape(rows, -1))
            each.input.of(after)[block] = each.input.of(examples)[donors]
        moved = change(outputs_of(model, before), outputs_of(model, after))
        moved = moved.reshape(*moved.shape[:2], -1).amax(2) if moved.ndim > 2 else moved
        found.append(moved.reshape(len(part), rows, -1).mean(1))
    return torch.cat(found)


def _left_by_strides(dead: list[Input], inputs: list[Input], model: nn.Module) -> bool:
    """Say whether only last positions are dead that a stride can have left out."""
    strides = [1]
    for module in model.modules():
        stride = getattr(module, "stride", 1)
        strides.append(max(stride) if isinstance(stride, tuple) else int(stride or 1))
    for name in {each.array for each in dead}:
        places = sorted(each.place for each in dead if each.array == name)
        count = sum(each.array == name for each in inputs)
        tail = places == list(range(count - len(places), count))
        if not tail or not len(places) < max(strides) or len(places) == count:
            return False
    return True


def _mostly(name: str, inputs: list[Input], labels: list[str]) -> bool:
    """Say whether more than half of an array's inputs are among some labels."""
    own = [each.label for each in inputs if each.array == name]
    return sum(label in labels for label in own) > len(own) / 2


def _chart(inputs: list[Replaceable], heat: Tensor, dead: list[Input]) -> Heat:
    """Draw the first inputs, those that are dead before all others."""
    chosen = sorted(range(len(inputs)), key=lambda i: inputs[i].input not in dead)[:CHARTED]
    values = heat[sorted(chosen), :CHARTED].nan_to_num(posinf=0.0)
    names = [f"output {i}" for i in range(values.shape[1])]
    return Heat(
        rows=[inputs[i].input.label for i in sorted(chosen)],
        columns=names if len(names) > 1 else ["output"],
        values=values.tolist(),
    )
