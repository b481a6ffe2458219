"""How a registered model scores raw rows in MLflow's stock client, without this project.

MLflow runs this file when it loads the model (its "models from code"). It needs torch, pandas and
the copy of the preprocessor's source that lies in the package.
"""

import importlib.util
import json
import warnings
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import torch
from mlflow.pyfunc import PythonModel


class PackagedModel(PythonModel):  # type: ignore[misc]  # mlflow has no types
    """Raw rows in, one column `prediction` out."""

    def load_context(self, context: Any) -> None:
        folder = Path(context.artifacts["package"])
        manifest = json.loads((folder / "package.json").read_text())
        spec = importlib.util.spec_from_file_location(
            "evertrain_preprocessor", folder / "preprocessor.py"
        )
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        state = json.loads((folder / "preprocessor.json").read_text())
        self.preprocessor = getattr(module, manifest["preprocessor"]).from_state_dict(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.network = torch.export.load(folder / "network.pt2").module()

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        arrays = self.preprocessor.transform(pd.DataFrame(model_input))
        with torch.no_grad():
            scores = self.network({name: torch.from_numpy(a) for name, a in arrays.items()})
        return pd.DataFrame({"prediction": scores.double().numpy()})


mlflow.models.set_model(PackagedModel())
