"""A container's environment as the kubelet makes it, and containers run as processes here.

    server.executor = LocalProcesses(tmp_path)

One pod is one process of its own session: SIGTERM goes to it alone, as to a container's first
process; SIGKILL to all that it started. Names of the cluster do not resolve here: the master is at
127.0.0.1, at a port of its own for each attempt of each job. Volumes, images, limits and users are
passed over; `python`, `torchrun` and the like are those of this environment.
"""

from __future__ import annotations

import base64
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.cluster.kube_handles import Executor, PodHandle
from tests.cluster.kube_store import CONFIG_MAPS, SECRETS, Content, Store

REPOSITORY = Path(__file__).parents[2]
_ANNOTATION = re.compile(r"metadata\.(annotations|labels)\['([^']+)'\]")


class MissingConfiguration(Exception):  # noqa: N818
    """A secret or a config map that a container asks for is not there."""


def environment_of(store: Store, pod: Content, container: Content) -> dict[str, str]:
    """The variables of a container, with references to fields, secrets and config maps resolved.

    Raises:
        MissingConfiguration: What is referred to is not there, and not optional.
    """
    found: dict[str, str] = {}
    for each in container.get("envFrom") or []:
        for name, kind in (("secretRef", SECRETS), ("configMapRef", CONFIG_MAPS)):
            if name in each:
                data = _data(store, kind, pod, each[name])
                found |= {each.get("prefix", "") + key: value for key, value in data.items()}
    for each in container.get("env") or []:
        if "valueFrom" in each:
            value = _from(store, pod, each["valueFrom"])
            if value is None:
                continue
        else:
            value = re.sub(r"\$\((\w+)\)", lambda m: found.get(m[1], m[0]), each.get("value") or "")
        found[each["name"]] = value
    return found


def _from(store: Store, pod: Content, source: Content) -> str | None:
    if "fieldRef" in source:
        path = source["fieldRef"]["fieldPath"]
        if found := _ANNOTATION.fullmatch(path):
            return str(pod["metadata"].get(found[1], {}).get(found[2], ""))
        value: Any = {**pod, "status": {**pod["status"], "podIP": "127.0.0.1"}}
        for part in path.split("."):
            value = value.get(part, "")
        return str(value)
    for name, kind in (("secretKeyRef", SECRETS), ("configMapKeyRef", CONFIG_MAPS)):
        if name in source:
            told = source[name]
            data = _data(store, kind, pod, told)
            if told["key"] not in data and not told.get("optional"):
                where = f"{pod['metadata']['namespace']}/{told['name']}"
                word = "Secret" if kind is SECRETS else "ConfigMap"
                raise MissingConfiguration(f"couldn't find key {told['key']} in {word} {where}")
            return data.get(told["key"])
    return ""


def _data(store: Store, kind: Any, pod: Content, told: Content) -> dict[str, str]:
    found = store.find(kind, pod["metadata"]["namespace"], told["name"])
    if found is None:
        if told.get("optional"):
            return {}
        raise MissingConfiguration(f'{kind.kind.lower()} "{told["name"]}" not found')
    data = dict(found.get("data") or {})
    if kind is SECRETS:
        data = {name: base64.b64decode(value).decode() for name, value in data.items()}
        data |= found.get("stringData") or {}
    return data


def exits_with(code: int, *lines: str) -> Executor:
    """An executor: every container prints these lines and ends at once."""

    def execute(handle: PodHandle) -> int:
        for line in lines:
            handle.log(line)
        return code

    return execute


class LocalProcesses:
    """An executor that runs each container's command as a process here.

    Args:
        folder: Working folders, one a pod.
        environment: On top of PATH and the container's own variables.
        entrypoint: Of the image, for containers without a command.
    """

    def __init__(
        self,
        folder: Path,
        *,
        environment: dict[str, str] | None = None,
        entrypoint: tuple[str, ...] = (),
    ) -> None:
        self.folder, self.environment, self.entrypoint = folder, environment or {}, entrypoint
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self._ports: dict[tuple[str, ...], int] = {}
        self._lock = threading.Lock()

    def __call__(self, handle: PodHandle) -> int:
        container = handle.container
        command = [*(container.get("command") or self.entrypoint), *(container.get("args") or [])]
        if not command:
            raise ValueError("the container has no command, and no entrypoint was given")
        home = self.folder / handle.name
        home.mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=home,
            start_new_session=True, env=self._environment(handle), errors="replace",
        )  # fmt: skip
        self.processes[handle.name] = process
        over = threading.Event()
        stopping = threading.Thread(target=_stop, args=(process, handle, over), daemon=True)
        stopping.start()
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                handle.log(line.rstrip("\n"))
        code = process.wait()
        over.set()
        stopping.join()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what the first process left behind
        return code if code >= 0 else 128 - code

    def _environment(self, handle: PodHandle) -> dict[str, str]:
        found = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "HOME": str(self.folder / handle.name), "PYTHONPATH": str(REPOSITORY),
            "OMP_NUM_THREADS": "1", "HOSTNAME": handle.pod["spec"].get("hostname", handle.name),
            **self.environment, **handle.environment,
        }  # fmt: skip
        if "PET_MASTER_ADDR" in found:
            labels = handle.pod["metadata"]["labels"]
            meta = handle.pod["metadata"]["ownerReferences"][0]
            key = (meta["uid"], labels["jobset.sigs.k8s.io/restart-attempt"])
            with self._lock:
                port = self._ports.setdefault(key, _free_port())
            found |= {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(port)}
        return found


def _stop(process: subprocess.Popen[str], handle: PodHandle, over: threading.Event) -> None:
    asked = False
    while not over.wait(0.01):
        if handle.kill.is_set():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return
        if handle.stop.is_set() and not asked:
            asked = True
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
