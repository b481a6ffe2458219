"""A Docker engine: one container at a time, run to its end, and how it ended.

kfp's own runner lets the engine remove a container when it ends, and asks afterwards how it ended;
of one that ended fast nothing is left by then, and that is taken for success
(kubeflow/pipelines#13332). Here a container stays until its exit code was read.

The container's stdin is held by this process. It ends when this process does, however that came to
be, and whoever reads it in the container can end with it (`components.common.watchdog`).
"""

from __future__ import annotations

import codecs
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from infra.errors import OutsideError

_GRACE = 90.0  # seconds that a container has to end once it was asked to: training saves its state
_SCRATCH = "/tmp"  # noqa: S108 (of the container)
_SHARED_MEMORY = "1g"  # /dev/shm, where collectives and data loaders of several processes meet


class Mount(NamedTuple):
    """A file or folder of this machine, at the same path in the container."""

    path: Path
    writable: bool = False


class Ended(NamedTuple):
    """How a container ended.

    Attributes:
        code: Its exit code; 128 + number: by a signal.
        out_of_memory: The kernel killed a process in it because it was over its limit.
        error: The engine's own words, if it could not run it.
    """

    code: int
    out_of_memory: bool = False
    error: str = ""


@dataclass(frozen=True)
class Confinement:
    """What a container is, and what it gets to see.

    The rest is the same for all: a read-only root file system, no capability, no way to gain one,
    and a /tmp in memory.

    Attributes:
        image: By id, so that it is the same for all of a run.
        user: Number of user and group: `10001:10001`.
        network: `none`: not even loopback leads anywhere; `host`: as this machine's processes.
        memory: Limit, as `4g`; empty: none.
    """

    image: str
    user: str
    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    network: str = "none"
    memory: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


class Engine:
    """The engine that DOCKER_HOST names, or this machine's.

    Raises:
        OutsideError: None answers.
    """

    def __init__(self) -> None:
        with _in_words("reach a Docker engine", hint="start it, or name it: DOCKER_HOST=unix://…"):
            import docker

            self._client = docker.from_env()

    def close(self) -> None:
        """Let go of the connections."""
        self._client.close()

    def refuse_mapped_users(self) -> None:
        """Raise where a user's number in a container is another one's outside.

        Raises:
            OutsideError: With what to do.
        """
        options = self._client.info().get("SecurityOptions") or []
        for name in ("rootless", "userns"):
            if any(f"name={name}" in option for option in options):
                raise OutsideError(
                    f"this Docker engine maps users ({name}): a container could not write to the "
                    "project's home folder",
                    hint="use an engine without user mapping, or evertrain run --runner process",
                )

    def image_id(self, name: str) -> str:
        """Return the id of an image that is there; nothing is pulled.

        A short name is anybody's on a public registry, so what runs is fetched by a person.

        Raises:
            OutsideError: It is not there.
        """
        import docker.errors

        with _in_words(f"look for the image {name}"):
            try:
                return str(self._client.images.get(name).id)
            except (docker.errors.ImageNotFound, docker.errors.NullResource) as error:
                raise OutsideError(
                    f"there is no image {name!r} on this machine",
                    hint=f"build it: make image; or fetch it: docker pull {name}",
                ) from error

    def remove_all(self, label: str) -> int:
        """Kill and remove every container with a label (`key=value`); return how many."""
        with _in_words("remove containers that an earlier run left behind"):
            found = self._client.containers.list(all=True, filters={"label": label})
            for container in found:
                _remove(container)
            return len(found)

    def run(
        self,
        command: Sequence[str],
        confinement: Confinement,
        *,
        name: str,
        out: Callable[[str], None],
        last_words: Callable[[str], None],
    ) -> Ended:
        """Run a command in a new container to its end.

        Args:
            command: Program and arguments.
            confinement: What the container is.
            name: Of the container.
            out: Takes what it prints, in pieces.
            last_words: Takes what it prints after Ctrl-C.

        Raises:
            OutsideError: The engine would not run it.
            KeyboardInterrupt: After the container ended: it was asked to by a line `stop` on its
                stdin, and killed at a second Ctrl-C, or when it took too long.
        """
        with _in_words(f"run a container of {confinement.image}"):
            container = self._create(command, confinement, name=name)
            try:
                with _stdin_of(container) as tell:
                    container.start()
                    printed = _Printed(container)
                    try:
                        printed.follow(out)
                    except KeyboardInterrupt:
                        tell(b"stop\n")
                        printed.follow(last_words, seconds=_GRACE)
                        raise
                    return self._ended(container)
            finally:
                _remove(container)

    def _create(self, command: Sequence[str], confinement: Confinement, *, name: str) -> Any:
        from docker.types import Mount as DockerMount

        limits = {"mem_limit": confinement.memory} if confinement.memory else {}
        return self._client.containers.create(
            confinement.image,
            entrypoint=list(command[:1]),  # as Kubernetes' `command`: the image's own is not asked
            command=list(command[1:]),
            name=name,
            user=confinement.user,
            environment=dict(confinement.environment),
            labels=dict(confinement.labels),
            mounts=[
                DockerMount(str(m.path), str(m.path), type="bind", read_only=not m.writable)
                for m in confinement.mounts
            ],
            network_mode=confinement.network,
            read_only=True,
            tmpfs={_SCRATCH: "rw,nosuid,nodev,mode=1777"},
            cap_drop=["ALL"],
            security_opt=["no-new-privileges:true"],
            pids_limit=4096,
            shm_size=_SHARED_MEMORY,
            stdin_open=True,
            **limits,
        )

    def _ended(self, container: Any) -> Ended:
        self._client.api.wait(container.id, timeout=None)
        state = self._client.api.inspect_container(container.id)["State"]
        return Ended(int(state["ExitCode"]), bool(state["OOMKilled"]), str(state["Error"]))


class _Printed:
    """What a container prints, read by a thread, so that Ctrl-C is noticed between two lines."""

    def __init__(self, container: Any) -> None:
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        threading.Thread(target=self._read, args=(container,), daemon=True).start()

    def _read(self, container: Any) -> None:
        try:
            with contextlib.closing(container.logs(stream=True, follow=True)) as pieces:
                for piece in pieces:
                    self._pieces.put(piece)
        except Exception:  # noqa: BLE001, S110 (whatever it was: how the container ended is asked next)
            pass
        finally:
            self._pieces.put(None)

    def follow(self, out: Callable[[str], None], *, seconds: float | None = None) -> None:
        """Hand on what is printed until the container ends, or for so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            try:
                piece = self._pieces.get(timeout=left)
            except queue.Empty:
                return
            out(self._decoder.decode(piece or b"", final=piece is None))
            if piece is None:
                return


@contextlib.contextmanager
def _stdin_of(container: Any) -> Iterator[Callable[[bytes], None]]:
    """Hold a container's stdin; it ends with the block, or with this process."""
    held = container.attach_socket(params={"stdin": 1, "stream": 1})
    socket = getattr(held, "_sock", held)  # with TLS it is the socket itself
    try:
        yield socket.sendall
    finally:
        held.close()
        socket.close()


def _remove(container: Any) -> None:
    """Kill a container if it runs, and remove it; one that is gone is fine."""
    import docker.errors

    with contextlib.suppress(docker.errors.NotFound):
        container.remove(force=True, v=True)


@contextlib.contextmanager
def _in_words(doing: str, *, hint: str = "") -> Iterator[None]:
    """Turn the engine's faults into ours."""
    import docker.errors
    import requests.exceptions

    faults = (docker.errors.DockerException, requests.exceptions.RequestException)
    try:
        yield
    except faults as error:
        said = getattr(error, "explanation", None) or error
        raise OutsideError(
            f"cannot {doing}: {said}", hint=hint or "docker info says whether the engine is well"
        ) from error
