"""MLflow's stock client in a process of its own, far from this project."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd

_LOAD_AND_PREDICT = """
import sys
for name in ("components", "infra", "pipelines", "training_core"):
    sys.modules[name] = None  # installed here, but not where a model is served
import mlflow, pandas
rows = pandas.read_parquet("rows.parquet")
mlflow.pyfunc.load_model(sys.argv[1]).predict(rows).to_parquet("predictions.parquet")
"""


def stock_predict(model: str, rows: pd.DataFrame, place: Path, **environment: str) -> pd.DataFrame:
    """Return what `mlflow.pyfunc.load_model(model).predict(rows)` gives there.

    Args:
        model: As `models:/NAME@champion`.
        place: An empty folder, which is also its home.
        environment: All that it sees beside PATH.
    """
    rows.to_parquet(place / "rows.parquet", index=False)
    done = _run([sys.executable, "-I", "-c", _LOAD_AND_PREDICT, model], place, environment)
    assert done.returncode == 0, done.stderr
    return pd.read_parquet(place / "predictions.parquet")


def command_line_predict(
    model: str, rows: pd.DataFrame, place: Path, **environment: str
) -> pd.DataFrame:
    """Return what `mlflow models predict --env-manager local` gives there."""
    (place / "rows.json").write_text(json.dumps({"dataframe_split": rows.to_dict("split")}))
    words = ["models", "predict", "-m", model, "-i", "rows.json", "-o", "predictions.json"]
    words += ["-t", "json", "--env-manager", "local"]
    done = _run([sys.executable, "-I", "-m", "mlflow", *words], place, environment)
    assert done.returncode == 0, done.stderr
    return pd.DataFrame(json.loads((place / "predictions.json").read_text())["predictions"])


def _run(
    command: list[str], place: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    own = {"PATH": os.environ["PATH"], "HOME": str(place), "OMP_NUM_THREADS": "1"}
    own |= {"MLFLOW_DISABLE_TELEMETRY": "true"}
    return subprocess.run(
        command, cwd=place, env=own | environment, capture_output=True, text=True, check=False
    )
