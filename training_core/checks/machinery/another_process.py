"""A packaged preprocessor in a Python process of its own, as where it is served."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from training_core.task import Arrays, Preprocessor

_SECONDS = 60.0
_IMPORT, _TRANSFORM = 3, 4  # exit codes

_SCRIPT = f"""
import importlib.util, json, sys, traceback
folder, name, class_name = sys.argv[1:]
try:
    spec = importlib.util.spec_from_file_location(name, folder + "/preprocessor.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    kind = getattr(module, class_name)
except BaseException:
    traceback.print_exc()
    sys.exit({_IMPORT})
import numpy, pandas
try:
    with open(folder + "/preprocessor.json") as file:
        fitted = kind.from_state_dict(json.load(file))
    arrays = fitted.transform(pandas.read_pickle(folder + "/rows.pickle"))
except BaseException:
    traceback.print_exc()
    sys.exit({_TRANSFORM})
numpy.savez(folder + "/arrays.npz", **arrays)
"""


class NoProcess(Exception):  # noqa: N818 (nothing is wrong with the preprocessor)
    """There was no other process to compare with; the text says why."""


class Raised(Exception):  # noqa: N818 (the check's finding, not an error of its own)
    """`from_state_dict` or `transform` raised in the other process; the text is the last line."""


def transformed_elsewhere(fitted: Preprocessor, frame: pd.DataFrame) -> Arrays:
    """Return the arrays that a fresh process makes of rows, with the preprocessor's source file.

    Its `PYTHONHASHSEED` is another one than this process has, as that of any server is.

    Raises:
        NoProcess: The class or its module cannot be imported there, or it takes too long.
        Raised: It was imported, and raised.
    """
    kind = type(fitted)
    if "." in kind.__qualname__:
        raise NoProcess(f"{kind.__qualname__} is no class of a module")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "preprocessor.json").write_text(json.dumps(fitted.state_dict()))
        (folder / "preprocessor.py").write_bytes(Path(inspect.getfile(kind)).read_bytes())
        frame.to_pickle(folder / "rows.pickle")
        seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
        paths = os.pathsep.join(path for path in sys.path if path)
        name = kind.__module__ if kind.__module__ != "__main__" else "preprocessor"
        try:
            done = subprocess.run(
                [sys.executable, "-c", _SCRIPT, place, name, kind.__name__],
                env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths},
                capture_output=True, text=True, timeout=_SECONDS, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NoProcess(f"{type(error).__name__}") from error
        if done.returncode:
            last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise Raised(last) if done.returncode == _TRANSFORM else NoProcess(last)
        with np.load(folder / "arrays.npz") as arrays:
            return {name: arrays[name] for name in arrays.files}


def rows_apart(one: Arrays, other: Arrays) -> str:
    """Say which array of `other` is not as in `one`, in what share of rows and where; empty: none.

    Floats may differ by 1e-5 of themselves: sums may be taken in another order.
    """
    if one.keys() != other.keys():
        return f"the arrays are {', '.join(other)} instead of {', '.join(one)}"
    for name, array in one.items():
        found = other[name]
        if found.shape != array.shape or found.dtype != array.dtype:
            return (
                f"{name!r} is {found.dtype} {list(found.shape)}, "
                f"not {array.dtype} {list(array.shape)}"
            )
        if array.dtype.kind == "f":
            same = np.isclose(found, array, rtol=1e-5, atol=1e-6, equal_nan=True)
        else:
            same = found == array
        wrong = ~same.reshape(len(same), -1).all(axis=1)
        if wrong.any():
            place = tuple(np.argwhere(~same)[0].tolist())
            return (
                f"{name!r} differs in {wrong.mean():.0%} of the rows: "
                f"at {list(place)} it is {found[place]:.6g}, not {array[place]:.6g}"
            )
    return ""
