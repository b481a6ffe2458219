"""Figures of the checks of the training code and of the baselines."""

from __future__ import annotations

import math

from components.common import figures as f


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
            "linear": {"log_loss": 0.4861, "brier": 0.1572, "error": 0.2190, "auc": 0.709},
            "trees": {"log_loss": 0.4733, "brier": 0.1530, "error": 0.2131, "auc": 0.727},
        },
        seconds={
            "prior": 0.001,
            "input_independent": 1.6,
            "table": 0.04,
            "linear": 3.6,
            "trees": 6.8,
        },
        absent={"rule": "the task brings none"},
        human=f.HumanFigure(
            metric="error", value=0.2456, by="three dispatchers, 400 flights each", when="2012-11"
        ),
    )
