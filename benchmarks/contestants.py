"""Which trainers take part, and where those that are not ours are installed."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import warnings
from collections.abc import Sequence

from benchmarks.peers.run import Contestant
from benchmarks.reporting import ROOT

PEERS = ROOT / "build" / "peers"  # `make peers` installs benchmarks/requirements.txt there

MODULES = {
    "ours": "ours",
    "plain": "plain",
    "raw DDP": "raw_ddp",
    "Lightning": "lightning_trainer",
    "Fabric": "fabric",
    "accelerate": "accelerate_loop",
    "HF Trainer": "hf_trainer",
}
PACKAGES = {
    "Lightning": "lightning",
    "Fabric": "lightning",
    "accelerate": "accelerate",
    "HF Trainer": "transformers",
}


def contestants(names: Sequence[str], *, without_peers: bool = False) -> dict[str, Contestant]:
    """Import the contestants.

    Args:
        names: Of `MODULES`.
        without_peers: Leave those out whose package is not installed, and say so.
    """
    if unknown := [name for name in names if name not in MODULES]:
        _fail(f"there is no contestant {unknown[0]!r}", f"choose among: {', '.join(MODULES)}")
    sys.path.append(str(PEERS))  # last: what .venv has comes from there
    here = []
    for name in names:
        package = PACKAGES.get(name)
        if package is None or importlib.util.find_spec(package) is not None:
            here.append(name)
        elif without_peers:
            print(f"left out: {name} ({package} is not installed)", file=sys.stderr)
        else:
            _fail(
                f"{name} cannot take part: the package {package} is not installed",
                "make peers, or give --without-peers to measure without those that are missing",
            )
    warnings.filterwarnings("ignore")
    trains = {n: importlib.import_module(f"benchmarks.peers.{MODULES[n]}").train for n in here}
    _quiet()
    return trains


def _quiet() -> None:
    """Advice that peers print about each run would be most of the output; they set levels of their
    own when they are imported."""
    for name in (
        "lightning",
        "lightning.pytorch",
        "lightning.fabric",
        "accelerate",
        "transformers",
    ):
        logging.getLogger(name).setLevel(logging.ERROR)


def _fail(what: str, hint: str) -> None:
    print(f"error: {what}\n\nhint: {hint}", file=sys.stderr)
    raise SystemExit(2)
