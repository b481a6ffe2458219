"""A small project of each kind of task that is not binary, with its data."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd

KINDS = {
    "multiclass": "SmallMulticlass",
    "multilabel": "SmallMultilabel",
    "regression": "SmallRegression",
    "sequence": "SmallTask",
}
ROWS_A_DAY = 20
CLASSES = np.array(["low", "middle", "high"])


def month(number: int, kind: str) -> pd.DataFrame:
    """The rows of a month of 2025; what is learned is a sum of two numbers, or which letters go on.

    Multilabel: whether the sum is over 0, and whether its first number is over one half.
    """
    first = pd.Timestamp(2025, number, 1, tz="UTC")
    count = first.days_in_month * ROWS_A_DAY
    random = np.random.default_rng(number)
    x, other, noise = random.normal(0, 1, (3, count))
    total = x + other / 2 + noise / 4
    frame = pd.DataFrame(
        {
            "id": np.arange(count, dtype=np.int64) + number * 1_000_000,
            "when": first + pd.to_timedelta(np.arange(count) * 24 * 60 // ROWS_A_DAY, unit="min"),
            "number": x,
            "other": other,
        }
    )
    if kind == "multiclass":
        frame["label"] = CLASSES[np.digitize(total, [-0.5, 0.5])]
    if kind == "multilabel":
        frame["label"] = (total > 0).astype(np.float64)
        frame["second"] = (x + noise / 4 > 0.5).astype(np.float64)
    if kind == "regression":
        frame["label"] = total
    if kind == "sequence":
        frame["word"] = [_word(random) for _ in range(count)]
        frame = frame.drop(columns=["number", "other"])
    return frame


def _word(random: np.random.Generator) -> str:
    """Each letter is mostly the one after that before it."""
    letters = [int(random.integers(5))]
    for _ in range(int(random.integers(3, 12))):
        letters.append(int(letters[-1] + 1 if random.random() < 0.8 else random.integers(5)) % 5)
    return "".join("abcde"[letter] for letter in letters)


def write_months(folder: Path, kind: str, *numbers: int) -> None:
    """Write months as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        month(number, kind).to_parquet(folder / f"2025-{number:02}.parquet", index=False)


def make_kind(folder: Path, kind: str, *months: int) -> Path:
    """Make a project of a kind, with these months of data; return its folder."""
    here = Path(__file__).parent
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(here / "expectations.json", folder / "expectations.json")
    settings = (here / "evertrain.yaml").read_text()
    metric = "squared_error" if kind == "regression" else "log_loss"
    for word, meant in (("KIND", kind), ("METRIC", metric), ("TASK", KINDS[kind])):
        settings = settings.replace(word, meant)
    (folder / "evertrain.yaml").write_text(settings)
    if kind == "sequence":
        shutil.copyfile(here / "sequence_task.py", folder / "task.py")
        shutil.copyfile(here / "letters.py", folder / "letters.py")
    else:
        shutil.copyfile(here / "numbers_task.py", folder / "task.py")
    write_months(folder / "data", kind, *months)
    return folder
