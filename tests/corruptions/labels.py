"""Labels that are wrong, late, or known to a feature."""

from __future__ import annotations

import numpy as np

from tests.corruptions.clean_feed import Rows, clean_month
from tests.corruptions.kinds import SPLIT, Family, finding, suite
from tests.corruptions.project import MONTHS, NEW, Feed

labels = Family("labels")


@labels.rows("blocked", finding("label_relation"), "opposite", why="1 became 0: columns say the "
             "opposite of what they said")  # fmt: skip
def flipped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=1 - rows["late"])


@labels.rows("blocked", finding("label_relation"), "distance", why="As many labels as before, on "
             "the wrong rows: the strongest feature says nothing any more")  # fmt: skip
def shuffled(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=feed.random.permutation(rows["late"].to_numpy()))


@labels.rows("blocked", finding("label_shift", "late"), why="None late in a month: nobody looked")
def of_one_class(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=rows["late"] * 0)


@labels.rows("warned", finding("label_shift", "late"), why="Twice as many late as ever, for no "
             "reason that the features hold: a strike, or another rule of what is late. It may be "
             "true, so a person has to say")  # fmt: skip
def prior_shifted(rows: Rows, feed: Feed) -> Rows:
    return clean_month(NEW, feed.seed, late=0.0)


@labels.rows("blocked", suite("column_values_to_not_be_null", "late"), "0.9",
             why="The feed that brings the labels has stopped")  # fmt: skip
def stopped(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=np.nan)


@labels.rows("blocked", suite("column_values_to_not_be_null", "late"), "0.9",
             why="Eighteen days late instead of two: what is labelled is no sample of what "
             "came")  # fmt: skip
def delayed(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=rows["late"].where(rows["ordered"].dt.day <= 12))


@labels.rows("blocked", SPLIT, "one class", why="What is not known yet was written as not late. "
             "Over the month the rate is still one that might be; in the newest weeks, which are "
             "held out, nothing is late, and nothing can be judged")  # fmt: skip
def unknown_written_as_negative(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=rows["late"].where(rows["ordered"].dt.day <= 12, 0.0))


@labels.rows("blocked", suite("column_values_to_be_in_set", "late"), why="1 and 2 in place of 0 "
             "and 1, as other programs count classes")  # fmt: skip
def counted_from_one(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=rows["late"] + 1)


@labels.rows("blocked", suite("column_values_to_be_in_set", "late"), why="Another model's "
             "predictions in place of what happened")  # fmt: skip
def predictions_for_labels(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(late=feed.random.beta(2, 6, len(rows)).round(3))


@labels.feed(
    "warned", finding("label_noise"),
    why="One label in ten is wrong, at random. Where features say much of the label, as here, "
    "models of the other rows contradict it; what to do about it only people can say. From the "
    "first snapshot on: later what columns say of the label would have changed, too",
)  # fmt: skip
def noisy(feed: Feed) -> None:
    def confuse(rows: Rows) -> Rows:
        wrong = feed.random.random(len(rows)) < 0.1
        return rows.assign(late=rows["late"].mask(wrong, 1 - rows["late"]))

    feed.edit(confuse, *MONTHS)
    feed.forget_champion()


@labels.feed(
    "blocked", finding("leak", "temperature"),
    why="The label under a feature's name, with a little noise. From the first snapshot on, so "
    "that no drift can tell",
)  # fmt: skip
def copied_into_a_feature(feed: Feed) -> None:
    def leak(rows: Rows) -> Rows:
        noise = feed.random.normal(0, 0.2, len(rows))
        return rows.assign(temperature=rows["late"].fillna(0.5) + noise)

    feed.edit(leak, *MONTHS)
    feed.forget_champion()


@labels.feed(
    "blocked", finding("leak", "depot"),
    why="Late parcels are sent back, and the depot is where they are now: a category that is "
    "known only afterwards. From the first snapshot on",
)  # fmt: skip
def category_written_afterwards(feed: Feed) -> None:
    def leak(rows: Rows) -> Rows:
        returned = np.where(rows["shelf"] < "D", "Köln", "Halle")
        return rows.assign(depot=rows["depot"].where(rows["late"] != 1, returned))

    feed.edit(leak, *MONTHS)
    feed.forget_champion()


@labels.rows(
    "blocked", finding("drift", "weight"),
    why="A column that was random now follows the label: its nulls are where the label is 0. The "
    "share of nulls alone gives it away",
)  # fmt: skip
def told_by_nulls(rows: Rows, feed: Feed) -> Rows:
    return rows.assign(weight=rows["weight"].where(rows["late"] != 0))
