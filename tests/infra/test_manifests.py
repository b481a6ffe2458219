"""The manifests: each overlay and component rendered offline, and held against the rules."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.cluster import crd_schemas
from tests.cluster.installations import INSTALLATIONS, README, cluster_of, secrets, table, text_of
from tests.cluster.pod_security import containers
from tests.cluster.references import Cluster, dangling
from tests.cluster.rendering import COMPONENTS, MANIFESTS, OVERLAYS, documents, kustomize
from tests.cluster.schemas import check_manifest
from tests.cluster.secret_search import secrets_in, values_in

Document = dict[str, Any]


def named(document: Document) -> str:
    return f"{document['kind']} {document['metadata']['name']}"


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_every_document_is_what_kubernetes_takes(installation: str) -> None:
    found = cluster_of(installation).documents
    problems = {named(each): problems for each in found if (problems := check_manifest(each))}
    assert not problems
    assert len(found) > 15


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_oldest_kubernetes_that_the_readme_names_takes_it_too(overlay: str) -> None:
    match = re.search(r"Kubernetes (1\.\d+) or later", README)
    assert match is not None
    for each in cluster_of(overlay).documents:
        if crd_schemas.of(each["apiVersion"], each["kind"]) is None:
            kubernetes_validate.validate(each, match[1], strict=True)


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_every_name_leads_to_something(installation: str) -> None:
    assert not dangling(cluster_of(installation))


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_no_rendered_file_holds_a_secret(installation: str) -> None:
    assert not secrets_in(text_of(installation))
    found = cluster_of(installation).documents
    assert not [value for each in found for value in values_in(each)]


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_everything_is_in_one_namespace_and_nothing_is_of_the_whole_cluster(
    installation: str,
) -> None:
    for each in cluster_of(installation).documents:
        assert each["kind"] not in {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"}
        if each["kind"] != "Namespace":
            assert each["metadata"]["namespace"] == "evertrain", named(each)


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_no_role_has_a_wildcard_or_reads_secrets_that_it_does_not_name(installation: str) -> None:
    for name, role in cluster_of(installation).of("Role").items():
        for rule in role["rules"]:
            words = [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]
            assert "*" not in " ".join(words), name
            assert not {"escalate", "bind", "impersonate", "deletecollection"} & set(words), name
            assert not {"pods/exec", "pods/attach", "serviceaccounts/token"} & set(words), name
            if {"secrets", "configmaps"} & set(rule["resources"]):
                assert rule["resourceNames"], name
                assert rule["verbs"] == ["get"], name


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_only_who_needs_the_kubernetes_api_has_a_token_for_it(installation: str) -> None:
    cluster = cluster_of(installation)
    accounts = cluster.of("ServiceAccount")
    with_token = {name for name, each in accounts.items() if each["automountServiceAccountToken"]}
    assert with_token <= {"evertrain-run", "evertrain-sensor"}
    for owner, template in cluster.pods():
        if template.ours:
            assert template.spec["automountServiceAccountToken"] is False, owner


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_our_containers_cannot_write_to_their_image(installation: str) -> None:
    for owner, template in cluster_of(installation).pods():
        for where, container in containers(template.spec):
            if template.ours:
                assert container["securityContext"]["readOnlyRootFilesystem"], (owner, where)
                paths = {mount["mountPath"] for mount in container["volumeMounts"]}
                assert paths & {"/tmp", "/backup"}, f"{owner}, {where} has nowhere to write"


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_the_namespace_enforces_the_restricted_standard(installation: str) -> None:
    (namespace,) = cluster_of(installation).of("Namespace").values()
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


@pytest.mark.parametrize("installation", INSTALLATIONS)
def test_requests_of_all_pods_that_always_run_fit_into_the_quota(installation: str) -> None:
    cluster = cluster_of(installation)
    (quota,) = cluster.of("ResourceQuota").values()
    # 8.5 cores are left for a run: at the least, the default step of 1 core runs beside all this
    total = 0.0
    for kind in ("Deployment", "StatefulSet"):
        for each in cluster.of(kind).values():
            (container,) = each["spec"]["template"]["spec"]["containers"]
            cpu = container["resources"]["requests"]["cpu"]
            cores = float(cpu.removesuffix("m")) / (1000 if cpu.endswith("m") else 1)
            total += cores * each["spec"]["replicas"]
    assert total + 1 < float(quota["spec"]["hard"]["requests.cpu"])
    assert "limits.cpu" not in quota["spec"]["hard"], "it would refuse every step: none has one"


def test_production_pulls_every_image_by_its_digest() -> None:
    images = re.findall(r"^\s*(?:- )?image: (\S+)$", text_of("production"), re.MULTILINE)
    assert images
    assert all(re.fullmatch(r"\S+@sha256:[0-9a-f]{64}", image) for image in images)


def test_production_has_two_watchers_that_no_drain_takes_at_once() -> None:
    cluster = cluster_of("production")
    deployment = cluster.of("Deployment")["evertrain-watch"]["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    budget = cluster.of("PodDisruptionBudget")["evertrain-watch"]["spec"]
    assert budget["maxUnavailable"] == 1


def test_a_copy_of_production_goes_into_another_namespace_as_a_whole(tmp_path: Path) -> None:
    shutil.copytree(MANIFESTS, tmp_path / "kubernetes")
    copy = tmp_path / "kubernetes" / "overlays" / "ours"
    shutil.copytree(copy.parent / "production", copy)
    file = copy / "kustomization.yaml"
    file.write_text(file.read_text().replace("namespace: evertrain\n", "namespace: team-a\n"))
    text = kustomize(copy)
    for each in documents(text):
        assert each["metadata"].get("namespace", "team-a") == "team-a", named(each)
    assert 'namespace="evertrain"' not in text
    assert 'namespace="team-a"' in text


def test_a_change_of_the_watchers_settings_starts_new_pods() -> None:
    names = {
        installation: [
            source["configMapRef"]["name"]
            for source in cluster_of(installation).of("Deployment")["evertrain-watch"]["spec"][
                "template"
            ]["spec"]["containers"][0]["envFrom"]
            if "configMapRef" in source
        ]
        for installation in OVERLAYS
    }
    assert names["local"] != names["production"]


def test_the_sensors_job_is_the_hourly_jobs_pod_for_pod() -> None:
    cluster = cluster_of("+argo-events/sqs")
    hourly = cluster.of("CronJob")["evertrain-look"]["spec"]["jobTemplate"]["spec"]["template"]
    (trigger,) = cluster.of("Sensor")["evertrain-data"]["spec"]["triggers"]
    job = trigger["template"]["k8s"]["source"]["resource"]
    assert job["spec"]["template"] == hourly
    assert "--once" in hourly["spec"]["containers"][0]["args"]
    assert "evertrain-watch" not in cluster.of("Deployment")


@pytest.mark.filterwarnings("ignore:Support for class-based `config`:DeprecationWarning")
def test_trainers_sdk_takes_the_runtime() -> None:
    from kubeflow.trainer.backends.kubernetes import utils
    from kubeflow_trainer_api import models

    (document,) = cluster_of("+train-jobs").of("TrainingRuntime").values()
    assert document["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "torch"
    runtime = models.TrainerV1alpha1TrainingRuntime.from_dict(document)
    assert runtime is not None
    jobs = runtime.spec.template.spec.replicated_jobs
    trainer = utils.get_runtime_trainer("torch", jobs, runtime.spec.ml_policy)
    assert (trainer.framework, trainer.device) == ("torch", "cpu")


def test_the_readme_lists_every_account_policy_secret_and_component() -> None:
    clusters = [cluster_of(each) for each in INSTALLATIONS]
    accounts = {name for each in clusters for name in each.of("ServiceAccount")}
    listed = {row[0].strip("`") for row in table("Who may do what")}
    assert listed == {*accounts, "default"}
    policies = {name for each in clusters for name in each.of("NetworkPolicy")}
    assert {row[0].strip("`") for row in table("Which traffic flows")} | {
        "default-deny"
    } == policies
    wanted = [text for each in clusters for text in dangling(Cluster(each.documents, {}))]
    used = {match[1] for text in wanted if (match := re.search(r"the secret (\S+) is", text))}
    assert used == set(secrets()) - {"mlpipeline-minio-artifact"}  # Kubeflow makes that one
    folders = {
        str(file.parent.relative_to(MANIFESTS / "components"))
        for file in (MANIFESTS / "components").rglob("kustomization.yaml")
    }
    assert folders == {*COMPONENTS, "argo-events/bus"}
    for folder in folders:
        assert f"{folder.partition('/')[0]}/" in README


def test_the_readmes_yaml_can_be_read_and_has_no_secret() -> None:
    for block in re.findall(r"```yaml\n(.*?)```", README, re.DOTALL):
        assert yaml.safe_load(block)
    assert not secrets_in(README)
