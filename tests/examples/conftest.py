"""What the tests of the flights example share."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator

import pandas as pd
import pytest
import torch

from tests.examples.flights_example import prepare


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small are no faster on two threads, and far slower beside other work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def rows() -> pd.DataFrame:
    return prepare.build(prepare.source_folder())


@pytest.fixture(scope="session")
def source() -> dict[tuple[str, str, str, str], dict[str, str]]:
    """The CSV file as it is, by row key, read by other means than the code under test."""
    with zipfile.ZipFile(prepare.source_folder() / "flights.csv.zip") as archive:
        text = io.TextIOWrapper(archive.open("flights.csv"), encoding="utf-8")
        found = {}
        for row in csv.DictReader(text):
            date = f"{row['year']}-{int(row['month']):02d}-{int(row['day']):02d}"
            found[date, row["carrier"], row["flight"], row["origin"]] = row
        return found
