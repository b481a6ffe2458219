"""Load a package with torch, numpy and pandas alone, score raw rows with it, and measure.

    python -I -B smoke_child.py FOLDER

`smoke.py` runs this file by its path, in a process of its own, and writes `request.json` and
`rows.parquet` into the folder; this writes `said.json`, `predictions.npy` (of all rows) and
`alone.npy` (of the first rows, each scored by itself). It imports nothing of the project: the four
folders of this house cannot be imported here even where they are installed, nor is there a network.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import signal
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    Predict = Callable[[pd.DataFrame], npt.NDArray[np.float64]]

_BATCH = 8192
_ALONE = 8
_CALLS = 200
_SECONDS = 0.4  # of each of the two measurements
_FREE = {"numpy", "pandas", "torch"}  # what a preprocessor may import beside the standard library


def main(place: Path) -> None:
    """Do what `request.json` asks; whatever goes wrong is said in `said.json`."""
    request = json.loads((place / "request.json").read_text())
    signal.alarm(request["seconds"])  # ends this process where nobody is left to end it
    said: dict[str, Any] = {"stage": "files"}
    try:
        _shut(request["closed"])
        _smoke(Path(request["package"]), place, said, request)
    except BaseException as error:  # noqa: BLE001 (a package may raise anything, SystemExit too)
        said["error"] = _words(error)
        said["module"] = getattr(error, "name", None) if isinstance(error, ImportError) else None
    (place / "said.json").write_text(json.dumps(said))
    os._exit(0)  # taking torch down would take a tenth of a second


def _smoke(package: Path, place: Path, said: dict[str, Any], request: dict[str, Any]) -> None:
    manifest = verified(package)
    warnings.simplefilter("ignore")
    before = set(sys.modules)
    said["stage"] = "preprocessor"  # before torch, which takes long to import
    source = (package / "preprocessor.py").read_bytes()
    said["beside"] = sorted(imports(source) - _FREE - sys.stdlib_module_names)
    kind = getattr(_executed(source, package / "preprocessor.py"), manifest["preprocessor"])
    preprocessor = kind.from_state_dict(json.loads((package / "preprocessor.json").read_text()))
    said["stage"] = "imports"
    import numpy as np
    import torch

    said |= {"stage": "network", "torch": torch.__version__}
    network = torch.export.load(package / "network.pt2").module()
    said["load_seconds"] = time.monotonic() - request["began"]

    @torch.no_grad()
    def predict(frame: pd.DataFrame) -> npt.NDArray[np.float64]:
        arrays = preprocessor.transform(frame)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        scores: npt.NDArray[np.float64] = network(tensors).double().numpy()
        return scores

    if (place / "rows.parquet").exists():
        import pandas as pd

        said["stage"] = "rows"
        rows = pd.read_parquet(place / "rows.parquet")
        said["stage"] = "scoring"
        np.save(place / "predictions.npy", np.concatenate([predict(b) for b in batches(rows)]))
        said["stage"] = "scoring one row"
        first = [predict(rows.iloc[[i]]) for i in range(min(_ALONE, len(rows)))]
        np.save(place / "alone.npy", np.concatenate(first))
        if request["measure"]:
            said |= _measured(predict, rows)
    said["peak_bytes"] = peak_bytes()
    said["foreign"] = foreign(set(sys.modules) - before, package)
    said["stage"] = "done"


def verified(package: Path) -> dict[str, Any]:
    """Return `package.json`, once each file that it names has its hash.

    Raises:
        ValueError: A file is missing, damaged or of another format.
    """
    if not (package / "package.json").is_file():
        raise ValueError("package.json is missing")
    try:
        manifest: dict[str, Any] = json.loads((package / "package.json").read_text())
        files, form = dict(manifest["files"]), manifest["format"]
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"package.json is damaged: {_words(error)}") from error
    if form != "evertrain/package/1":
        raise ValueError(f"package.json is of the format {form!r}, not 'evertrain/package/1'")
    for name in ("network.pt2", "preprocessor.json", "preprocessor.py"):
        if not (package / name).is_file():
            raise ValueError(f"{name} is missing")
        with (package / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != files.get(name):
            raise ValueError(
                f"{name} is damaged: its sha256 begins with {found[:12]}, and package.json says "
                f"{str(files.get(name))[:12]}"
            )
    return manifest


def _executed(source: bytes, path: Path) -> ModuleType:
    """Make a module of a source: of these bytes, which were verified, never of a cached file."""
    module = ModuleType("evertrain_preprocessor")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look their module up there
    exec(compile(source, str(path), "exec"), vars(module))  # noqa: S102 (it is what serving does)
    return module


def imports(source: bytes) -> set[str]:
    """Return the first names of the modules that a source imports, wherever in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names}


def batches(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Cut the rows as `training_core.package.Package` does."""
    return [rows.iloc[start : start + _BATCH] for start in range(0, len(rows), _BATCH)]


def _measured(predict: Predict, rows: pd.DataFrame) -> dict[str, float]:
    """Time single rows and batches; both are warm by now."""
    import numpy as np

    seconds: list[float] = []
    while len(seconds) < _CALLS and sum(seconds) < _SECONDS:
        row = rows.iloc[[len(seconds) % len(rows)]]
        began = time.perf_counter()
        predict(row)
        seconds.append(time.perf_counter() - began)
    passes, began = 0, time.perf_counter()
    while passes == 0 or time.perf_counter() - began < _SECONDS:
        for batch in batches(rows):
            predict(batch)
        passes += 1
    return {
        "latency_ms": 1000 * float(np.median(seconds)),
        "latency_p99_ms": 1000 * float(np.percentile(seconds, 99)),
        "rows_per_second": passes * len(rows) / (time.perf_counter() - began),
    }


def peak_bytes() -> int:
    """Return the most memory that this process held at once.

    On Linux `ru_maxrss` begins with what the parent held when it started this process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return int(fields["VmHWM"].split()[0]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def foreign(names: set[str], package: Path) -> list[str]:
    """Return modules that came neither with the package nor from where libraries are installed."""
    import numpy as np
    import torch

    libraries = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib")]
    libraries += [str(Path(str(library.__file__)).parents[1]) for library in (np, torch)]
    homes = [package, *map(Path, libraries)]
    inside = tuple(f"{each}{os.sep}" for home in homes for each in (home, home.resolve()))
    found = []
    for name in sorted(names - {"__mp_main__"}):  # this file, by multiprocessing's name for it
        file = getattr(sys.modules.get(name), "__file__", None) or ""
        known = file.startswith(inside) or os.path.realpath(file).startswith(inside)
        if os.path.isabs(file) and not known:  # torch.ops has a file without a place
            found.append(f"{name} from {file}")
    return found


def _shut(closed: list[str]) -> None:
    """Let the named modules be imported no more, and nothing reach the network."""
    for name in closed:
        sys.modules[name] = None  # type: ignore[assignment]  # any import of it fails

    def refuse(event: str, _: Any) -> None:
        if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            raise PermissionError("it wants the network, which is not there where it is served")

    sys.addaudithook(refuse)


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return lines[0] if lines and type(error) is ValueError else text


if __name__ == "__main__":
    main(Path(sys.argv[1]))
