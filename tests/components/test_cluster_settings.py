"""`cluster`, `schedules`, `watch` and `lease` of evertrain.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from components.common.cluster_settings import ClusterSettings
from components.common.project import open_project
from components.common.provenance import provenance
from components.common.trigger_settings import LeaseSettings, WatchSettings
from training_core.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "small_project"


def test_a_step_gets_what_all_get_but_for_what_it_is_given_itself() -> None:
    cluster = ClusterSettings.model_validate(
        {
            "pods": {
                "default": {"cpu": "1", "memory": "4Gi", "node_selector": {"pool": "cheap"}},
                "train_distributed": {"memory": "64Gi", "gpus": 8},
            }
        }
    )
    trained, split = cluster.pod("train_distributed"), cluster.pod("split_data")
    assert (trained.cpu, trained.memory, trained.gpus) == ("1", "64Gi", 8)
    assert trained.node_selector == {"pool": "cheap"}
    assert (split.memory, split.gpus) == ("4Gi", 0)


def test_a_step_whose_nodes_have_pods_of_their_own_holds_no_accelerator() -> None:
    cluster = ClusterSettings.model_validate(
        {
            "pods": {
                "default": {"memory": "4Gi", "node_selector": {"pool": "cheap"}},
                "train_distributed": {
                    "cpu": "32", "memory": "64Gi", "gpus": 8, "timeout": 7200, "retries": 5,
                    "node_selector": {"pool": "gpu"},
                },
            }
        }
    )  # fmt: skip
    waiting = cluster.waiting_pod()
    assert (waiting.gpus, waiting.memory, waiting.node_selector) == (0, "1Gi", {"pool": "cheap"})
    assert (waiting.timeout, waiting.retries) == (7200, 5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["training.nodes=2", "cluster.train_job.min_nodes=3"], "is more than training.nodes"),
        (
            ["training.nodes=3", "training.deterministic=topology"],
            r"microbatches \(4\) cannot be shared equally .* each of training.nodes \(3\)",
        ),
        (
            ["training.nodes=4", "training.deterministic=topology",
             "cluster.train_job.min_nodes=3"],
            r"min_nodes lets 3 nodes train, and training.canonical_microbatches \(4\)",
        ),
        (
            ["training.nodes=2", "training.parallel.strategy=fsdp",
             "cluster.train_job.min_nodes=1"],
            "min_nodes lets 1 processes train, which fsdp",
        ),
        (
            ["training.nodes=4", "training.parallel.strategy=fsdp",
             "training.parallel.replicas=2", "cluster.train_job.min_nodes=3"],
            "min_nodes lets 3 processes train, which fsdp with training.parallel.replicas 2",
        ),
    ],
)  # fmt: skip
def test_numbers_of_nodes_that_cannot_share_the_training_are_refused(
    settings: list[str], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        open_project(SMALL, overrides=settings)


def test_every_number_of_nodes_between_the_least_and_the_most_is_looked_at() -> None:
    opened = open_project(
        SMALL,
        overrides=[
            "training.nodes=2", "training.processes=2", "training.deterministic=topology",
            "cluster.train_job.min_nodes=1",
        ],
    )  # fmt: skip
    assert opened.settings.training.world_size == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pods": {"train": {"cpu": "1"}}}, "train_distributed"),
        ({"pods": {"default": {"memory": "4 GB"}}}, "memory"),
        ({"secrets": {"aws-key": {"secret": "s3"}}}, "is no name of a variable"),
        ({"secrets": {"KEY": {"secret": "s3"}}, "environment": {"KEY": "x"}}, "give it once"),
        ({"pods": {"default": {"tolerations": [{"operator": "In"}]}}}, "Exists"),
    ],
)
def test_what_no_cluster_would_take_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ClusterSettings.model_validate(given)


def test_an_image_is_named_by_its_digest_or_it_is_not() -> None:
    digest = "sha256:" + "a" * 64
    assert ClusterSettings(image=f"registry:5000/evertrain@{digest}").by_digest
    assert ClusterSettings(image=f"registry/evertrain:1@{digest}").by_digest
    for image in ("", "evertrain:0.1.0", "evertrain@sha256:abc", f"evertrain@{digest} "):
        assert not ClusterSettings(image=image).by_digest


def test_a_lease_that_a_step_s_end_would_shorten_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"between \(60\) is shorter than seconds \(120\)"):
        LeaseSettings(between=60)
    assert LeaseSettings(seconds=60, between=60).between == 60


def test_a_batch_that_is_forced_before_it_is_quiet_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"longest \(5\) is shorter than quiet \(30\)"):
        WatchSettings(longest=5)
    assert WatchSettings(longest=0).longest == 0


def test_two_schedules_have_two_names() -> None:
    one = "schedules=[{name: nightly, cron: '0 0 2 * * *'}, {name: nightly, cron: '0 0 3 * * *'}]"
    with pytest.raises(ConfigurationError, match="two have the same name"):
        open_project(SMALL, overrides=[one])


def test_where_a_run_takes_place_and_what_starts_it_is_no_part_of_its_key() -> None:
    elsewhere = [
        "cluster.namespace=team",
        "cluster.pods.default.memory=8Gi",
        "schedules=[{name: nightly, cron: '0 0 2 * * *'}]",
        "watch.poll=5",
        "lease.seconds=30",
    ]
    here = provenance(open_project(SMALL)).config_digest
    assert provenance(open_project(SMALL, overrides=elsewhere)).config_digest == here
    assert provenance(open_project(SMALL, overrides=["training.epochs=9"])).config_digest != here


def test_a_refit_gets_what_training_gets_unless_it_is_told_otherwise() -> None:
    pods = {"default": {"cpu": "1"}, "train_distributed": {"cpu": "8", "gpus": 1}}
    cluster = ClusterSettings.model_validate({"pods": pods})
    assert cluster.pod("refit_model") == cluster.pod("train_distributed")
    told = ClusterSettings.model_validate({"pods": {**pods, "refit_model": {"cpu": "2"}}})
    assert (told.pod("refit_model").cpu, told.pod("refit_model").gpus) == ("2", 0)
