"""From a TrainJob and its runtime to pods, as kubeflow/trainer and JobSet make them.

`PET_*` as the Torch plugin sets them (`plugins/torch/torch.go`), patches of the runtime merged into
the pod's template, JobSet's and Job's labels, names and defaults (`restartPolicy: OnFailure`,
`backoffLimit: 6`). Runs the replicated job whose ancestor is the trainer; initialisers do not run.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from tests.cluster.kube_admission import ANCESTOR
from tests.cluster.kube_patches import strategically_merged
from tests.cluster.kube_store import Content, suffix

PORT = 29500
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True)
class Plan:
    """What a TrainJob runs: a Job of `nodes` pods.

    Attributes:
        name: Of the replicated job in the runtime.
        job: Spec of the Job (without its template).
        template: Of its pods.
        failure_policy: Of the JobSet; None if it has none.
    """

    trainjob: Content
    name: str
    nodes: int
    job: Content
    job_labels: Content
    template: Content
    failure_policy: Content | None
    jobset: Content

    @property
    def job_name(self) -> str:
        return f"{self.trainjob['metadata']['name']}-{self.name}-0"

    @property
    def backoff_limit(self) -> int:
        return int(self.job.get("backoffLimit", 6))

    def pod(self, index: int, attempt: int, job_uid: str) -> Content:
        """The pod of one node, in one attempt of the JobSet."""
        meta, spec = self.trainjob["metadata"], copy.deepcopy(self.template["spec"])
        labels = {
            "jobset.sigs.k8s.io/jobset-name": meta["name"],
            "jobset.sigs.k8s.io/replicatedjob-name": self.name,
            "jobset.sigs.k8s.io/replicatedjob-replicas": "1",
            "jobset.sigs.k8s.io/job-index": "0",
            "jobset.sigs.k8s.io/restart-attempt": str(attempt),
            "batch.kubernetes.io/job-name": self.job_name,
            "job-name": self.job_name,
            INDEX: str(index),
        }
        told = self.template.get("metadata") or {}
        spec.setdefault("restartPolicy", "OnFailure")
        spec.setdefault("terminationGracePeriodSeconds", 30)
        spec |= {"hostname": f"{self.job_name}-{index}", "subdomain": meta["name"]}
        for container in spec["containers"]:
            container.setdefault("env", []).append(
                {
                    "name": "JOB_COMPLETION_INDEX",
                    "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}},
                }
            )
        return {
            "metadata": {
                "name": f"{self.job_name}-{index}-{suffix()}",
                "generateName": f"{self.job_name}-{index}-",
                "namespace": meta["namespace"],
                "labels": {**(told.get("labels") or {}), **labels},
                "annotations": {**(told.get("annotations") or {}), INDEX: str(index)},
                "ownerReferences": [owner("batch/v1", "Job", self.job_name, job_uid)],
            },
            "spec": spec,
            "status": {"phase": "Pending", "qosClass": "BestEffort"},
        }


def plan_of(trainjob: Content, runtime: Content) -> Plan:
    """What the controllers make of a TrainJob.

    Raises:
        ValueError: The runtime has no job for the trainer.
    """
    spec = copy.deepcopy(runtime["spec"])
    jobset = spec["template"]["spec"]
    job = next(
        (
            each
            for each in jobset["replicatedJobs"]
            if ((each["template"].get("metadata") or {}).get("labels") or {}).get(ANCESTOR)
            == "trainer"
        ),
        None,
    )
    if job is None:
        raise ValueError(f"no replicated job has the label {ANCESTOR}: trainer")
    for patch in trainjob["spec"].get("runtimePatches") or []:
        template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        for each in (template.get("spec") or {}).get("replicatedJobs") or []:
            if each["name"] == job["name"]:
                job = strategically_merged(job, each)
    trainer = trainjob["spec"].get("trainer") or {}
    policy = spec.get("mlPolicy") or {}
    nodes = int(trainer.get("numNodes") or policy.get("numNodes") or 1)
    template = job["template"]["spec"]["template"]
    if trainer:
        _override(template, trainer, trainjob["metadata"]["name"], nodes, policy)
    rest = {name: value for name, value in job["template"]["spec"].items() if name != "template"}
    rest |= {"completions": nodes, "parallelism": nodes, "completionMode": "Indexed"}
    return Plan(
        trainjob=trainjob, name=job["name"], nodes=nodes, job=rest, template=template,
        job_labels=(job["template"].get("metadata") or {}).get("labels") or {},
        failure_policy=jobset.get("failurePolicy"), jobset=jobset,
    )  # fmt: skip


def _override(template: Content, trainer: Content, name: str, nodes: int, policy: Content) -> None:
    for container in template["spec"]["containers"]:
        if container["name"] != "node":
            continue
        for field in ("image", "command", "args"):
            if trainer.get(field):
                container[field] = trainer[field]
        if trainer.get("resourcesPerNode"):
            container["resources"] = _canonical(trainer["resourcesPerNode"])
        env = {each["name"]: each for each in container.get("env") or []}
        env |= {each["name"]: each for each in trainer.get("env") or []}
        if policy.get("torch") is not None:
            rank = {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}
            values: dict[str, Any] = {
                "PET_NNODES": str(nodes),
                "PET_NPROC_PER_NODE": _processes(trainer, policy["torch"]),
                "PET_NODE_RANK": None,
                "PET_MASTER_ADDR": f"{name}-node-0-0.{name}",
                "PET_MASTER_PORT": str(PORT),
            }
            env |= {
                key: {"name": key, **({"value": value} if value else {"valueFrom": rank})}
                for key, value in values.items()
            }
            container.setdefault("ports", []).append({"containerPort": PORT, "protocol": "TCP"})
        container["env"] = list(env.values())


def _canonical(resources: Content) -> Content:
    """Quantities as text: the client of Trainer sends two processors as 2.0."""

    def text(amount: Any) -> str:
        return f"{amount:g}" if isinstance(amount, float) else str(amount)

    return {
        word: {name: text(amount) for name, amount in amounts.items()}
        if isinstance(amounts, dict)
        else amounts
        for word, amounts in resources.items()
    }


def _processes(trainer: Content, policy: Content) -> str:
    """Per node: what is told, else one a processor where no GPU is, else torchrun's `auto`."""
    told = trainer.get("numProcPerNode") or policy.get("numProcPerNode") or "auto"
    resources = trainer.get("resourcesPerNode")
    if told != "auto" or not resources:
        return str(told)
    amounts = resources.get("limits") or resources.get("requests") or {}
    if not amounts:
        return "1"
    if any("gpu" in name.lower() for name in amounts):
        return "auto"
    return str(max(1, quantity(amounts.get("cpu", 1), up=True)))


def quantity(told: Any, *, up: bool = False) -> int:
    """A resource quantity in thousandths, or, with `up`, as a whole number rounded up."""
    text = str(told)
    units = {
        "m": 1, "k": 10**6, "M": 10**9, "G": 10**12, "T": 10**15,
        "Ki": 1024 * 1000, "Mi": 1024**2 * 1000, "Gi": 1024**3 * 1000, "Ti": 1024**4 * 1000,
    }  # fmt: skip
    for unit in sorted(units, key=len, reverse=True):
        if text.endswith(unit):
            thousandths = round(float(text.removesuffix(unit)) * units[unit])
            break
    else:
        thousandths = round(float(text) * 1000)
    return -(-thousandths // 1000) if up else thousandths


def owner(version: str, kind: str, name: str, uid: str) -> Content:
    """A reference to the object that has made another, and takes it along when it goes."""
    return {
        "apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip
