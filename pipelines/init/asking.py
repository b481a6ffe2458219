"""What a person is asked, and what happens when nobody is there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from training_core.errors import ConfigurationError

T = TypeVar("T")
Ask = Callable[[str, str], str]  # question, proposal -> answer


@dataclass(frozen=True)
class Choice(Generic[T]):
    """Something decided, or not quite.

    Attributes:
        options: The best first.
        clear: Whether the first may be taken without asking.
        why: The reason, or what stands in the way.
    """

    options: list[T]
    clear: bool
    why: str


@dataclass(frozen=True)
class Asking:
    """How doubts are settled.

    Attributes:
        take_proposals: --yes.
        ask: Asks a person; None where there is no terminal.
    """

    take_proposals: bool = False
    ask: Ask | None = None

    def settle(self, what: str, choice: Choice[str], *, option: str) -> str:
        """Return the option that counts.

        Raises:
            ConfigurationError: It is not clear, and there is nobody to ask.
        """
        if choice.options and (choice.clear or self.take_proposals):
            return choice.options[0]
        if self.ask is not None:
            proposal = choice.options[0] if choice.options else ""
            return self.ask(f"{choice.why}. {what}?", proposal)
        raise ConfigurationError(
            f"cannot tell {what}: {choice.why}",
            hint=f"pass {option}" + (", or --yes for the first" if choice.options else ""),
        )


def on_a_terminal() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()
