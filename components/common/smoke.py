"""A package is tried out: loaded in a process of its own, which sees nothing of this project."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from components.common.decision_figures import SmokeFigures

_LOAD = """
import importlib.util, json, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import pandas as pd, torch
folder, rows, torch_threads = Path(sys.argv[1]), sys.argv[2], torch.set_num_threads(1)
manifest = json.loads((folder / "package.json").read_text())
spec = importlib.util.spec_from_file_location("evertrain_preprocessor", folder / "preprocessor.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
state = json.loads((folder / "preprocessor.json").read_text())
preprocessor = getattr(module, manifest["preprocessor"]).from_state_dict(state)
network = torch.export.load(folder / "network.pt2").module()
predictions = None
if rows:
    arrays = preprocessor.transform(pd.read_parquet(rows))
    with torch.no_grad():
        scores = network({name: torch.from_numpy(array) for name, array in arrays.items()})
    predictions = scores.double().tolist()
print(json.dumps({"predictions": predictions}))
"""


def smoke_test(
    folder: Path,
    rows: pd.DataFrame | None,
    expected: npt.NDArray[np.float64] | None,
    *,
    timeout: float = 120,
) -> SmokeFigures:
    """Load a package afresh; score rows with it, which must give what was recorded."""
    with tempfile.TemporaryDirectory() as scratch:
        file = str(Path(scratch, "rows.parquet")) if rows is not None else ""
        if rows is not None:
            rows.to_parquet(file)
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-c", _LOAD, str(folder), file],
                capture_output=True, text=True, timeout=timeout, cwd="/", check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return SmokeFigures(outcome="fail", message=f"it did not answer within {timeout:g} s")
    if ended.returncode != 0:
        last = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
        return SmokeFigures(outcome="fail", message=f"it cannot be loaded: {last}")
    if rows is None or expected is None:
        return SmokeFigures(outcome="pass", message="it loads in a process of its own")
    found = np.asarray(json.loads(ended.stdout.splitlines()[-1])["predictions"], dtype=np.float64)
    if found.shape != expected.shape:
        message = f"its predictions have shape {found.shape}, those recorded {expected.shape}"
        return SmokeFigures(outcome="fail", message=message)
    difference = float(np.abs(found - expected).max(initial=0.0))
    alike = bool(np.allclose(found, expected, rtol=1e-4, atol=1e-5))
    return SmokeFigures(
        outcome="pass" if alike else "fail",
        message=f"{len(found)} rows, largest difference from what was recorded {difference:.2g}",
        rows=len(found),
        largest_difference=difference,
    )
