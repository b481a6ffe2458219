"""Run a pipeline's package by `kfp.local`, in this process: what `LocalPipeline` starts."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path


def main(home: Path) -> None:
    warnings.simplefilter("ignore")
    from kfp import components, local

    local.init(
        runner=local.SubprocessRunner(use_venv=False),
        pipeline_root=str(home / "artifacts"),
        raise_on_error=True,
    )
    pipeline = components.load_component_from_text((home / "package.yaml").read_text())
    pipeline(**json.loads((home / "parameters.json").read_text()))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
