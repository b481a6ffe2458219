"""An engine, the image, and a registry: each once for all tests here, which one worker runs.

All of them are marked `containers`, `smoke` and `slow`: `make containers` runs them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from infra.image.build import build, prepare, push
from infra.image.engine import Docker, engine, why_none
from tests.containers.mirror import Mirror, mirror
from tests.containers.registry import registry

TAG = "evertrain-under-test:1"
REBUILT = "evertrain-under-test:again"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent:
            for mark in ("containers", "smoke", "slow"):
                item.add_marker(mark)
            item.add_marker(pytest.mark.timeout(1500))  # the first one waits for the image


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    """The engine that answers here, or one that lives as long as these tests."""
    reason = why_none()
    if reason:
        if os.environ.get("EVERTRAIN_REQUIRE_ENGINE") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with engine() as found:
        yield found


@pytest.fixture(scope="module")
def reachable(docker: Docker) -> Iterator[None]:
    """Let this process find the engine, as any command would."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in docker.environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def image(docker: Docker) -> str:
    """The image, built from wheels without a network."""
    prepare(docker)
    build(docker, tag=TAG)
    return TAG


@pytest.fixture(scope="session")
def package_mirror(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mirror]:
    """An index of the same wheels that asks for a password, with a certificate of its own."""
    with mirror(tmp_path_factory.mktemp("mirror")) as found:
        yield found


@pytest.fixture(scope="session")
def second_build(
    docker: Docker, image: str, package_mirror: Mirror, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Future[tuple[str, Path]]]:
    """The same image again, nothing cached, by the other way: an index, with secrets.

    Its name, and the build's log.

    It goes on beside the tests, whose containers need one core most of the time.
    """
    words = ["--no-cache", "--network=host"]
    words += ["--secret", f"id=ca,src={package_mirror.ca}"]
    words += ["--secret", f"id=pip,src={package_mirror.configuration}"]
    log = tmp_path_factory.mktemp("second") / "build.log"

    def again() -> tuple[str, Path]:
        build(docker, tag=REBUILT, more=words, log=log)
        return REBUILT, log

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(again)


@pytest.fixture(scope="session")
def pushed(
    docker: Docker, image: str, second_build: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The image's name by digest in a registry on loopback."""
    with registry(tmp_path_factory.mktemp("registry")) as address:
        yield push(docker, tag=image, repository=f"{address}/evertrain")
