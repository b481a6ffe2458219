"""Render our kustomizations offline, with kubectl's own kustomize."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.infra.loopback import binary

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "infra" / "kubernetes"
OVERLAYS = ("local", "production")
# In the order of the README; those that stand on another name it.
COMPONENTS: dict[str, tuple[str, ...]] = {
    "external": (),
    "s3": (),
    "postgres": ("s3",),
    "mlflow": ("s3", "postgres"),
    "train-jobs": (),
    "monitoring": (),
    "argo-events/sqs": (),
    "argo-events/minio": (),
    "argo-events/webhook": (),
}

Document = dict[str, Any]


def kustomize(folder: Path) -> str:
    """What `kubectl kustomize` prints; nothing but files is in its reach.

    Raises:
        RuntimeError: It failed, or warned (of deprecated fields, for example).
    """
    kubectl = binary("kubectl", Path(sys.prefix) / "bin")
    # No cluster, no proxy, no home with a configuration: only the files.
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    ended = subprocess.run(
        [kubectl, "kustomize", str(folder)], capture_output=True, text=True, env=environment
    )
    if ended.returncode or ended.stderr:
        raise RuntimeError(f"kubectl kustomize {folder} said:\n{ended.stderr}")
    return ended.stdout


@cache
def rendered(overlay: str) -> str:
    return kustomize(MANIFESTS / "overlays" / overlay)


def documents(text: str) -> list[Document]:
    """The documents of a text; libyaml's loader reads them in a tenth of the time."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [each for each in yaml.load_all(text, Loader=loader) if each]


def with_components(folder: Path, names: tuple[str, ...]) -> str:
    """Render the base with these components: an overlay made in `folder`, as a user's would be."""
    base = os.path.relpath(MANIFESTS, folder)
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "evertrain",
        "resources": [f"{base}/base"],
        "components": [f"{base}/components/{name}" for name in names],
        "images": [
            {"name": "evertrain", "newTag": "0.1.0"},
            {"name": "postgres", "newTag": "16.10"},
            {"name": "chrislusf/seaweedfs", "newTag": "4.48"},
        ],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    return kustomize(folder)
