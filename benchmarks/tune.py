"""What a search of settings finds on flights: `make bench-tune`.

Flights of January to September: trained on up to 2 June, tuned on the 28 days after, and judged on
July to September, because 14 days that move together cannot show a gain of a hundredth. First the
search proper: settings spread evenly, then proposed by Bayes; its winner and the settings of
`evertrain.yaml` are trained with several seeds each and compared on the holdout, paired, days drawn
whole. Then a search whose space is too small on purpose: learning rates far below what is good.
The settings of the example were chosen by hand on this data; `--defaults` begins with the
optimiser's defaults instead.

Figures: tune_gain (loss on the holdout, present settings minus winner), tune_gain_low (lower end of
its interval), tune_trials, tune_minutes (of the search alone), boundary_noticed (1: the second
search says that the best points lie at the upper end, and to widen it up).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.reporting import last_line
from tests.small_project.command import make_project
from tests.small_project.data_steps import run_data_steps

ROOT = Path(__file__).resolve().parents[1]
FLIGHTS = ROOT / "examples" / "flights"
DAYS = {"validation": 28, "holdout": 92}
LR = "training.optimiser.lr"
SPACE: dict[str, Any] = {
    LR: {"low": 0.0002, "high": 0.02, "log": True},
    "training.optimiser.weight_decay": {"low": 0.001, "high": 1.0, "log": True},
    "training.schedule.warmup": {"low": 0.0, "high": 0.3},
    "training.batch_size": {"choices": [256, 512, 1024, 2048]},
    "task.options.dropout": {"low": 0.0, "high": 0.5, "role": "scientific"},
    "task.options.embedding": {"low": 2, "high": 32, "log": True, "role": "scientific"},
    "task.options.hidden": {
        "choices": [[64], [128, 64], [256, 128], [256, 128, 64]],
        "role": "scientific",
    },
    "task.options.forget": {"low": 0.0, "high": 0.2},
}
TOO_SMALL = {LR: {"low": 0.00001, "high": 0.0002, "log": True}}


def flights(folder: Path, *, defaults: bool) -> Path:
    """Make the flights project with its parts; as chosen there, or with the default optimiser."""
    shutil.copytree(FLIGHTS, folder, ignore=shutil.ignore_patterns("data", ".evertrain", "*.pyc"))
    file = folder / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    if defaults:
        del content["training"]["optimiser"]
    file.write_text(yaml.safe_dump({**content, "split": {"by": "time", **DAYS}}))
    subprocess.run(
        [sys.executable, FLIGHTS / "prepare.py", "--data", folder / "data", "--months", "1-9"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return divided(folder)


def divided(folder: Path) -> Path:
    """Take the first three steps of the pipeline."""
    records = run_data_steps(folder)
    assert records["split_data"].status == "done", records
    return folder


def searched(folder: Path, space: dict[str, Any], *words: str, **more: Any) -> dict[str, Any]:
    """Run `evertrain tune` with a space, and return what it found."""
    file = folder / "evertrain.yaml"
    content = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**content, "tune": {"parameters": space, **more}}))
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "tune", str(folder), "--json", *words],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def one_round(folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """Search twice; return the figures."""
    if arguments.short:
        project, space = divided(make_project(folder, 1, 2)), {LR: {**SPACE[LR], "high": 0.2}}
    else:
        project, space = flights(folder, defaults=arguments.defaults), SPACE
    settings = {"parallel": arguments.parallel, "seed": arguments.seed}
    found = searched(project, space, trials=arguments.trials, repeats=arguments.repeats, **settings)
    print(found["patch"] or "nothing is proposed", found["enough"], sep="\n", file=sys.stderr)
    if arguments.keep:
        Path(arguments.keep).write_text(json.dumps(found, indent=1))
        shutil.copyfile(found["page"], Path(arguments.keep).with_suffix(".html"))
    looked = found["comparison"]["holdout"]
    small = searched(
        project, TOO_SMALL, "--no-holdout", trials=12, quasi_random=1.0, pruning="none",
        repeats=2, **settings,
    )  # fmt: skip
    (rate,) = small["dimensions"]
    print(f"too small on purpose: {rate['advice'] or 'not noticed'}", file=sys.stderr)
    return {
        "tune_gain": looked["mean"],
        "tune_gain_low": looked["low"],
        "tune_trials": float(len(found["trials"])),
        "tune_minutes": found["seconds"] / 60,
        "boundary_noticed": float(rate["boundary"] == "high" and "widen it up" in rate["advice"]),
    }


def main() -> None:
    """Run the rounds and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--trials", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--defaults", action="store_true", help="begin with default rates")
    parser.add_argument("--keep", help="file for what the first search found; its page beside it")
    parser.add_argument("--short", action="store_true", help="the small project, 12 trials")
    arguments = parser.parse_args()
    if arguments.short:
        arguments.trials, arguments.repeats = 12, 2
    os.environ.pop("EVERTRAIN_HOME", None)
    rounds = []
    for number in range(arguments.count):
        with tempfile.TemporaryDirectory() as scratch:
            rounds.append(one_round(Path(scratch) / "project", arguments))
        words = ", ".join(f"{name} {value:.4g}" for name, value in rounds[-1].items())
        print(f"round {number + 1} of {arguments.count}: {words}", file=sys.stderr)
        arguments.seed += 1
    print(last_line("tune", {name: [r[name] for r in rounds] for name in rounds[0]}))


if __name__ == "__main__":
    main()
