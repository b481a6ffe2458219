"""The steps from training to promotion, run in this process on a project's first month.

evaluate_model is left out: its verdict is written here, and recorded as it records it.
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from components.common.champion import PromotionEntry, PromotionLog
from components.common.decision_figures import EvaluateFigures
from components.common.layout import hashes_of
from components.common.project import open_project
from components.common.records import StepRecord, read_records
from components.promote_model import step as promote_model
from components.refit_model import step as refit_model
from components.select_checkpoint import step as select_checkpoint
from components.train_distributed import step as train_distributed
from infra.folder import FolderStore
from tests.small_project.data_steps import RUN, Metrics, as_a_step_of_its_own
from tests.small_project.splits import write_splits

KEY = "0123456789abcdef" * 2
ON = "refit.enabled=true"


class Steps:
    """A project between two steps.

    Attributes:
        folder: Of the project; what steps leave lies in its folder `left`.
        overrides: Of every step.
    """

    def __init__(self, folder: Path, *overrides: str) -> None:
        self.folder, self.overrides = folder, [ON, *overrides]
        self.left = folder / "left"
        self.store = FolderStore(folder / ".evertrain" / "store")

    def train(self, rows: Any = None) -> None:
        """Divide rows (None: the small project's), train, choose a checkpoint."""
        self.left.mkdir()
        splits, metrics = write_splits(self.folder, rows=rows), Metrics(self.left / "metrics")
        shutil.copyfile(splits, self.left / "splits.json")
        with as_a_step_of_its_own():
            name, given = str(self.folder), self.overrides
            train_distributed.run(
                name, "", given, KEY, str(splits), self._path("training.json"), metrics
            )
            select_checkpoint.run(
                name, "", given, KEY, str(splits), self._path("training.json"),
                self._path("judged"), self._path("candidates.json"), metrics,
            )  # fmt: skip

    def judge(self, verdict: str = "promote", **changes: Any) -> EvaluateFigures:
        """Write a verdict on the chosen package, and its record."""
        task = open_project(self.folder).task()
        metric = {"regression": "squared_error"}.get(task.kind, "log_loss")
        figures = EvaluateFigures.model_validate(
            {
                "verdict": verdict, "reasons": ["it is better"], "metric": metric, "rows": 350,
                "clusters": 7, "compared_entry": 0, "champion": "", "kind": task.kind,
                "metrics": {"challenger": {metric: 0.3}}, "comparisons": [], "gates": [],
                "reliability": {}, "calibration_error": {}, "roc": [], "confusion": [],
                "predictions": "", "package": hashes_of(self.left / "judged"), **changes,
            }
        )  # fmt: skip
        told = figures.model_dump(mode="json")
        (self.left / "verdict.json").write_text(json.dumps(told))
        record = StepRecord(step="evaluate_model", run=RUN, run_key=KEY, status="done",
                            figures=told)  # fmt: skip
        self.store.put(f"runs/{RUN}/evaluate_model.json", record.model_dump_json().encode())
        return figures

    def refit(self, *overrides: str) -> dict[str, Any]:
        """Run refit_model; return its record."""
        shutil.rmtree(self.left / "model", ignore_errors=True)
        self._forget("refit_model")
        with as_a_step_of_its_own():
            refit_model.run(
                str(self.folder), "", [*self.overrides, *overrides], KEY,
                self._path("splits.json"), self._path("training.json"), self._path("judged"),
                self._path("verdict.json"), self._path("model"), self._path("decision.json"),
            )  # fmt: skip
        return self.record("refit_model")

    def promote(self, *overrides: str) -> dict[str, Any]:
        """Run promote_model on what refit_model left; return its record, however it ended."""
        self._forget("promote_model")
        with as_a_step_of_its_own(), suppress(SystemExit):
            promote_model.run(
                str(self.folder), "", [*self.overrides, *overrides], KEY,
                self._path("decision.json"), self._path("model"),
            )  # fmt: skip
        return self.record("promote_model")

    def record(self, step: str) -> dict[str, Any]:
        """The record of a step of this run."""
        return read_records(self.store, RUN)[step].model_dump(mode="json")

    def entries(self) -> list[PromotionEntry]:
        """The promotion log."""
        return PromotionLog(self.store).entries()

    def copy(self, folder: Path, *overrides: str) -> Steps:
        """The same in another folder."""
        shutil.copytree(self.folder, folder)
        return Steps(folder, *(overrides or self.overrides[1:]))

    def _forget(self, step: str) -> None:
        """Let a step begin as for the first time: what ended for good is not tried again."""
        self.store.delete(f"runs/{RUN}/{step}.json")

    def _path(self, name: str) -> str:
        return str(self.left / name)
