"""All rows of a run as one part: train, validation and holdout behind one another."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from components.common.layout import fetch_object, put_object
from components.common.rows import PARTS, times_of
from components.common.unseen import seen_together

if TYPE_CHECKING:
    import pandas as pd

    from components.common.records import StepContext


def all_rows(context: StepContext, splits: dict[str, Any], scratch: Path) -> dict[str, Any]:
    """Put the rows of all parts into the store as one; return the splits of the refit.

    Its validation is the run's, which it is trained on too: what is measured there says whether the
    training diverges, and nothing else.
    """
    from pyarrow import parquet

    files = [
        fetch_object(context.store, splits["parts"][part]["sha256"], context.cache)
        for part in PARTS
    ]
    schema = parquet.read_schema(files[0])
    place = scratch / "all.parquet"
    with parquet.ParquetWriter(place, schema, compression="zstd") as writer:
        for file in files:
            with parquet.ParquetFile(file) as part:
                for batch in part.iter_batches():
                    writer.write_batch(batch.cast(schema))
    rows = sum(splits["parts"][part]["rows"] for part in PARTS)
    whole = {"sha256": put_object(context.store, place), "rows": rows}
    return {**splits, "parts": {"train": whole, "validation": splits["parts"]["validation"]}}


def seen_by_refit(seen: dict[str, str], holdout: pd.DataFrame, time_column: str) -> dict[str, str]:
    """Return what a refit has seen, for later comparisons: the holdout's newest row as well."""
    newest = times_of(holdout, time_column).max()
    return seen_together(seen, {"by": "time", "until": newest.isoformat()})
