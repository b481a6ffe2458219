"""The limit of gradient norms, by itself."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
import torch

from training_core.optim.clipping import Clipping

INFINITE = float("inf")


def clipping(*, history: int = 4, norm: float = 0, percentile: float = 50) -> Clipping:
    device = torch.device("cpu")
    return Clipping(norm=norm, percentile=percentile, history=history, device=device)


def limits(clip: Clipping, norms: Iterable[float]) -> list[float]:
    found = [clip.limit(torch.tensor(norm)) for norm in norms]
    return [INFINITE if limit is None else float(limit) for limit in found]


def test_without_a_limit_nothing_is_divided() -> None:
    clip = clipping(percentile=0)
    assert clip.divisor(torch.tensor(1e9)) is None
    assert clip.divisor_of(1e9, torch.tensor(1e9)) == 1
    assert clip.state_dict() == {}


def test_the_limit_is_the_percentile_of_the_newest_finite_norms() -> None:
    norms = [INFINITE, 2.0, 4.0, float("nan"), 8.0, 16.0, 32.0]
    # each with its three before: - | - 2 | - 2 4 | - 2 4 - | 2 4 - 8 | 4 - 8 16 | - 8 16 32
    assert limits(clipping(), norms) == [INFINITE, 2, 3, 3, 4, 8, 16]


def test_with_both_limits_the_lower_one_holds() -> None:
    assert limits(clipping(norm=3.5), [2.0, 4.0, 8.0, 0.5, 0.5]) == [2, 3, 3.5, 3, 2.25]


def test_a_history_of_zeros_does_not_divide_by_zero() -> None:
    one, other = clipping(), clipping()
    for clip in (one, other):
        limits(clip, [0.0, 0.0, 0.0])
    divisor = one.divisor(torch.tensor(1.0))
    assert divisor is not None
    assert 1 < float(divisor) < INFINITE
    assert float(divisor) == pytest.approx(other.divisor_of(1.0, torch.tensor(1.0)))


@pytest.mark.parametrize(
    ("history", "newest"),
    [(4, [3.0, 4.0, 5.0, 6.0]), (2, [5.0, 6.0]), (9, [3.0, 4.0, 5.0, 6.0])],
)
def test_norms_go_on_in_a_history_of_another_length(history: int, newest: list[float]) -> None:
    first, loaded, fresh = clipping(), clipping(history=history), clipping(history=history)
    limits(first, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    loaded.load_state_dict({name: value.clone() for name, value in first.state_dict().items()})
    limits(fresh, newest)
    more = [1.0, 10.0, 100.0, 7.0, 7.0]
    assert limits(loaded, more) == limits(fresh, more)


def test_without_a_percentile_a_history_is_left_alone() -> None:
    clip = clipping(percentile=0, norm=2)
    clip.load_state_dict(clipping().state_dict())
    assert limits(clip, [9.0]) == [2]
