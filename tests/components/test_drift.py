"""Drift: faults are seen, seasons and chance are not taken for faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from profile_rows import SETTINGS, START, make_rows, profile_of, settings_of
from scipy.spatial.distance import jensenshannon
from scipy.stats import ks_2samp

from components.common.data_figures import ColumnDrift, Drift, Finding
from components.common.data_settings import CheckName, Level
from components.common.settings import ProjectSettings
from components.validate_data.distances import jensen_shannon, psi
from components.validate_data.drift import drift_from
from components.validate_data.profile import Floats, Profile

Change = Callable[[pd.DataFrame], pd.DataFrame]
PAST = make_rows(0, 120)
NEXT = make_rows(120, 30)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Profile:
    return profile_of(tmp_path_factory.mktemp("before"), PAST)


def drift_of(
    now: pd.DataFrame, before: Profile, folder: Path, settings: ProjectSettings = SETTINGS
) -> tuple[dict[str, ColumnDrift], list[Finding], Drift]:
    profile = profile_of(folder, now, edges=before, settings=settings)
    drift, findings = drift_from(profile, before, settings=settings)
    return {c.column: c for c in drift.columns}, findings, drift


def filled(column: str, value: float, share: float) -> Change:
    return lambda rows: rows.assign(
        **{column: rows[column].where(np.arange(len(rows)) % 100 >= 100 * share, value)}
    )


def shuffled(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(bought=rows.bought.sample(frac=1, random_state=0).to_numpy())


BLOCKED: dict[str, tuple[CheckName, str, Change]] = {
    "unit": ("drift", "noise", lambda r: r.assign(noise=r.noise * 1.609)),
    "sign": ("drift", "noise", lambda r: r.assign(noise=-r.noise)),
    "thousandfold": ("drift", "number", lambda r: r.assign(number=r.number * 1000)),
    "stuck": ("drift", "noise", lambda r: r.assign(noise=5.0)),
    "default": ("drift", "noise", filled("noise", 0.0, 0.4)),
    "nulls": ("drift", "noise", filled("noise", np.nan, 0.4)),
    "case": ("drift", "kind", lambda r: r.assign(kind=r.kind.str.upper())),
    "season thousandfold": ("drift", "warmth", lambda r: r.assign(warmth=r.warmth * -1000)),
    "boolean stuck": ("drift", "member", lambda r: r.assign(member=True)),
    "flipped labels": ("label_relation", "", lambda r: r.assign(bought=1 - r.bought)),
    "shuffled labels": ("label_relation", "", shuffled),
    "no labels": ("label_shift", "bought", lambda r: r.assign(bought=np.nan)),
    "all positive": ("label_shift", "bought", lambda r: r.assign(bought=1.0)),
    "gone": ("drift", "noise", lambda r: r.drop(columns="noise")),
    "other kind": ("drift", "noise", lambda r: r.assign(noise=r.noise.astype(str))),
}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_fault_is_blocked_and_named(name: str, before: Profile, tmp_path: Path) -> None:
    check, column, change = BLOCKED[name]
    _, findings, _ = drift_of(change(NEXT), before, tmp_path)
    blocking = {(f.check, f.column) for f in findings if f.level == "block"}
    assert (check, column) in blocking
    # and nothing that was not touched
    assert {f.column for f in findings} - {"", "warmth"} <= {column, "bought", "kind", "number"}


def test_clean_rows_of_the_season_that_follows_are_not_blocked(tmp_path: Path) -> None:
    """From winter to summer the season's column goes to values that it has never had."""
    for months in range(2, 9):
        before = profile_of(tmp_path / f"b{months}", make_rows(0, 30 * months))
        now = make_rows(30 * months, 30)
        _, findings, _ = drift_of(now, before, tmp_path / f"n{months}")
        assert [f for f in findings if f.level == "block"] == []
        assert {f.column for f in findings} <= {"warmth"}


def gliding(first_day: int, days: int, height: Callable[[Floats], Floats]) -> pd.DataFrame:
    """Rows whose warmth is a function of the day, and noise of 2."""
    rows = make_rows(first_day, days)
    day = (rows["when"].dt.floor("D") - START).dt.days.to_numpy().astype(np.float64)
    noise = np.random.default_rng(first_day).normal(0, 2, len(rows))
    return rows.assign(warmth=height(day) + noise)


def ratios(found: Finding) -> tuple[float, float]:
    """How many times over its limit a column is: far, and sudden."""
    number = r"([\d.e+]+)"
    words = rf"PSI {number} \(its own past explains {number}\), {number} .*? \({number}\)"
    said = re.search(words, found.message)
    assert said is not None
    far, usual, sudden, step = map(float, said.groups())
    return far / usual, sudden / step


@pytest.mark.parametrize(("begins", "seen"), [(30, []), (40, ["warn"])])
def test_a_spring_goes_far_but_not_suddenly_and_a_fault_does_both(
    tmp_path: Path, begins: int, seen: list[str]
) -> None:
    """Flat days, then a quarter of a degree more each day: 5 degrees a batch, noise being 2.

    Against all days before, that is far over what the past explains; against the last ones it is
    as in the days before (begun at 30), or not much more (at 40).
    """

    def spring(day: Floats) -> Floats:
        return 0.25 * np.maximum(0, day - begins)

    before = profile_of(tmp_path / "before", gliding(0, 60, spring))
    columns, findings, _ = drift_of(gliding(60, 20, spring), before, tmp_path / "slow")
    slow, warmth = [f for f in findings if f.column == "warmth"], columns["warmth"]
    assert [f.level for f in slow] == seen
    assert warmth.psi is not None
    assert warmth.threshold is not None
    assert warmth.psi > 1.4 * warmth.threshold
    settings = SETTINGS.validation.drift
    for found in slow:
        far, sudden = ratios(found)
        assert far > settings.block_factor > sudden > 1
        assert warmth.psi > settings.block_psi
    fault = gliding(60, 20, lambda day: spring(day) + 15)
    _, findings, _ = drift_of(fault, before, tmp_path / "fault")
    assert [f.level for f in findings if f.column == "warmth"] == ["block"]


def test_old_values_under_new_dates_are_seen_for_the_last_days_were_elsewhere(
    tmp_path: Path,
) -> None:
    """A year of 120 days, of which the whole past has every value: only the step is unlike it."""

    def year(day: Floats) -> Floats:
        return 20 * np.abs(day % 120 / 60 - 1)

    before = profile_of(tmp_path / "before", gliding(0, 120, year))
    replayed = gliding(120, 10, lambda day: year(day - 65))
    _, findings, _ = drift_of(replayed, before, tmp_path / "now")
    (found,) = [f for f in findings if f.column == "warmth"]
    far, sudden = ratios(found)
    assert far < 1 < SETTINGS.validation.drift.sudden_factor < sudden
    assert found.level == "warn"


def test_days_drawn_from_the_past_raise_no_alarm(before: Profile, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    day = (PAST.when.dt.floor("D") - PAST.when.dt.floor("D").min()).dt.days
    for draw in range(10):
        first = random.integers(0, 114, 5)
        parts = [
            PAST[day == d].assign(when=lambda r, n=n, d=d: r.when + pd.Timedelta(days=120 + n - d))
            for n, d in enumerate(d for f in first for d in range(f, f + 6))
        ]
        _, findings, _ = drift_of(pd.concat(parts), before, tmp_path / str(draw))
        assert [f for f in findings if f.level == "block" or f.column != "warmth"] == []


def test_a_shifted_number_comes_first_with_its_size(before: Profile, tmp_path: Path) -> None:
    columns, findings, drift = drift_of(NEXT.assign(noise=NEXT.noise + 1), before, tmp_path)
    noise = columns["noise"]
    steady = [c for c in drift.columns if c.column != "warmth"]
    assert steady[0].column == "noise"
    assert noise.psi is not None
    assert noise.threshold is not None
    assert noise.psi > 0.5 > noise.threshold
    exact = ks_2samp(NEXT.noise + 1, PAST.noise).statistic
    assert noise.ks == pytest.approx(exact, abs=0.005)
    assert float(noise.now) == pytest.approx(6, abs=0.05)
    assert sum(noise.bars.now) == pytest.approx(1)
    assert len(noise.bars.now) == len(noise.bars.before) == len(noise.bars.labels) == 21
    assert any("noise moved" in f.message for f in findings)


def test_the_first_day_of_the_new_rows_is_said_and_a_stray_old_row_is_not_taken_for_it(
    before: Profile, tmp_path: Path
) -> None:
    first = NEXT["when"].min()
    _, _, drift = drift_of(NEXT, before, tmp_path / "now")
    assert drift.since == f"{first:%Y-%m-%d}"
    stray = NEXT.assign(when=NEXT["when"].where(NEXT.index != 7, first - pd.Timedelta(days=60)))
    _, _, drift = drift_of(stray, before, tmp_path / "stray")
    assert drift.since == f"{first:%Y-%m-%d}"


def test_a_chi_square_test_tells_other_shares(before: Profile, tmp_path: Path) -> None:
    columns, _, _ = drift_of(NEXT.assign(kind=NEXT.kind.iloc[::-1].to_numpy()), before, tmp_path)
    assert columns["kind"].chi2_p is not None
    assert columns["kind"].chi2_p > 0.001
    columns, _, _ = drift_of(NEXT[NEXT.kind != "apple"], before, tmp_path)
    assert columns["kind"].chi2_p == pytest.approx(0, abs=1e-9)
    assert columns["kind"].vanished_categories == ["apple"]


def test_new_categories_warn_with_their_share(before: Profile, tmp_path: Path) -> None:
    now = NEXT.assign(kind=NEXT.kind.where(np.arange(len(NEXT)) % 50 > 0, "eggs"))
    columns, findings, _ = drift_of(now, before, tmp_path)
    assert columns["kind"].new_categories == ["eggs"]
    (found,) = [f for f in findings if f.check == "new_category"]
    assert found.level == "warn"
    assert found.measured == pytest.approx(0.02)
    assert "'eggs' (2.00%)" in found.message


def test_a_column_that_always_has_new_values_is_no_finding(tmp_path: Path) -> None:
    def dated(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.assign(date=rows.when.dt.strftime("%Y-%m-%d"))

    before = profile_of(tmp_path / "before", dated(PAST))
    _, findings, _ = drift_of(dated(NEXT), before, tmp_path / "now")
    assert [f for f in findings if f.column == "date"] == []


def test_levels_are_obeyed(before: Profile, tmp_path: Path) -> None:
    now = shuffled(NEXT).assign(noise=5.0, kind="eggs")

    def levels(level: Level) -> list[Finding]:
        checks: list[CheckName] = ["drift", "new_category", "label_shift", "label_relation"]
        validation = SETTINGS.validation.model_copy(update={"levels": dict.fromkeys(checks, level)})
        settings = SETTINGS.model_copy(update={"validation": validation})
        return drift_of(now, before, tmp_path, settings)[1]

    assert {f.level for f in levels("warn")} == {"warn"}
    assert {f.check for f in levels("warn")} >= {"drift", "new_category", "label_relation"}
    assert levels("off") == []


def test_without_time_faults_are_still_blocked(tmp_path: Path) -> None:
    settings = settings_of(time_column=None)
    past, now = PAST.drop(columns=["when", "warmth"]), NEXT.drop(columns=["when", "warmth"])
    before = profile_of(tmp_path / "before", past, settings=settings)
    _, findings, _ = drift_of(now, before, tmp_path / "now", settings)
    assert [f for f in findings if f.level == "block"] == []
    _, findings, _ = drift_of(now.assign(noise=-now.noise), before, tmp_path / "now", settings)
    assert [(f.column, f.level) for f in findings if f.column == "noise"] == [("noise", "block")]


def test_distances_agree_with_scipy_and_with_the_formula() -> None:
    now, then = np.array([10, 20, 70]), np.array([300, 300, 400])
    assert jensen_shannon(now, then) == pytest.approx(jensenshannon(now, then, base=2))
    p, q = now / now.sum(), then / then.sum()
    assert psi(now, then) == pytest.approx(((p - q) * np.log(p / q)).sum())
    assert jensen_shannon(np.array([5, 0]), np.array([0, 7])) == pytest.approx(1)
