"""Debian's docker-registry on loopback, in a folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import Request, urlopen

from tests.infra.loopback import answers, binary, free_ports, running

_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@contextmanager
def registry(home: Path) -> Iterator[str]:
    """Run a registry until the block ends; give its address, `127.0.0.1:port`."""
    program = binary("docker-registry")
    (port,) = free_ports(1)
    configuration = {
        "version": 0.1,
        "log": {"level": "warn"},
        "storage": {"filesystem": {"rootdirectory": str(home / "data")}},
        "http": {"addr": f"127.0.0.1:{port}"},
    }
    file = home / "config.yml"
    file.write_text(json.dumps(configuration))  # JSON is YAML
    with running(
        [program, "serve", str(file)],
        ready=lambda: answers(port), log=home / "log", environment=dict(os.environ),
    ):  # fmt: skip
        yield f"127.0.0.1:{port}"


def compressed_bytes(name: str) -> list[int]:
    """Sizes of an image's layers as they are pulled; `name` is by digest."""
    repository, _, digest = name.partition("@")
    address, _, path = repository.partition("/")
    request = Request(f"http://{address}/v2/{path}/manifests/{digest}")
    request.add_header("Accept", _MANIFEST)
    with urlopen(request, timeout=30) as reply:
        return [layer["size"] for layer in json.load(reply)["layers"]]
