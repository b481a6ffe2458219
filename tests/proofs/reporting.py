"""What every proof prints as its last line."""

from __future__ import annotations

import json
from collections.abc import Mapping

from benchmarks.reporting import commit


def tell(name: str, figures: Mapping[str, float]) -> None:
    """Print the JSON object of a proof: its counts, and the commit they hold for."""
    said = {"name": name, "figures": figures, "spread": {}, "commit": commit()}
    print(json.dumps(said), flush=True)
