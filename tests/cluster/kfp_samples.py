"""Pipelines that tests submit, and the forms in which a package may come.

kfp reads the annotations of components as they are: no `from __future__ import annotations` here.
"""

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

from kfp import compiler, dsl, kubernetes


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def add(a: int, b: int) -> int:
    return a + b


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def refuse(number: int) -> None:
    raise ValueError(f"{number} is too much")


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def wait() -> None:
    import time

    time.sleep(300)


@dsl.pipeline(name="sum-up")
def sum_up(a: int, b: int = 2, name: str = "nobody", more: dict = {}):  # type: ignore[no-untyped-def,type-arg]  # noqa: B006
    add(a=a, b=b)


@dsl.pipeline(name="refused")
def refused(a: int = 1):  # type: ignore[no-untyped-def]
    refuse(number=add(a=a, b=1).output)


@dsl.pipeline(name="endless")
def endless():  # type: ignore[no-untyped-def]
    wait()


@dsl.pipeline(name="with-platform")
def with_platform():  # type: ignore[no-untyped-def]
    kubernetes.set_timeout(add(a=1, b=2), seconds=60)


def compiled(pipeline: object, folder: Path) -> Path:
    """The pipeline as a YAML file."""
    path = folder / "pipeline.yaml"
    compiler.Compiler().compile(pipeline, str(path))
    return path


def zipped(package: Path) -> Path:
    path = package.with_suffix(".zip")
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(package, "pipeline.yaml")
    return path


def tarred(package: Path) -> Path:
    path = package.with_suffix(".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        archive.add(package, "pipeline.yaml")
    return path


def gzipped(package: Path) -> Path:
    """Gzip without a tar in it: the server refuses that."""
    path = package.with_suffix(".tar.gz")
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="w") as file:
        file.write(package.read_bytes())
    path.write_bytes(buffer.getvalue())
    return path
