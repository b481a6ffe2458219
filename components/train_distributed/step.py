"""Start training in this process or under torchrun, and record how it went."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.figures import EvaluationPoint, TrainFigures, TrainPoint
from components.common.records import StepContext, step, threads_of
from components.train_distributed.job import checkpoint_prefix, train
from components.train_distributed.launch import run_to_end
from infra import errors as infra_errors
from infra.errors import OutsideError
from training_core import errors as training_errors
from training_core.errors import TrainingFailed


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    training: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "train_distributed", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        job = {
            "project": project,
            "store": store,
            "overrides": overrides,
            "run_key": run_key,
            "splits": read_json(splits),
            "lease": context.holding.token,
        }
        if context.project.settings.training.processes == 1:
            result = train(**job)
        else:
            result = _torchrun(context, job)
        outcome = result["outcome"]
        context.say(
            TrainFigures(
                parameters=result["parameters"],
                steps=outcome["steps"],
                samples=outcome["samples"],
                epochs=outcome["samples"] / job["splits"]["parts"]["train"]["rows"],
                processes=result["processes"],
                device=result["device"],
                precision=result["precision"],
                resumed_from=outcome["resumed_from"],
                skipped_steps=outcome["skipped_steps"],
                stop_reason=outcome["stop_reason"],
                samples_per_second=outcome["samples_per_second"],
                rollbacks=outcome["rollbacks"],
                curve=[TrainPoint(**point) for point in outcome["curve"]],
                evaluations=[
                    EvaluationPoint(step=number, metrics=values)
                    for number, values in outcome["evaluations"]
                ],
                checkpoints=result["checkpoints"],
                damaged=result["damaged"],
            )
        )
        write_json(
            training,
            {
                "format": "evertrain/training/1",
                "prefix": checkpoint_prefix(run_key),
                "preprocessor": result["preprocessor"],
            },
        )
        last = outcome["evaluations"][-1][1] if outcome["evaluations"] else {}
        log_metrics(
            metrics,
            {f"validation_{name}": value for name, value in last.items()}
            | {"steps": outcome["steps"], "samples_per_second": outcome["samples_per_second"]},
        )


def _torchrun(context: StepContext, job: dict[str, Any]) -> dict[str, Any]:
    """Run the job on several processes of this machine.

    Raises:
        TrainingFailed, OutsideError: As the first failing rank said.
        KeyboardInterrupt: It was asked to stop.
    """
    scratch = context.home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    file = scratch / f"train-{job['run_key']}-{os.getpid()}.json"
    done, failed = (file.with_name(file.name + suffix) for suffix in (".done", ".failed"))
    settings = context.project.settings.training
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone",
        "--local-addr=127.0.0.1",  # the host's own name may not resolve without a network
        "--no-python", f"--nproc-per-node={settings.processes}",
        sys.executable, "-m", "components.train_distributed.worker", str(file),
    ]  # fmt: skip
    env = {**os.environ, "OMP_NUM_THREADS": str(threads_of(settings))}
    try:
        for stale in (done, failed):  # in a pod, processes have the same numbers at each start
            stale.unlink(missing_ok=True)
        file.write_text(json.dumps(job))
        code, asked = run_to_end(command, env)
        if done.exists():
            result: dict[str, Any] = json.loads(done.read_text())
            return result
        raise _failure(failed, code, asked=asked)
    finally:
        for path in (file, done, failed):
            path.unlink(missing_ok=True)


def _failure(failed: Path, code: int, *, asked: bool) -> BaseException:
    """Turn what the first failing rank left into the exception it was."""
    if not failed.exists():
        if asked:  # before training had begun, or twice
            return KeyboardInterrupt()
        return OutsideError(
            f"torchrun ended with code {code} and no rank said why: one was killed (out of "
            "memory?)",
            hint="run the same command again: training goes on from its newest checkpoint",
        )
    first = json.loads(failed.read_text().splitlines()[0])
    if first["kind"] == "KeyboardInterrupt":
        return KeyboardInterrupt()
    for module in (training_errors, infra_errors):
        kind = getattr(module, first["kind"], None)
        if kind is not None:
            exception: BaseException = kind(first["what"], hint=first["hint"])
            return exception
    return TrainingFailed(
        f"rank {first['rank']} failed: {first['what']}", hint="its traceback is in the run's log"
    )
