"""Figures of the steps before training, as a run on the flights leaves them."""

from __future__ import annotations

import math

from components.common import figures as f


def snapshot(*, decision: str = "train", first: bool = False) -> f.SnapshotFigures:
    months = (("01", 27004), ("02", 24951), ("03", 28834), ("04", 28330))
    return f.SnapshotFigures(
        digest="sha256:9b1c44e08d7f2a60c5a1",
        source="s3://flights/landing",
        rows=sum(rows for _, rows in months),
        objects=[
            f.DataObject(
                key=f"flights-2013-{month}.parquet",
                size=rows * 31,
                version=f"v{month}",
                sha256=f"{month}c0ffee" * 8,
                rows=rows,
                new=first or month == "04",
            )
            for month, rows in months
        ],
        decision=decision,
        same_key_run="20130430T041201Z-11aa" if decision == "nothing_new" else "",
        provenance=f.Provenance(
            code_digest="sha256:51c2aa07e1",
            config_digest="sha256:d0e9f1b37c",
            commit="4be1c02d9f",
            dirty=False,
            image_digest="",
            python="3.11.9",
            packages={"torch": "2.13.0", "numpy": "2.4.1", "great-expectations": "1.24.0"},
            config={
                "name": "flights",
                "split": {"by": "time", "holdout": 14, "validation": 14},
                "training": {"epochs": 3, "batch_size": 1024},
                "decision": {
                    "metric": "log_loss",
                    "confidence": 0.95,
                    "cluster": "day",
                    "retraining_noise": 0.0008,
                    "margin": 0.001,
                },
            },
        ),
    )


def validation(*, broken: bool = False, first: bool = False) -> f.ValidateFigures:
    drift = [
        ("temperature", 0.412, "52.8", "38.1"),
        ("dew_point", 0.268, "38.0", "25.4"),
        ("origin_late_yesterday", 0.131, "0.22", "0.19"),
        ("wind_speed", 0.072, "10.9", "11.6"),
        ("pressure", 0.064, "1017.3", "1018.9"),
        ("carrier_late_yesterday", 0.051, "0.21", "0.19"),
        ("dest", 0.033, "ATL", "ATL"),
        ("carrier", 0.021, "UA", "UA"),
        ("hour", 0.004, "13.2", "13.1"),
        ("distance", 0.003, "1034", "1008"),
        ("seats", 0.002, "137", "136"),
        ("origin", 0.001, "EWR", "EWR"),
        ("weekday", 0.001, "2.97", "2.91"),
        ("engine", 0.001, "Turbo-fan", "Turbo-fan"),
    ]
    expectations = [
        f.Expectation(
            name="columns_exist",
            column="",
            severity="critical",
            success=True,
            expected="27 columns",
            observed="27 columns",
        ),
        f.Expectation(
            name="values_between",
            column="distance",
            severity="critical",
            success=not broken,
            expected="0 to 6,000",
            observed="−1 to 4,983" if broken else "80 to 4,983",
        ),
        f.Expectation(
            name="null_share",
            column="late",
            severity="critical",
            success=True,
            expected="at most 8 %",
            observed="2.4 %",
        ),
        f.Expectation(
            name="mean_between",
            column="temperature",
            severity="warning",
            success=False,
            expected="20 to 50",
            observed="52.8",
        ),
    ]
    return f.ValidateFigures(
        rows=109119,
        quarantined={"pressure_possible": 12, "seats_possible": 3},
        expectations=expectations,
        warnings=1,
        reference="" if first else "the training data of version 3",
        drift=[]
        if first
        else [
            f.ColumnDrift(column=c, psi=p, now=n, before=b, null_now=0.021, null_before=0.018)
            for c, p, n, b in drift
        ],
        leaks=[f.Leak(column="departure_delay", auc=0.998)] if broken else [],
    )


def split() -> f.SplitFigures:
    return f.SplitFigures(
        parts={
            "train": f.Part(
                rows=81004,
                start="2013-01-01T00:00:00+00:00",
                end="2013-04-03T00:00:00+00:00",
                positive_rate=0.2031,
            ),
            "validation": f.Part(
                rows=12711,
                start="2013-04-03T00:00:00+00:00",
                end="2013-04-17T00:00:00+00:00",
                positive_rate=0.2274,
            ),
            "holdout": f.Part(
                rows=12789,
                start="2013-04-17T00:00:00+00:00",
                end="2013-05-01T00:00:00+00:00",
                positive_rate=0.2188,
            ),
        },
        unlabelled=2600,
        rule="by time_hour: the last 14 days are the holdout, the 14 before it validation",
        proof=[
            "no row key is in two parts",
            "every train row is older than every validation row",
            "both classes are in every part",
        ],
    )


def checks(*, broken: bool = False) -> f.CheckFigures:
    fall = [(s, 0.69 * math.exp(-s / 60) + 0.004) for s in range(0, 400, 4)]
    real = [(s, 0.47 + 0.22 * math.exp(-s / 40)) for s in range(0, 300, 3)]
    blind = [(s, 0.51 + 0.18 * math.exp(-s / 40)) for s in range(0, 300, 3)]
    return f.CheckFigures(
        checks=[
            f.Check(
                name="loss_at_initialisation",
                verdict="pass",
                measured=0.701,
                limit=0.866,
                message="0.701 is what ignorance costs (0.693)",
            ),
            f.Check(
                name="overfit_one_batch",
                verdict="fail" if broken else "pass",
                measured=0.61 if broken else 0.0049,
                limit=0.05,
                message="32 rows were learned by heart" if not broken else "the loss stays",
            ),
            f.Check(
                name="learns_from_inputs",
                verdict="pass",
                measured=0.041,
                limit=0.0,
                message="real inputs beat shuffled ones",
            ),
            f.Check(
                name="gradient_dependency",
                verdict="pass",
                measured=0.0,
                limit=0.0,
                message="no row’s loss depends on another row",
            ),
            f.Check(
                name="throughput",
                verdict="skipped",
                measured=None,
                limit=None,
                message="only measured on a GPU",
            ),
        ],
        curves={"overfit_one_batch": fall, "real_inputs": real, "input_independent": blind},
    )


def baselines() -> f.BaselineFigures:
    return f.BaselineFigures(
        validation={
            "prior": {"log_loss": 0.5368, "brier": 0.1759, "error": 0.2274, "auc": 0.5},
            "input_independent": {"log_loss": 0.5371, "brier": 0.1760, "error": 0.2274, "auc": 0.5},
            "table": {"log_loss": 0.5012, "brier": 0.1630, "error": 0.2251, "auc": 0.673},
            "logistic": {"log_loss": 0.4861, "brier": 0.1572, "error": 0.2190, "auc": 0.709},
        }
    )
