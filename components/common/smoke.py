"""A package is tried out before it is trusted: loaded and asked in a fresh process, without us.

The process has torch, numpy, pandas and the package, and neither this project's code nor its
credentials: what works there works wherever the model is served. `smoke_child.py` is what it runs.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from components.common.decision_figures import SmokeFigures

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

_CHILD = Path(__file__).with_name("smoke_child.py")
_CLOSED = ("components", "infra", "pipelines", "training_core")
# All that the process sees of the environment: no keys, no tokens, no addresses of servers.
_ENVIRONMENT = (
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT",
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS",
)  # fmt: skip
_PATIENCE = 10  # seconds that the process may outlast its time, should nobody end it
RELATIVE, ABSOLUTE = 1e-4, 1e-5  # as training_core.package.write_package
_AGAIN = "package it again: evertrain run PROJECT --force"
_HINTS = {
    "files": f"copy the package again from the object store, or {_AGAIN}",
    "imports": "torch, numpy and pandas have to be importable; look at the image",
    "preprocessor": "preprocessor.py has to rebuild itself from preprocessor.json with the "
    "standard library, numpy, pandas and torch",
    "network": f"network.pt2 has to be loaded by the torch that wrote it; {_AGAIN}",
    "scoring": "try the preprocessor on these rows: evertrain check PROJECT",
}
_HINTS["scoring one row"] = _HINTS["rows"] = _HINTS["scoring"]
_DOING = {
    "files": "its files were verified",
    "imports": "torch was imported",
    "preprocessor": "preprocessor.py was loaded",
    "network": "network.pt2 was loaded",
    "rows": "the rows were read",
    "scoring": "rows were scored",
    "scoring one row": "one row was scored",
    "done": "it ended",
}


def smoke_test(
    folder: Path,
    rows: pd.DataFrame | None,
    expected: npt.NDArray[np.float64] | None,
    *,
    timeout: float = 120,
    measure: bool = True,
) -> SmokeFigures:
    """Load a package in a fresh process, score raw rows, and hold them against what is recorded.

    Args:
        folder: As `training_core.package.write_package` writes it.
        rows: Raw rows, as a split's Parquet file has them; None, or no row: it is only loaded.
        expected: Their predictions, [N], [N, K] or [N, T, V]; None: there is nothing to compare.
        timeout: Seconds after which the process and all that it started are killed.
        measure: Time single rows and batches as well, which takes a second.

    Returns:
        Whatever is wrong with the package is said in its message; nothing is raised for it.
    """
    with tempfile.TemporaryDirectory(prefix="evertrain-smoke-", ignore_cleanup_errors=True) as name:
        place = Path(name).resolve()
        count = 0 if rows is None else len(rows)
        if rows is not None and count:
            rows.to_parquet(place / "rows.parquet", index=False)
        status = _run(folder, place, timeout, measure=measure)
        said = _read(place)
        figures = SmokeFigures(
            outcome="pass",
            message="",
            how=_how(said),
            load_seconds=said.get("load_seconds"),
            latency_ms=said.get("latency_ms"),
            latency_p99_ms=said.get("latency_p99_ms"),
            rows_per_second=said.get("rows_per_second"),
            peak_memory_mb=said["peak_bytes"] / 1e6 if "peak_bytes" in said else None,
            size_mb=sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6,
        )
        fault = _ended_badly(status, said, place, timeout) or _went_wrong(said)
        if not fault and count:
            figures.rows = count
            found, alone = (np.load(place / f"{name}.npy") for name in ("predictions", "alone"))
            fault = _impossible(found, count)
            if not fault and expected is not None:
                fault, figures.largest_difference = _compare(found, expected)
            fault = fault or _moody(found, alone)
    if fault:
        figures.outcome, figures.message = "fail", fault
    else:
        figures.message = _praise(figures)
    return figures


def _run(folder: Path, place: Path, timeout: float, *, measure: bool) -> int | None:
    """Run the process to its end; return its status, or None if it had to be killed."""
    request = {
        "package": str(folder.resolve()),
        "closed": _CLOSED,
        "seconds": int(timeout) + _PATIENCE,
        "began": time.monotonic(),
        "measure": measure,
    }
    (place / "request.json").write_text(json.dumps(request))
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    # Caches and getpass want a home and a user, and the home of ours may hold credentials.
    own = {"HOME": str(place), "TMPDIR": str(place), "USER": "smoke", "LOGNAME": "smoke"}
    with (place / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(_CHILD), str(place)],
            cwd=place,
            env=kept | own | {"CUDA_VISIBLE_DEVICES": ""},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)  # it, and all that it started
        process.wait()


def _read(place: Path) -> dict[str, Any]:
    try:
        said: dict[str, Any] = json.loads((place / "said.json").read_text())
    except (OSError, ValueError):
        return {}
    return said


def _how(said: dict[str, Any]) -> str:
    if "torch" not in said:
        return ""
    beside = f" and {', '.join(said['beside'])}" if said.get("beside") else ""
    return f"torch {said['torch']}{beside}, without the project's code"


def _ended_badly(status: int | None, said: dict[str, Any], place: Path, timeout: float) -> str:
    """Say how the process ended, if it was not of itself."""
    if status is None:
        return (
            f"the package was not loaded and tried out within {timeout:g} s, and was stopped: "
            "does preprocessor.py wait for something, or is this machine busy?"
        )
    if said and status == 0:
        return ""
    last = (place / "output").read_text(errors="replace").strip().splitlines()[-1:]
    words = f" (it last said: {last[0][:300]})" if last else ""
    if status == -signal.SIGKILL:
        return (
            f"the process that tried the package out was killed (SIGKILL){words}, as the system "
            "does where memory is short: give it more memory, or make the model smaller"
        )
    if status < 0:
        return (
            f"the process that tried the package out crashed with {signal.Signals(-status).name}"
            f"{words}: load the package by hand to see where"
        )
    return (
        f"the process that tried the package out ended with status {status} and said nothing"
        f"{words}: does preprocessor.py end the process?"
    )


def _went_wrong(said: dict[str, Any]) -> str:
    """Say what the process met."""
    stage, error = said["stage"], said.get("error")
    if error and said.get("module"):
        return (
            f"preprocessor.py imports {said['module']}, which is not there where the package is "
            "served: it may import the standard library, numpy, pandas and torch"
        )
    if error and error.startswith("MemoryError"):
        return (
            f"memory ran out when {_DOING[stage]}: give the process more, or make the model smaller"
        )
    if error:
        return f"the package failed when {_DOING[stage]}: {error}; {_HINTS[stage]}"
    if said["foreign"]:
        return (
            f"the package imports what does not travel with it: {'; '.join(said['foreign'][:3])}; "
            "move that code into the preprocessor's own file"
        )
    return ""


def _impossible(found: npt.NDArray[np.float64], count: int) -> str:
    if found.shape[:1] != (count,) or not 1 <= found.ndim <= 3:
        return (
            f"the package gives predictions of the shape {list(found.shape)} for {count} rows: "
            "their first dimension has to be the rows; mend the task's predict or the preprocessor"
        )
    bad = ~np.isfinite(found.reshape(count, -1)).all(axis=1)
    if bad.any():
        return (
            f"the predictions of {int(bad.sum())} of {count} rows are not finite, the first that "
            f"of row {int(bad.argmax())}: which of its values does the preprocessor let through?"
        )
    return ""


def _compare(
    found: npt.NDArray[np.float64], expected: npt.NDArray[np.float64]
) -> tuple[str, float | None]:
    """Hold predictions against those that are recorded; return the fault and the difference."""
    if found.shape != expected.shape:
        return (
            f"the package gives predictions of the shape {list(found.shape)}, and "
            f"{list(expected.shape)} are recorded: was another package evaluated? {_AGAIN}",
            None,
        )
    largest = float(np.abs(found - expected).max())
    far = ~np.isclose(found, expected, rtol=RELATIVE, atol=ABSOLUTE).reshape(len(found), -1)
    if not far.any():
        return "", largest
    row = int(far.any(axis=1).argmax())
    place = int(far[row].argmax())
    values = [float(each.reshape(len(found), -1)[row, place]) for each in (found, expected)]
    return (
        f"the package predicts something else than was recorded for {int(far.any(axis=1).sum())} "
        f"of {len(found)} rows: row {row} gives {values[0]:.6g}, and {values[1]:.6g} is recorded "
        f"(largest difference {largest:.2g}): was another package evaluated? {_AGAIN}",
        largest if np.isfinite(largest) else None,
    )


def _moody(found: npt.NDArray[np.float64], alone: npt.NDArray[np.float64]) -> str:
    """Say whether a row's prediction depends on the rows that are scored with it."""
    beside = found[: len(alone)]
    if beside.shape == alone.shape and np.allclose(alone, beside, rtol=RELATIVE, atol=ABSOLUTE):
        return ""
    return (
        "a row scored by itself gets another prediction than among others: the preprocessor or "
        "the network computes something over the rows of a batch; it has to be learned in fit"
    )


def _praise(figures: SmokeFigures) -> str:
    text = f"loaded in {figures.load_seconds:.1f} s by {figures.how}"
    if not figures.rows:
        return f"{text}; it was given no rows"
    text += f", scored {figures.rows:,} rows"
    if figures.largest_difference is not None:
        text += f" as recorded (largest difference {figures.largest_difference:.1g})"
    return text if figures.latency_ms is None else f"{text}; {figures.latency_ms:.1f} ms a row"
