"""No output position of a sequence sees the answer that it must give."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training_core.checks.contract import Check, Finding, Heat, NotApplicable
from training_core.checks.graph.answers import Answer, answers_in, real_lengths
from training_core.checks.graph.calling import after_training, change, largest, outputs_of
from training_core.checks.subject import Subject
from training_core.examples import Examples
from training_core.task import PADDING

ROWS = 4  # sequences looked at, the longest
WINDOW = 16  # input positions replaced at the beginning, in the middle and at the end
SHARE = 1e-5  # of the largest output; what is masked moves nothing at all
AT_ONCE = 64  # sequences a call
CHARTED = 40


@dataclass(frozen=True)
class Reach:
    """What depends on what.

    Attributes:
        positions: Input positions that were replaced.
        moved: How far outputs moved as a share of the largest, float32 [positions, outputs].
        ahead: How many positions ahead of itself an output sees at most; None: it sees nothing.
        example: An output position that sees so far.
    """

    positions: list[int]
    moved: Tensor
    ahead: int | None
    example: int


class FutureDoesNotReachPast(Check):
    name = "future_does_not_reach_past"
    looks_at = "an output of a sequence sees all inputs up to its answer, and not the answer"

    def look(self, subject: Subject) -> Finding:
        if subject.task.kind != "sequence":
            raise NotApplicable(f"a {subject.task.kind} task has no positions to predict")
        model = after_training(subject)
        shape = outputs_of(model, subject.batch(2)).shape[1:]
        answers = answers_in(subject.examples, subject.task, outputs=shape)
        if not answers:
            raise NotApplicable(
                "the targets do not occur in the inputs, at any distance: nothing could be copied"
            )
        findings = [self._look_at(model, subject.examples, answer) for answer in answers]
        return min(findings, key=lambda finding: finding.verdict != "fail")

    def _look_at(self, model: nn.Module, examples: Examples, answer: Answer) -> Finding:
        reach = _reach(model, examples, answer)
        heat = _chart(reach, answer)
        where = f"the answer of output t is {answer.array}[t{answer.lead:+d}]"
        if reach.ahead is None:
            return self.warned(
                f"{where}, but no output depends on any of {answer.array}",
                advice=f"see that the network reads {answer.array}",
                heat=heat,
            )
        distance = answer.lead - reach.ahead
        told = {"measured": float(distance), "limit": 1.0, "heat": heat}
        sees = f"output {reach.example} depends on {answer.array}[{reach.example + reach.ahead}]"
        if distance < 1:
            return self.failed(
                f"{where} in {answer.agreement:.1%} of all places, and it is seen: {sees}",
                advice="mask what comes after each position (is_causal, a causal mask, padding on "
                "the left of convolutions), and take the next token as target, not the same",
                **told,
            )
        if distance > 1:
            return self.failed(
                f"{where} in {answer.agreement:.1%} of all places, but outputs see no further than "
                f"{answer.array}[t{reach.ahead:+d}]: {distance - 1} tokens between are skipped",
                advice="shift the target by one position, not more, and do so in one place only",
                **told,
            )
        return self.passed(f"{where}; outputs see up to the token before it and no further", **told)


def _reach(model: nn.Module, examples: Examples, answer: Answer) -> Reach:
    """Replace input tokens one at a time, and see which outputs move."""
    lengths = real_lengths(examples.arrays[answer.array])
    chosen = lengths.argsort(descending=True, stable=True)[:ROWS]
    rows, shortest = examples.take(chosen), int(lengths[chosen].min())
    positions = _windows(max(1, shortest))
    before = outputs_of(model, rows)
    moved = torch.zeros(len(positions), before.shape[1])
    changed = [_replaced(examples, rows, answer.array, q, shortest) for q in positions]
    together = max(1, AT_ONCE // len(rows))
    for start in range(0, len(positions), together):
        part = changed[start : start + together]
        batch = Examples(
            {name: torch.cat([each.arrays[name] for each in part]) for name in rows.arrays},
            torch.cat([each.target for each in part]),
        )
        same = rows.take(torch.arange(len(rows)).repeat(len(part)))
        moves = change(outputs_of(model, same), outputs_of(model, batch)).flatten(2).amax(2)
        moves = torch.where(_with_answer(rows, answer).repeat(len(part), 1), moves, 0.0)
        moved[start : start + together] = moves.reshape(len(part), len(rows), -1).amax(1)
    moved = (moved / max(largest(before), 1e-30)).clamp(max=1.0)
    seen = (moved > SHARE).nonzero()
    if not len(seen):
        return Reach(positions, moved, None, 0)
    ahead = torch.tensor(positions)[seen[:, 0]] - seen[:, 1]
    furthest = int(ahead.argmax())
    return Reach(positions, moved, int(ahead[furthest]), int(seen[furthest, 1]))


def _with_answer(rows: Examples, answer: Answer) -> Tensor:
    """Say which outputs have an answer that counts, bool [N, outputs]."""
    real = rows.target != PADDING
    places = torch.arange(answer.outputs) - answer.shift
    inside = (places >= 0) & (places < real.shape[1])
    return real[:, places.clamp(0, real.shape[1] - 1)] & inside


def _windows(length: int) -> list[int]:
    """Return positions in runs: neighbours tell how far an output sees."""
    starts = (0, (length - WINDOW) // 2, length - WINDOW)
    chosen = {start + i for start in starts for i in range(WINDOW)}
    return sorted(q for q in chosen if 0 <= q < length)


def _replaced(
    examples: Examples, rows: Examples, name: str, position: int, length: int
) -> Examples:
    """Put another token, one that occurs at real positions, at a position of each row."""
    changed = rows.clone()
    tokens = torch.unique(examples.arrays[name][:1_000, :length])
    column = changed.arrays[name][:, position]
    generator = torch.Generator().manual_seed(position)
    drawn = torch.randint(0, max(1, len(tokens) - 1), column.shape, generator=generator)
    places = torch.searchsorted(tokens, column.contiguous())
    other = tokens[(places + 1 + drawn) % len(tokens)]
    changed.arrays[name][:, position] = other
    return changed


def _chart(reach: Reach, answer: Answer) -> Heat:
    step = -(-reach.moved.shape[1] // CHARTED)
    outputs = list(range(0, reach.moved.shape[1], step))
    moved = reach.moved[:, outputs][:CHARTED]
    return Heat(
        rows=[f"{answer.array}[{q}]" for q in reach.positions[:CHARTED]],
        columns=[f"output {p}" for p in outputs],
        values=moved.tolist(),
    )
