"""What benchmarks that replay a year of flights by months share: the year, and what is asked."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pandas as pd
import torch

from benchmarks.reporting import ROOT

FLIGHTS = ROOT / "examples" / "flights"
CPU = torch.device("cpu")


def studied(
    words: str, study: Callable[[ModuleType, pd.DataFrame, range, int], Any], *, seeds: int
) -> tuple[ModuleType, pd.DataFrame, list[Any]]:
    """Read the command line, and study the months that it names with as many seeds as it says.

    Args:
        words: What the benchmark does; its first line is the help.
        study: From the year's module, its labelled rows, months and a seed.
        seeds: Unless `--count` says otherwise.

    Returns:
        The year's module, its rows, and what each seed gave.
    """
    parser = argparse.ArgumentParser(description=words.partition("\n")[0])
    parser.add_argument("--count", type=int, default=seeds, help="seeds")
    parser.add_argument("--months", default="4-12", help="that are judged on")
    arguments = parser.parse_args()
    first, _, last = arguments.months.partition("-")
    months = range(int(first), int(last or first) + 1)
    torch.set_num_threads(1)
    year = _year()
    rows = year.build(year.source_folder())
    rows = rows[rows[year.LABEL].notna()].reset_index(drop=True)
    return year, rows, [study(year, rows, months, seed) for seed in range(arguments.count)]


def _year() -> ModuleType:
    """The example's own study of the year: its splits and its intervals."""
    spec = importlib.util.spec_from_file_location("flights_year", FLIGHTS / "year.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
