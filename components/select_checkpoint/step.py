"""Evaluate every kept checkpoint on the whole validation split; package the best."""

from __future__ import annotations

from pathlib import Path

from components.common.artifacts import MetricsArtifact, log_metrics, read_json, write_json
from components.common.decision_figures import Candidate, SelectFigures
from components.common.layout import put_object
from components.common.records import step
from components.common.resampling import mean_interval
from components.common.rows import clusters_of, read_part
from training_core.errors import TrainingFailed

RULE = "the smallest mean loss on the whole validation split; on a tie, the earliest"


def run(
    project: str,
    store: str,
    overrides: list[str],
    run_key: str,
    splits: str,
    training: str,
    model: str,
    candidates: str,
    metrics: MetricsArtifact,
) -> None:
    """See `component.py`."""
    with step(
        "select_checkpoint", project=project, store=store, overrides=overrides, run_key=run_key
    ) as context:
        import torch

        from training_core.checkpoints.catalogue import Checkpoints
        from training_core.evaluation import outputs_of
        from training_core.examples import Examples
        from training_core.package import write_package

        settings = context.project.settings
        task = context.project.task()
        parts, trained = read_json(splits), read_json(training)
        validation = read_part(context, parts, "validation")
        preprocessor = type(task.preprocessor()).from_state_dict(trained["preprocessor"])
        examples = Examples.from_frame(task, preprocessor, validation)
        network = task.build_model(preprocessor)
        checkpoints = Checkpoints(context.store, trained["prefix"])
        found, weights = [], {}
        for manifest in checkpoints.manifests():
            state = checkpoints.model_state(manifest)
            if state is None:
                continue
            network.load_state_dict(state)
            outputs = outputs_of(network, examples, device=torch.device("cpu"))
            losses = task.loss(outputs, examples.target).double().numpy()
            interval = mean_interval(
                losses,
                clusters_of(validation, settings),
                confidence=settings.decision.confidence,
                resamples=settings.decision.resamples,
            )
            means = {
                name: float(values.double().mean())
                for name, values in task.metrics(outputs, examples.target).items()
            }
            found.append(
                Candidate(
                    step=manifest.step,
                    metrics={"loss": interval.mean, **means},
                    low=interval.low,
                    high=interval.high,
                )
            )
            weights[manifest.step] = state
        if not found:
            raise TrainingFailed(
                f"no checkpoint below {trained['prefix']} in {context.store.uri} can be read"
                + (f": {checkpoints.damaged[0]}" if checkpoints.damaged else ""),
                hint="evertrain run PROJECT --force trains afresh",
            )
        chosen = min(found, key=lambda c: (c.metrics["loss"], c.step))
        network.load_state_dict(weights[chosen.step])
        files = write_package(
            Path(model),
            task=task,
            preprocessor=preprocessor,
            model=network,
            sample=validation.head(64),
            facts={"step": chosen.step, "run_key": run_key, "seen": parts["seen"]},
        )
        for name, sha256 in files.items():
            stored = put_object(context.store, Path(model) / name)
            assert stored == sha256, name
        table = [c.model_dump() for c in found]
        write_json(candidates, {"rule": RULE, "chosen": chosen.step, "candidates": table})
        context.say(
            SelectFigures(
                metric="loss",
                rule=RULE,
                candidates=found,
                chosen=chosen.step,
                damaged=checkpoints.damaged,
            )
        )
        log_metrics(metrics, {"step": chosen.step, **chosen.metrics})
