"""How a registered model scores raw rows in MLflow's stock client, without this project.

MLflow runs this file when it loads the model (its "models from code"). It needs torch, pandas and
the copy of the preprocessor's source that lies in the package.
"""

import importlib.util
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import mlflow
import pandas as pd
import torch
from mlflow.pyfunc import PythonModel

_BATCH = 8192  # rows at once, as training_core.package.Package scores them


class PackagedModel(PythonModel):  # type: ignore[misc]  # mlflow has no types
    """Raw rows in, in their order out: one column `prediction`, or `prediction.0`, ….

    A column each class or label; of sequences a column each position, whose cells are lists.
    """

    def load_context(self, context: Any) -> None:
        folder = Path(context.artifacts["package"])
        manifest = json.loads((folder / "package.json").read_text())
        name = f"evertrain_preprocessor_{manifest['files']['preprocessor.py'][:16]}"
        spec = importlib.util.spec_from_file_location(name, folder / "preprocessor.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up there
        spec.loader.exec_module(module)
        state = json.loads((folder / "preprocessor.json").read_text())
        self.preprocessor = getattr(module, manifest["preprocessor"]).from_state_dict(state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.network = torch.export.load(folder / "network.pt2").module()

    def predict(self, context: Any, model_input: pd.DataFrame, params: Any = None) -> pd.DataFrame:
        rows = pd.DataFrame(model_input)
        pieces = []
        for start in range(0, max(1, len(rows)), _BATCH):
            arrays = self.preprocessor.transform(rows.iloc[start : start + _BATCH])
            with torch.no_grad():
                scores = self.network({name: torch.from_numpy(a) for name, a in arrays.items()})
            pieces.append(scores.double())
        found = torch.cat(pieces).numpy()
        if found.ndim == 1:
            return pd.DataFrame({"prediction": found}, index=rows.index)
        return pd.DataFrame(
            {
                f"prediction.{place}": found[:, place] if found.ndim == 2 else list(found[:, place])
                for place in range(found.shape[1])
            },
            index=rows.index,
        )


mlflow.models.set_model(PackagedModel())
