"""The pipeline: from a snapshot of the data to a promoted model, or the reason why not.

snapshot_data ─► validate_data ─► split_data ─┬─► check_training (─► tune) ─► train_distributed ─►
                                              │   select_checkpoint ─┐
                                              └─► train_baseline ────┴─► evaluate_model ─►
                                                          (refit_model ─►) promote_model
report_run: the exit handler, whatever happened
"""

from collections.abc import Callable
from typing import Any, List  # noqa: UP035 (KFP reads typing's spelling)

from kfp import dsl, kubernetes

from components.check_training.component import check_training
from components.evaluate_model.component import evaluate_model
from components.promote_model.component import promote_model
from components.refit_model.component import refit_model
from components.report_run.component import report_run
from components.select_checkpoint.component import select_checkpoint
from components.snapshot_data.component import snapshot_data
from components.split_data.component import split_data
from components.train_baseline.component import train_baseline
from components.train_distributed.component import train_distributed
from components.tune.component import tune
from components.validate_data.component import validate_data

NAME = "continuous-training"


def build(
    place: Callable[[dsl.PipelineTask], None] = lambda task: None,
    *,
    tuned: bool = False,
    refitted: bool = False,
) -> Any:
    """Return the pipeline.

    Args:
        place: Gives each task its place on a cluster (`pipelines.placing`); not given: tasks stay
            as their components are, as on a laptop.
        tuned: With the step tune, whose winner's settings all steps behind it take. Without it the
            pipeline has no such step: a condition would be one more task in every run.
        refitted: With the step refit_model, whose model promote_model takes.
    """

    def put(task: dsl.PipelineTask, *, cached: bool = True) -> dsl.PipelineTask:
        """Tell a step which run it belongs to without making that an input (that ends caching).

        Locally the variable is inherited; on Kubeflow it comes from the pod's label.
        """
        task.set_caching_options(cached)
        kubernetes.use_field_path_as_env(
            task, env_name="EVERTRAIN_RUN_ID", field_path="metadata.labels['pipeline/runid']"
        )
        place(task)
        return task

    @dsl.pipeline(name=NAME, display_name="Continuous training")
    def continuous_training(
        project: str = "examples/flights",
        data: str = "",
        store: str = "",
        overrides: List[str] = [],  # noqa: B006, UP006 (KFP's way to give a default)
        force: bool = False,
    ) -> None:
        """Validate the data, train, compare with the champion, and promote or say why not.

        Args:
            project: Folder of the project inside the image.
            data: Where the data is (folder or s3://bucket/prefix); empty: as in evertrain.yaml.
            store: Object store for checkpoints, records and the promotion log; empty: as in
                evertrain.yaml or the environment.
            overrides: Settings as key=value, for example training.epochs=2.
            force: Train even if the same data, code and configuration were trained before.
        """
        report = put(report_run(project=project, store=store, overrides=overrides), cached=False)
        with dsl.ExitHandler(report, name="run"):
            common = {"project": project, "store": store, "overrides": overrides}
            snapshot = put(snapshot_data(data=data, force=force, **common), cached=False)
            common["run_key"] = snapshot.outputs["run_key"]
            with dsl.If(snapshot.outputs["Output"] == "train", name="something new"):
                validated = put(
                    validate_data(data_digest=snapshot.outputs["data_digest"], **common)
                )
                split = put(split_data(validated=validated.outputs["validated"], **common))
                splits = split.outputs["splits"]
                checked = put(check_training(splits=splits, **common))
                baselines = put(train_baseline(splits=splits, **common))
                if tuned:
                    searched = put(tune(splits=splits, **common)).after(checked)
                    common["overrides"] = searched.outputs["overrides"]
                trained = put(train_distributed(splits=splits, **common)).after(checked)
                selected = put(
                    select_checkpoint(splits=splits, training=trained.outputs["training"], **common)
                )
                evaluated = put(
                    evaluate_model(
                        splits=splits,
                        model=selected.outputs["model"],
                        baselines=baselines.outputs["baselines"],
                        **common,
                    ),
                    cached=False,  # the champion may have changed
                )
                decided = {
                    "decision": evaluated.outputs["decision"],
                    "model": selected.outputs["model"],
                }
                if refitted:
                    again = put(
                        refit_model(
                            splits=splits,
                            training=trained.outputs["training"],
                            judged=decided["model"],
                            verdict=decided["decision"],
                            **common,
                        ),
                        cached=False,  # as the verdict
                    )
                    decided = {name: again.outputs[name] for name in decided}
                put(promote_model(**decided, **common), cached=False)

    return continuous_training
