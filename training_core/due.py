"""What is due next in a training, known ahead: until then nothing has to be asked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Due:
    """The steps at which something happens next.

    Attributes:
        log, evaluation, save: Each at the end of its interval, or of the training.
        next: The first of these, or the question to all ranks.
    """

    log: int
    evaluation: int
    save: int
    next: int

    @classmethod
    def after(
        cls, step: int, *, end: int, every: tuple[int, int, int], question: int | None
    ) -> Due:
        """Look ahead.

        Args:
            step: Steps taken.
            end: Of the training.
            every: Steps between log lines, evaluations and checkpoints.
            question: Step at which ranks ask each other whether to stop; None: there is one rank.
        """
        log, evaluation, save = (min(step - step % each + each, end) for each in every)
        first = min(log, evaluation, save)
        return cls(log, evaluation, save, first if question is None else min(first, question))
