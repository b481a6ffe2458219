"""Figures of the three data steps, as a run on the flights leaves them."""

from __future__ import annotations

import math
from typing import Any

from components.common import data_figures as d
from components.common import figures as f
from components.validate_data.not_run import CHANGE, TRUST

MONTHS = (("01", 27004), ("02", 24951), ("03", 28834), ("04", 28330))
ROWS = sum(rows for _, rows in MONTHS)
CHAMPION, LAST = "the data of champion 3", "the last snapshot, of 2013-04-01"
# Column, kind, index against the champion's data, its threshold, index against the last snapshot,
# now, before.
MOVED: list[tuple[str, Any, float, float, float, str, str]] = [
    ("temperature", "number", 0.412, 0.094, 0.291, "52.8", "38.1"),
    ("dew_point", "number", 0.268, 0.102, 0.051, "38.0", "25.4"),
    ("carrier", "category", 0.131, 0.031, 0.128, "UA", "UA"),
    ("wind_speed", "number", 0.072, 0.088, 0.031, "10.9", "11.6"),
    ("pressure", "number", 0.064, 0.091, 0.022, "1017.3", "1018.9"),
    ("carrier_late_yesterday", "number", 0.051, 0.062, 0.012, "0.21", "0.19"),
    ("dest", "category", 0.033, 0.041, 0.021, "ATL", "ATL"),
    ("hour", "number", 0.004, 0.02, 0.002, "13.2", "13.1"),
    ("distance", "number", 0.003, 0.02, 0.002, "1034", "1008"),
    ("seats", "number", 0.002, 0.02, 0.001, "137", "136"),
    ("origin", "category", 0.001, 0.02, 0.001, "EWR", "EWR"),
    ("weekday", "number", 0.001, 0.02, 0.001, "2.97", "2.91"),
    ("engine", "category", 0.001, 0.02, 0.001, "Turbo-fan", "Turbo-fan"),
]


def snapshot(*, decision: Any = "train", first: bool = False) -> d.SnapshotFigures:
    new = [month for month, _ in MONTHS if first or month == "04"]
    return d.SnapshotFigures(
        digest="sha256:9b1c44e08d7f2a60c5a1",
        source="s3://flights/landing",
        rows=ROWS,
        object_count=4,
        new_count=len(new),
        new_rows=sum(rows for month, rows in MONTHS if month in new),
        size=ROWS * 31,
        objects=[
            d.DataObject(
                key=f"flights-2013-{month}.parquet",
                size=rows * 31,
                version=f"v{month}",
                sha256=f"{month}c0ffee" * 8,
                rows=rows,
                new=month in new,
            )
            for month, rows in MONTHS
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
                "validation": {"suite": "expectations.json", "quarantine_budget": 0.001},
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


def validation(
    *, broken: bool = False, first: bool = False, failed: bool = False, calm: bool = False
) -> d.ValidateFigures:
    """`broken`: a finding blocks; `failed`: an expectation does; `calm`: nothing was found."""
    return d.ValidateFigures(
        rows=ROWS,
        new_rows=ROWS if first else 28330,
        quarantined={"pressure_possible": 12, "seats_possible": 3},
        quarantine="objects/" + "5a17" * 16,
        expectations=expectations(failed=failed, calm=calm),
        warnings=0 if calm else 1,
        columns=[column(*row) for row in MOVED],
        drift=[]
        if first
        else [
            drift(reference, last=reference == LAST, broken=broken, calm=calm)
            for reference in (CHAMPION, LAST)
        ],
        findings=[] if calm else findings(broken=broken, first=first),
        not_run=unlooked(first=first, failed=failed),
    )


def unlooked(*, first: bool, failed: bool) -> list[d.NotRun]:
    found = [d.NotRun(checks=list(TRUST), why="refused")] * failed
    return found + [d.NotRun(checks=list(CHANGE), why="no_reference")] * first


def expectations(*, failed: bool, calm: bool) -> list[d.Expectation]:
    rows = [
        ("columns_exist", "", "critical", True, "27 columns", "27 columns"),
        ("values_between", "distance", "critical", not failed, "0 to 6,000",
         "−1 to 4,983" if failed else "80 to 4,983"),
        ("null_share", "late", "critical", True, "at most 8 %", "2.4 %"),
        ("mean_between", "temperature", "warning", calm, "20 to 50", "42.0" if calm else "52.8"),
    ]  # fmt: skip
    return [
        d.Expectation(name=n, column=c, severity=v, success=s, expected=e, observed=o)
        for n, c, v, s, e, o in rows
    ]


def findings(*, broken: bool, first: bool) -> list[d.Finding]:
    leak = d.Finding(
        check="leak",
        column="departure_delay",
        level="block",
        measured=0.998,
        limit=0.95,
        message="departure_delay alone ranks the labels with an AUC of 0.998",
        hint="find out whether it is known at prediction time",
    )
    new = d.Finding(
        check="new_category",
        column="carrier",
        level="warn",
        measured=2,
        limit=0,
        message="carrier has 2 values that the data of champion 3 never had: 'ZZ', 'YY'",
        hint="add them to the suite's categories if they are meant",
    )
    noise = d.Finding(
        check="label_noise",
        column="",
        level="warn",
        measured=0.071,
        limit=0.05,
        message="7.1 % of the labels are in confident doubt",
    )
    far = [
        d.Finding(
            check="drift",
            column=c.column,
            level="block" if c.level == "block" else "warn",
            measured=c.psi,
            limit=c.threshold,
            message=f"{c.column} is {c.psi:.3f} from {CHAMPION}, threshold {c.threshold:.3f}",
        )
        for c in drift(CHAMPION, broken=broken).columns
        if c.level != "steady"
    ]
    found = [leak] * broken + ([noise] if first else [new, *far])
    return sorted(found, key=lambda finding: finding.level)


def drift(
    reference: str, *, last: bool = False, broken: bool = False, calm: bool = False
) -> d.Drift:
    columns = []
    for name, kind, to_champion, threshold, to_last, now, before in MOVED:
        psi = (to_last if last else to_champion) * (0.04 if calm else 1)
        columns.append(
            d.ColumnDrift(
                column=name,
                kind=kind,
                psi=psi,
                js=math.sqrt(psi / 6),
                ks=psi / 2 if kind == "number" else None,
                chi2_p=0.003 if kind == "category" else None,
                threshold=threshold,
                level="steady"
                if psi <= threshold
                else "block"
                if broken and psi > 4 * threshold
                else "warn",
                now=now,
                before=before,
                null_now=0.021,
                null_before=0.018,
                new_categories=["ZZ", "YY"] if name == "carrier" else [],
                vanished_categories=["XX"] if name == "carrier" else [],
                bars=bars(kind, shift=0 if calm else psi * 4),
            )
        )
    return d.Drift(
        reference=reference,
        rows_now=28330,
        rows_before=80789,
        columns=sorted(columns, key=lambda c: -(c.psi or 0)),
        label_now=0.2188,
        label_before=0.2031,
        classifier_auc=0.55 if calm else 0.71,
        classifier_columns=["temperature", "dew_point", "carrier"],
    )


def bars(kind: str, *, shift: float = 0.0, bins: int = 20) -> d.Bars:
    if kind == "category":
        names = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "ZZ"]
        before = [0.17, 0.16, 0.16, 0.14, 0.1, 0.08, 0.06, 0.05, 0.04, 0.04, 0.0]
        now = [share * (1 - shift / 4) for share in before[:-1]] + [shift / 4]
        return d.Bars(labels=names, now=now, before=before)

    def normal(middle: float) -> list[float]:
        raw = [math.exp(-(((i - middle) / (bins / 6)) ** 2) / 2) for i in range(bins)]
        return [share / sum(raw) for share in raw]

    labels = [f"{10 + 4 * i} to {14 + 4 * i}" for i in range(bins)]
    return d.Bars(labels=labels, now=normal(bins / 2.2 + shift), before=normal(bins / 2.2))


def column(name: str, kind: Any, psi: float, *_: object) -> d.ColumnFigures:
    number = kind == "number"
    return d.ColumnFigures(
        column=name,
        kind=kind,
        type="DOUBLE" if number else "VARCHAR",
        nulls=0.021 if number else 0.0,
        distinct=214 if number else 16,
        low="10.9" if number else "9E",
        high="100.0" if number else "YV",
        typical="39.9" if number else "UA",
        mean=41.7 if number else None,
        label_correlation=round(0.2 - psi, 3),
        bars=bars(kind).model_copy(update={"before": []}),
    )


def split() -> d.SplitFigures:
    return d.SplitFigures(
        parts={
            "train": d.Part(
                rows=81004,
                start="2013-01-01T00:00:00+00:00",
                end="2013-04-03T00:00:00+00:00",
                positive_rate=0.2031,
            ),
            "validation": d.Part(
                rows=12711,
                start="2013-04-03T00:00:00+00:00",
                end="2013-04-17T00:00:00+00:00",
                positive_rate=0.2274,
            ),
            "holdout": d.Part(
                rows=12789,
                start="2013-04-17T00:00:00+00:00",
                end="2013-05-01T00:00:00+00:00",
                positive_rate=0.2188,
            ),
        },
        unlabelled=2600,
        rule="by time_hour: the last 14 days are the holdout, the 14 before it validation",
        proof=[
            d.Proof(
                claim="no row key is in two parts",
                query="SELECT count(*) FROM (SELECT id FROM parts GROUP BY id HAVING count(*) > 1)",
                answer="0",
            ),
            d.Proof(
                claim="every train row is older than every validation row",
                query="SELECT max(time_hour) FILTER (part = 'train') FROM parts",
                answer="2013-04-02 23:00 < 2013-04-03 00:00",
            ),
            d.Proof(
                claim="both classes are in every part",
                query="SELECT part, count(DISTINCT late) FROM parts GROUP BY part",
                answer="2, 2, 2",
            ),
        ],
    )
