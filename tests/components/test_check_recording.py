"""What the checks found is recorded whole where it is small, and small where it is not."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from components.check_training.pixels import png_of
from components.check_training.recording import LARGEST, figures_of
from components.check_training.step import run, stop_if_broken
from components.common.figures import CheckFigures
from components.common.records import StepRecord, read_records
from infra.folder import FolderStore
from tests.small_project.command import make_project
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.own_checks import add_own_checks
from tests.small_project.splits import write_splits
from training_core.checks.contract import Finding, Heat, Sample, Verdict
from training_core.errors import StoppedByGate


def found(name: str = "a_check", verdict: Verdict = "pass", **said: Any) -> Finding:
    return Finding(name=name, verdict=verdict, **{"message": "so it is", **said})


def through_a_record(figures: CheckFigures) -> CheckFigures:
    """As the report reads it."""
    record = StepRecord(step="check_training", run="r", run_key="k")
    record.figures = figures.model_dump(mode="json")
    again = StepRecord.model_validate_json(record.model_dump_json(indent=1))
    return CheckFigures.model_validate(again.figures)


def huge(name: str, verdict: Verdict) -> Finding:
    """A check that keeps everything it ever saw."""
    noise = np.random.default_rng(0).integers(0, 256, (60, 60, 3))
    pixels = [[f"#{r:02x}{g:02x}{b:02x}" for r, g, b in row] for row in noise.tolist()]
    names = [f"a_parameter_with_a_long_name_{i}" * 5 for i in range(100)]
    return found(
        name,
        verdict,
        message="m" * 9000,
        advice="a" * 9000,
        curves={n: [(i, i / 3) for i in range(600)] for n in names},
        table=[dict.fromkeys(names, 1 / 3) for _ in range(100)],
        heat=Heat(rows=names, columns=names, values=[[1 / 3] * 100] * 100),
        samples=[Sample(raw=dict.fromkeys(names, "r" * 900), network={}, images={"i": pixels})] * 9,
    )


def test_a_record_is_small_whatever_the_checks_hold_and_failures_keep_most() -> None:
    verdicts: list[Verdict] = ["fail", *["pass"] * 25]
    one = huge("one", "fail")
    figures = figures_of(
        [replace(one, name=f"check_{i}", verdict=verdict) for i, verdict in enumerate(verdicts)]
    )
    assert len(figures.model_dump_json(indent=1)) < LARGEST
    assert [check.name for check in figures.checks] == [f"check_{i}" for i in range(26)]
    broken, well = figures.checks[0], figures.checks[1]
    assert broken.table
    assert broken.samples[0].images
    assert len(broken.table) > len(well.table)
    assert len(broken.message) >= len(well.message) >= 300


def test_a_usual_record_is_kept_whole() -> None:
    curve = [(i, math.exp(-i)) for i in range(60)]
    heat = Heat(rows=["a", "b"], columns=["c"], values=[[1.0], [None]])
    table: list[dict[str, str | float]] = [{"layer": f"l{i}", "ratio": 0.1} for i in range(12)]
    (check,) = through_a_record(
        figures_of([found(curves={"loss": curve}, heat=heat, table=table)])
    ).checks
    assert [step for step, _ in check.curves["loss"]] == list(range(60))
    assert check.curves["loss"][3][1] == pytest.approx(math.exp(-3), rel=1e-5)
    assert check.heat is not None
    assert check.heat.values == [[1.0], [None]]
    assert check.table == table


def test_a_thinned_curve_keeps_its_ends_and_what_is_not_finite_is_left_out() -> None:
    curve = [(i, math.nan if i == 7 else float(i)) for i in range(10_000)]
    (check,) = figures_of([found(curves={"loss": [*curve, (10_000, math.inf)]})]).checks
    kept = check.curves["loss"]
    assert (kept[0], kept[-1]) == ((0, 0.0), (9999, 9999.0))
    assert len(kept) == 480
    assert all(math.isfinite(value) for _, value in kept)


def test_numbers_of_every_library_and_none_at_all_can_be_read_again() -> None:
    table: list[dict[str, Any]] = [
        {"numpy": np.float32(0.5), "torch": torch.tensor(2), "nan": math.nan, "yes": True,
         "words": "12", "nothing": None, "broken": "\ud800"},
    ]  # fmt: skip
    finding = found(
        measured=math.inf,
        limit=np.float32(0.25),
        message="\ud800",
        table=table,
        heat=Heat(rows=["r"], columns=["c", "d"], values=[[math.nan, np.float64(1)]]),
    )
    (check,) = through_a_record(figures_of([finding])).checks
    assert (check.measured, check.limit, check.message) == (None, 0.25, "?")
    assert check.table == [
        {"numpy": 0.5, "torch": 2.0, "nan": "nan", "yes": "yes", "words": "12", "nothing": "None",
         "broken": "?"},
    ]  # fmt: skip
    assert check.heat is not None
    assert check.heat.values == [[None, 1.0]]


def test_a_picture_is_packed_pixel_by_pixel_and_thinned_where_it_is_large() -> None:
    pixels = [["#ff0000", "#00ff00", "#0000ff"], ["#010203", "#ffffff", "#A0B0C0"]]
    content = base64.b64decode(png_of(pixels, side=48))
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", content[16:24]) == (3, 2)
    length = struct.unpack(">I", content[33:37])[0]
    lines = zlib.decompress(content[41 : 41 + length])
    expected = b"".join(b"\0" + bytes.fromhex("".join(c[1:] for c in row)) for row in pixels)
    assert lines == expected
    large = base64.b64decode(png_of([["#000000"] * 100] * 50, side=48))
    assert struct.unpack(">II", large[16:24]) == (34, 17)


@pytest.mark.parametrize("pixels", [[], [[]], [["#fff"]], [["#000000"], []], [['red"/>']]])
def test_what_is_no_picture_is_left_out(pixels: list[list[str]]) -> None:
    assert png_of(pixels, side=48) == ""
    (check,) = figures_of(
        [found(samples=[Sample(raw={}, network={}, images={"x": pixels})])]
    ).checks
    assert check.samples[0].images == {}


def test_the_expected_time_of_the_training_is_what_its_check_measured() -> None:
    speed = found("batch_size_and_speed", measured=3480.0, seconds=2.5)
    figures = figures_of([found(seconds=1.25), speed])
    assert (figures.planned_seconds, figures.seconds) == (3480.0, 3.75)
    assert figures_of([found("batch_size_and_speed", measured=math.nan)]).planned_seconds is None
    assert figures_of([found()]).planned_seconds is None


def test_every_failed_check_is_named_and_the_first_says_what_to_do() -> None:
    failed = [found(n, "fail", message=f"{n} is wrong", advice="mend it.") for n in ("one", "two")]
    with pytest.raises(StoppedByGate) as stopped:
        stop_if_broken(figures_of([found("w", "warn", advice="look"), *failed]))
    assert stopped.value.what == (
        "the training code is broken (one): one is wrong; also failed: two"
    )
    assert stopped.value.hint == "mend it; nothing was trained"
    stop_if_broken(figures_of([found("w", "warn", advice="look"), found()]))


@pytest.mark.parametrize(("limit", "code"), [(100.0, 0), (0.0, 1)])
def test_the_step_makes_a_projects_own_checks_and_stops_where_one_fails(
    tmp_path: Path, limit: float, code: int, capfd: pytest.CaptureFixture[str]
) -> None:
    project = add_own_checks(make_project(tmp_path / "project", 1), limit=limit)
    splits, metrics = str(write_splits(project)), Metrics(tmp_path / "metrics")
    quick, ended = ["checks.seconds=0.001"], 0  # of the others those that train are skipped
    with as_a_step_of_its_own():
        try:
            run(str(project), "", quick, "key", splits, metrics)
        except SystemExit as end:
            ended = int(end.code or 0)
    assert ended == code
    store = FolderStore(project / ".evertrain" / "store")
    record = read_records(store, RUN)["check_training"]
    figures = CheckFigures.model_validate(record.figures)
    own = next(check for check in figures.checks if check.name == "outputs_are_small")
    assert own.verdict == ("fail" if code else "pass")
    assert own.heat is not None
    assert metrics.logged["outputs_are_small"] == own.measured
    assert "outputs_are_small" in capfd.readouterr().err
    if code:
        assert record.status == "stopped"
        assert "(outputs_are_small)" in record.reason
        assert record.hint == "scale the last layer; nothing was trained"
