"""Wall time of the local pipeline beside its steps' useful work: `make bench-pipeline`.

Each round runs the flights example afresh (cold start on January to March). Useful work is a step's
own seconds less the seconds that importing its libraries takes in a fresh process of the same
round; the rest is start-up, imports and orchestration.

Figures: overhead_ratio (wall / useful work), step_start_vs_imports (seconds before a step's first
line, kfp's share, / seconds of its imports).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FLIGHTS = ROOT / "examples" / "flights"


def one_round(folder: Path) -> dict[str, float]:
    """Run the pipeline once; return wall, steps' own seconds and useful seconds."""
    shutil.copytree(FLIGHTS, folder, ignore=shutil.ignore_patterns("data", ".evertrain", "*.pyc"))
    subprocess.run(
        [sys.executable, FLIGHTS / "prepare.py", "--data", folder / "data", "--months", "1-3"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "run", str(folder), "--json"],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    wall = time.monotonic() - began
    record = json.loads(done.stdout)
    inside = sum(step["seconds"] for step in record["steps"])
    imports = _import_seconds()
    useful = sum(_useful(folder, record["run"], step["step"], imports) for step in record["steps"])
    starts = _starts(folder / ".evertrain", record)
    return {
        "wall": wall,
        "inside": inside,
        "useful": useful,
        "start": statistics.median(starts),
        "imports": statistics.median(v for v in imports.values() if v > 0),
    }


_IMPORTS = {
    "snapshot_data": "pyarrow.parquet",
    "validate_data": "great_expectations, torch",
    "split_data": "torch, pandas",
    "check_training": "torch, pandas",
    "train_baseline": "torch, sklearn.linear_model, sklearn.ensemble",
    "train_distributed": "torch, pandas, mlflow.tracking",
    "select_checkpoint": "torch, pandas, torch.export",
    "evaluate_model": "torch, sklearn.metrics, torch.export",
    "promote_model": "mlflow.pyfunc",
    "report_run": "jinja2",
}


def _import_seconds() -> dict[str, float]:
    """Seconds that each step's libraries take to import in a fresh process."""
    empty = _timed("pass")
    return {step: max(0.0, _timed(f"import {names}") - empty) for step, names in _IMPORTS.items()}


def _timed(code: str) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    return time.monotonic() - began


def _useful(folder: Path, run: str, step: str, imports: dict[str, float]) -> float:
    """A step's own seconds without its imports."""
    file = folder / ".evertrain" / "store" / "runs" / run / f"{step}.json"
    seconds = float(json.loads(file.read_text())["seconds"])
    return max(0.0, seconds - imports[step])


def _starts(home: Path, record: dict[str, Any]) -> list[float]:
    """Seconds between the end of a step and the first line of the next."""
    files = [home / "store" / "runs" / record["run"] / f"{s['step']}.json" for s in record["steps"]]
    steps = sorted(
        (datetime.fromisoformat(r["started"]).timestamp(), r["seconds"])
        for r in (json.loads(f.read_text()) for f in files)
    )
    return [
        max(0.0, later - (earlier + seconds))
        for (earlier, seconds), (later, _) in itertools.pairwise(steps)
    ]


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=3)
    arguments = parser.parse_args()
    os.environ.pop("EVERTRAIN_HOME", None)
    rounds = []
    for number in range(arguments.count):
        with tempfile.TemporaryDirectory() as scratch:
            rounds.append(one_round(Path(scratch) / "flights"))
        words = ", ".join(f"{name} {value:.2f} s" for name, value in rounds[-1].items())
        print(f"round {number + 1} of {arguments.count}: {words}", file=sys.stderr)
    ratios = {
        "overhead_ratio": [r["wall"] / r["useful"] for r in rounds],
        "step_start_vs_imports": [r["start"] / r["imports"] for r in rounds],
        "wall_over_steps": [r["wall"] / r["inside"] for r in rounds],
    }
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT
    ).stdout.strip()
    print(
        json.dumps(
            {
                "name": "pipeline",
                "figures": {n: round(statistics.median(v), 3) for n, v in ratios.items()},
                "spread": {n: [round(min(v), 3), round(max(v), 3)] for n, v in ratios.items()},
                "commit": commit,
            }
        )
    )


if __name__ == "__main__":
    main()
