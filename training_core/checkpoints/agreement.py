"""Ranks that do something together fail together: none is left waiting for another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from training_core.errors import PeerFailed
from training_core.parallel.strategy import Strategy

Result = TypeVar("Result")


def agreed(strategy: Strategy, work: Callable[[], Result]) -> list[Result]:
    """Do some work on every rank and return all results, in order of rank.

    Raises:
        PeerFailed: It failed on another rank; a rank's own failure is raised as it is.
    """
    result, failure = None, None
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 (the other ranks wait for this one's answer)
        failure = error
    outcomes = strategy.gather((result, None if failure is None else words_of(failure)))
    if failure is not None:
        raise failure
    fail_with([words for _, words in outcomes])
    return [result for result, _ in outcomes]


def fail_with(failures: list[str | None]) -> None:
    """Raise the first of the ranks' failures, if there is one.

    Raises:
        PeerFailed: With the words of the rank that failed.
    """
    for rank, words in enumerate(failures):
        if words is not None:
            raise PeerFailed(f"rank {rank} failed: {words}")


def words_of(failure: BaseException) -> str:
    """A failure in words, even one that says nothing."""
    return str(failure) or type(failure).__name__
