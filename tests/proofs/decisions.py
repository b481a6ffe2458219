"""Decide again and again where the truth is known: how often is it decided wrongly?

    python -m tests.proofs.decisions          # 200 trials of twins, 1,000 of each simulation
    python -m tests.proofs.decisions 20       # fewer: so many of each

**Twins**: networks trained alike on flights but for their seed, at four dates of 2013. In each
trial two of one date meet as champion and challenger on a fortnight of the 30 days after they were
trained, and `judge` decides as `evaluate_model` does, with the noise that replicas measured. No
seed is better than another, so every promotion is an error. The same again on 14 days drawn with
replacement from that fortnight, which adds chance that no interval can know of: twins do differ on
the fortnight itself. And the same trials are put to two other gates: the larger number wins, and an
interval from rows without noise.

**Power**: the champion's log loss is truly 2 % worse. On 5,000 independent rows; and on 14 days
that move together, at several gains, beside the one-sided t test on the days' means, which is the
best that is valid there: the days are what is independent.

**Coverage**: how often intervals hold the truth, of independent rows and of days that move
together, of means, an AUC and a difference of two models.

The curve of the power and every coverage are told on stderr. The last line of stdout is one JSON
object.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.proofs.decision_simulations import GAINS, coverage, power_by_days, power_by_rows
from tests.proofs.decision_twins import twins
from tests.proofs.reporting import tell

TRIALS, DRAWS = 200, 1000


def prove(trials: int, draws: int, *, networks: int) -> dict[str, float]:
    """Return the figures.

    Args:
        trials: Of twins, and of each power.
        draws: Of each coverage.
        networks: Twins that are trained at each date.
    """
    covered = coverage(draws)
    for name, share in covered.items():
        say(f"coverage of {name}: {share:.1%}")
    figures: dict[str, float] = {
        "coverage_lowest": min(covered.values()),
        "coverage_highest": max(covered.values()),
        "power": power_by_rows(trials, gain=0.02, noise=0.0),
        "power_with_noise": power_by_rows(trials, gain=0.02, noise=0.0015),
    }
    say("gain     ours   t test   (14 days that move together)")
    for gain in GAINS:
        ours, best = power_by_days(trials, gain=gain)
        say(f"{gain:5.1%}  {ours:6.1%}  {best:6.1%}")
        if gain == 0.02:
            figures |= {"power_by_days": ours, "t_test_by_days": best}
    return figures | twins(trials, networks=networks)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("count", type=int, nargs="?", help="trials and draws; none: 200 and 1,000")
    parser.add_argument("--networks", type=int, default=6, help="twins to train at each date")
    options = parser.parse_args(arguments)
    trials, draws = options.count or TRIALS, options.count or DRAWS
    tell("decisions", prove(trials, draws, networks=options.networks))


if __name__ == "__main__":
    main()
