"""The model card says what was recorded, in Markdown that names cannot break."""

from __future__ import annotations

from typing import Any

import pytest

from components.common.decision_figures import (
    Comparison,
    EvaluateFigures,
    Gate,
    NoiseFigure,
    Optimism,
    QuestionFigure,
    SliceFigure,
    SmokeFigures,
)
from components.common.settings import ProjectSettings
from components.promote_model.card import card, escaped

MANIFEST = {
    "kind": "binary",
    "label": "dep_delayed",
    "columns": ["air_port", "hour"],
    "files": {"network.pt2": "ab12"},
    "facts": {
        "step": 400,
        "seen": {"by": "time", "until": "2013-04-08T00:00:00+00:00"},
        "data_digest": "cd34",
    },
}
DATA = {"source": "data", "row_key": ["id"], "time_column": "when"}
LEAST: dict[str, Any] = {
    "verdict": "promote", "reasons": ["it beats the prior"], "metric": "log_loss", "rows": 1200,
    "clusters": 14, "compared_entry": 0, "champion": "", "metrics": {"challenger": {}},
    "comparisons": [], "gates": [], "reliability": {}, "calibration_error": {}, "roc": [],
    "confusion": [], "predictions": "",
}  # fmt: skip


def slice_figure(words: str, outcome: str, difference: float) -> SliceFigure:
    return SliceFigure.model_validate(
        {
            "words": words, "source": "search", "rows": 80, "clusters": 9, "challenger": 0.5,
            "champion": 0.4, "difference": difference, "low": difference - 0.01,
            "high": difference + 0.01, "margin": 0.02, "outcome": outcome,
        }
    )  # fmt: skip


FULL: dict[str, Any] = {
    **LEAST,
    "champion": "6",
    "metrics": {
        "challenger": {"auc": 0.8123, "log_loss": 0.3456},
        "champion": {"log_loss": 0.3512},
        "input_independent": {"log_loss": 0.5},
    },
    "intervals": {"challenger": {"log_loss": (0.33, 0.36)}},
    "directions": {"log_loss": "lower", "auc": "higher"},
    "comparisons": [
        Comparison(
            against="champion", difference=0.0056, low=0.001, high=0.01, noise=0, clusters=14
        )
    ],
    "gates": [
        Gate(
            name="floor: AUC", outcome="pass", observed="0.8", threshold="at least 0.7", message=""
        ),
        Gate(
            name="calibration", outcome="skipped", observed="", threshold="", message="too few rows"
        ),
    ],
    "slices": [
        slice_figure("carrier = AA", "pass", 0.01),
        slice_figure("hour above 20", "unsure", -0.03),
        slice_figure("dest = <b>X|Y</b>", "fail", -0.1),
    ],
    "calibration_error": {"challenger": 0.0123, "champion": 0.02},
    "noise": NoiseFigure(deviation=0.0011, source="replicas", freedom=6, runs=["a", "b"]),
    "question": QuestionFigure(number=3, uses=2.5, confidence=0.983, rows=1200),
    "smoke": SmokeFigures(
        outcome="pass", message="loaded in 2.9 s", how="torch 2", rows=500, latency_ms=2.86,
        latency_p99_ms=3.31, size_mb=0.236, load_seconds=2.9, rows_per_second=183160.0,
        peak_memory_mb=441.8, largest_difference=0.0,
    ),
    "optimism": Optimism(expected=0.0007, deviation=0.001),
}  # fmt: skip


def made(figures: dict[str, Any], **manifest: Any) -> str:
    return card(
        EvaluateFigures.model_validate(figures),
        project=ProjectSettings.model_validate(
            {"name": "late_flights", "task": {"path": "task:Task"}, "data": DATA}
        ),
        version="7",
        run="20130501-ab",
        run_key="0f0f",
        package_manifest={**MANIFEST, **manifest},
    )


def section(text: str, heading: str) -> str:
    return text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def test_it_says_what_the_model_is_for_what_it_saw_and_how_to_load_it() -> None:
    text = made(FULL)
    assert text.startswith("# late\\_flights, version 7\n")
    assert (
        "late\\_flights predicts the probability that dep\\_delayed is 1, from 2 raw columns of a "
        "row: air\\_port, hour." in section(text, "What it is for")
    )
    learned = section(text, "What it learned from")
    for words in ("saw rows until 2013-04-08", "1,200 rows", "14 independent", "step 400", "cd34"):
        assert words in learned
    assert "0f0f" in learned
    loading = section(text, "How to load it")
    assert 'mlflow.pyfunc.load_model("models:/late_flights/7").predict(frame)' in loading


def test_it_shows_every_metric_of_every_model_with_its_interval_the_main_one_first() -> None:
    judged = section(made(FULL), "How it was judged")
    assert (
        "Verdict: **promote**, by log loss (lower is better), against champion version 6" in judged
    )
    rows = [line for line in judged.splitlines() if line.startswith("|")]
    assert rows == [
        "| | challenger | champion | input independent |",
        "|---|---|---|---|",
        "| log loss | 0.3456 (0.330 to 0.360) | 0.3512 | 0.5000 |",
        "| AUC | 0.8123 | – | – |",
    ]
    assert "- against champion: 0.0056 (0.0010 to 0.0100)" in judged


def test_it_shows_gates_weak_parts_noise_and_the_packages_figures() -> None:
    text = made(FULL)
    assert "| floor: AUC | passed | 0.8 | at least 0.7 |" in section(text, "Gates")
    weak = section(text, "Where it is weak")
    assert "Of 3 parts of the holdout, 2:" in weak
    assert weak.index("worse than its margin") < weak.index("hour above 20")
    assert "carrier = AA" not in weak
    sure = section(text, "How sure that is")
    for words in ("0.0123", "0.00110", "in 2 runs", "2.50 times", "98.3%", "0.000700"):
        assert words in sure
    package = section(text, "The package")
    for words in (
        "loaded in 2.9 s.",
        "size: 0.236 MB",
        "one row: 2.86 ms",
        "183,160 rows a second",
    ):
        assert words in package
    limits = section(text, "What was not judged")
    assert limits.strip().splitlines() == [
        "- calibration: too few rows",
        "- rows unlike those of the holdout, and what follows from acting on it",
    ]


def test_what_was_not_recorded_is_left_out_or_said_to_be_missing() -> None:
    text = made(LEAST, facts={}, files={}, columns=[])
    for heading in ("Gates", "Where it is weak", "How sure that is", "The package"):
        assert f"## {heading}" not in text
    limits = section(text, "What was not judged")
    for words in ("there was none", "single parts", "probabilities are right", "another seed"):
        assert words in limits
    assert "the package loads by itself" in limits
    assert "None" not in text
    assert "until" not in text
    assert "|" not in text


def test_a_package_that_failed_is_said_to_have() -> None:
    smoke = SmokeFigures(outcome="fail", message="network.pt2 is damaged")
    package = section(made({**FULL, "smoke": smoke}), "The package")
    assert package.strip() == "Trying it out **failed**: network.pt2 is damaged."


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ("[text](javascript:x)", "\\[text\\](javascript:x)"),
        ("a|b\n# c", "a\\|b \\# c"),
        ("`code` *a* _b_ ~c~", "\\`code\\` \\*a\\* \\_b\\_ \\~c\\~"),
        ("&lt;b&gt;", "&amp;lt;b&amp;gt;"),
        ("http://x.org www.x.org", "http&#58;//x.org www&#46;x.org"),
        ("back\\slash", "back\\\\slash"),
        ("a\x00b &#58;", "a\N{REPLACEMENT CHARACTER}b &amp;\\#58;"),
    ],
)
def test_names_cannot_break_out_of_the_text(name: str, shown: str) -> None:
    assert escaped(name) == shown


def test_names_in_the_data_cannot_break_the_cards_tables_or_put_html_into_it() -> None:
    gate = Gate(name="a|b", outcome="fail", observed="<x>", threshold="1\n2", message="")
    text = made({**FULL, "gates": [gate]}, label="<script>", columns=["a|b", "c\nd"])
    assert "<" not in text
    assert "| a\\|b | **failed** | &lt;x&gt; | 1 2 |" in text
    assert "a\\|b, c d." in text
    assert "dest = &lt;b&gt;X\\|Y&lt;/b&gt;" in text
