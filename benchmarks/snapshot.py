"""A snapshot of a million known objects and one new one, beside the listing that it needs.

    make bench-snapshot        # or: python -m benchmarks.snapshot --count 5

The objects are files of one byte in a thousand folders; that they are Parquet says the manifest of
the snapshot before, which is written here. Each round adds a Parquet object and times, in random
order, in processes of their own:

- snapshot: read the manifest before, list, read and hash what is new, write the new manifest;
- listing: `store.list()` to its end, nothing kept, and then fetching and hashing that object.

`--s3 URI` lists a prefix of a bucket instead, which has to hold Parquet objects: the first snapshot
reads them all.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.reporting import last_line, table, words_of
from components.common.cache import Cache
from components.common.data_settings import DataSettings
from components.common.layout import sha256_of
from components.common.manifest import COLUMNS, Manifest, keep_manifest
from components.common.sources import open_source
from components.snapshot_data.listing import BATCH, list_objects
from components.snapshot_data.taking import take_next_snapshot
from infra.folder import FolderStore

FOLDERS = 1000


def make_objects(root: Path, count: int) -> None:
    """Write that many tiny files: a million take 40 seconds."""
    for folder in range(FOLDERS):
        place = root / f"day={folder:04}"
        place.mkdir(parents=True)
        handle = os.open(place, os.O_RDONLY)
        for number in range(folder * count // FOLDERS, (folder + 1) * count // FOLDERS):
            name = f"part-{number:07}.parquet"
            file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=handle)
            os.write(file, b"x")
            os.close(file)
        os.close(handle)


def known(source: str) -> Manifest:
    """A manifest of all objects as if they had been read; their hashes are random."""
    settings = DataSettings(source=source, row_key=["x"])
    listing = list_objects(open_source(source), settings)
    count = listing.num_rows
    hashes = pa.py_buffer(np.random.default_rng(0).bytes(32 * count))
    columns = [
        *listing.columns, pa.array([""] * count),
        pa.FixedSizeBinaryArray.from_buffers(pa.binary(32), count, [None, hashes]),
        pa.array(np.full(count, 100)), pa.array(np.zeros(count, np.int32)),
    ]  # fmt: skip
    rows = pa.Table.from_arrays(columns, schema=COLUMNS)
    rows = pa.Table.from_batches(rows.combine_chunks().to_batches(max_chunksize=BATCH))
    return Manifest(source, source, rows, [{"x": "int64"}])


def snapshot(source: str, place: Path) -> int:
    """Take a snapshot as the step does; return how many objects were new."""
    store, settings = FolderStore(place / "store"), DataSettings(source=source, row_key=["x"])
    opened, cache = open_source(source), Cache(place / "cache")
    taken = take_next_snapshot(opened, settings=settings, store=store, cache=cache)
    return int(taken.new.sum())


def listing(source: str, place: Path, newest: str) -> int:
    """List, and read and hash one object."""
    opened = open_source(source)
    count = sum(1 for part in opened.places for _ in part.list())
    opened.fetch(newest, place / "fetched")
    sha256_of(place / "fetched")
    return count


def measured(kind: str, source: str, place: Path, newest: str) -> tuple[float, float]:
    """Seconds and peak GiB of one of the two in a process of its own; imports are not counted."""
    command = [sys.executable, "-m", "benchmarks.snapshot", "--one", kind, "--source", source]
    command += ["--place", str(place), "--newest", newest]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def one(kind: str, source: str, place: Path, newest: str) -> None:
    """Do one of the two, and print its seconds and peak memory."""
    began = time.perf_counter()
    if kind == "snapshot":
        assert snapshot(source, place) == 1, "one object is new"
    else:
        listing(source, place, newest)
    seconds = time.perf_counter() - began
    # not ru_maxrss: a child begins with its parent's
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    print(seconds, int(peak[1]) / 2**20)


def main() -> None:
    """Print the table and the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5, help="rounds")
    parser.add_argument("--objects", type=int, default=1_000_000)
    parser.add_argument("--s3", default="", help="a prefix instead of a folder that is made")
    parser.add_argument("--one", default="", help=argparse.SUPPRESS)
    parser.add_argument("--source", default="", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--newest", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.source, given.place, given.newest)
        return
    with tempfile.TemporaryDirectory(prefix="snapshot-") as folder:
        place = Path(folder)
        source = given.s3 or str(place / "data")
        if not given.s3:
            print(f"writing {given.objects} objects", file=sys.stderr)
            make_objects(place / "data", given.objects)
            keep_manifest(FolderStore(place / "store"), known(source), None)
        else:
            snapshot(source, place)
        rounds = measure(source, place, given.count)
    report(rounds)


def measure(source: str, place: Path, count: int) -> dict[str, list[tuple[float, float]]]:
    """Seconds and peak memory of each round."""
    found: dict[str, list[tuple[float, float]]] = {"snapshot": [], "listing": []}
    store = open_source(source).places[0].store
    for number in range(count):
        newest = f"day={FOLDERS // 2:04}/new-{os.getpid()}-{number}.parquet"
        pq.write_table(pa.table({"x": np.arange(number, number + 1000)}), place / "new")
        store.put_file(newest, place / "new")
        for kind in random.sample(list(found), k=2):
            found[kind].append(measured(kind, source, place, newest))
        print("  ".join(f"{k} {v[-1][0]:.2f} s, {v[-1][1]:.2f} GiB" for k, v in found.items()))
    return found


def report(found: dict[str, list[tuple[float, float]]]) -> None:
    """Print what was found."""
    seconds = {kind: [s for s, _ in values] for kind, values in found.items()}
    peaks = {kind: [peak for _, peak in values] for kind, values in found.items()}
    pairs = zip(seconds["snapshot"], seconds["listing"], strict=True)
    ratios = [whole / plain for whole, plain in pairs]
    rows = [[kind, words_of(seconds[kind]), words_of(peaks[kind])] for kind in found]
    print(table(["what", "seconds", "peak GiB"], rows))
    figures = {"incremental_vs_listing": ratios, "snapshot_peak_gib": peaks["snapshot"]}
    print(last_line("snapshot", figures))


if __name__ == "__main__":
    main()
