"""A model that is registered in a blink: it multiplies by a factor."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pandas as pd

from infra.registry import Registry
from infra.tracking import Tracking

SERVE = """
from pathlib import Path

import pandas as pd
from mlflow.models import set_model
from mlflow.pyfunc import PythonModel

from tools_of_the_task import combine


class Scaled(PythonModel):
    def load_context(self, context):
        self.factor = int(Path(context.artifacts["package"], "factor.txt").read_text())

    def predict(self, context, model_input: pd.DataFrame, params=None) -> pd.DataFrame:
        return combine(model_input, self.factor)


set_model(Scaled())
"""


class Case:
    """A run, and all that is needed to register a model that multiplies by a factor."""

    def __init__(self, uri: str, folder: Path) -> None:
        self.model = f"model-{uuid.uuid4().hex}"
        self.folder = folder
        experiment = uuid.uuid4().hex
        self.registry = Registry(uri=uri, experiment=experiment)
        tracking = Tracking(uri=uri, experiment=experiment)
        self.run_id = tracking.open_run(key="k", name="n", tags={})

    def register(
        self, *, factor: int = 3, key: str = "one", serve: str = SERVE, combine: str = "x * k"
    ) -> str:
        (self.folder / "package").mkdir(exist_ok=True)
        (self.folder / "package" / "factor.txt").write_text(str(factor))
        (self.folder / "serve.py").write_text(serve)
        code = self.folder / uuid.uuid4().hex / "tools_of_the_task"
        code.mkdir(parents=True)
        (code / "__init__.py").write_text(f"def combine(x, k):\n    return {combine}\n")
        return self.registry.register(
            self.model,
            run_id=self.run_id,
            package=self.folder / "package",
            serve_file=self.folder / "serve.py",
            code_files=[code],
            tags={"run_key": key, "note": "it's new"},
            input_example=pd.DataFrame({"a": [1.0, 2.0]}),
            pip_requirements=["pandas"],
        )

    def predict(self, which: str) -> list[float]:
        predicted = self.registry.load(self.model, which).predict(pd.DataFrame({"a": [1.0, 2.0]}))
        return list(predicted["a"])

    def logged_models(self) -> list[Any]:
        client = self.registry._client
        experiment = client.get_run(self.run_id).info.experiment_id
        return list(client.search_logged_models([experiment]))
