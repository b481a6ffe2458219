"""What containers printed, as the API gives it: `follow`, `tailLines`, `previous`, `timestamps`."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from tests.cluster.http_double import Reply, Request
from tests.cluster.kube_errors import bad_request, not_found, truth
from tests.cluster.kube_handles import PodHandle
from tests.cluster.kube_pods import Kubelet
from tests.cluster.kube_store import PODS, Store
from tests.cluster.kube_watch import Target


class Logs:
    """Answers `pods/NAME/log`."""

    def __init__(self, store: Store, kubelet: Kubelet, closing: threading.Event) -> None:
        self.store, self.kubelet, self.closing = store, kubelet, closing

    def answer(self, target: Target, request: Request) -> Reply:
        query = request.query
        pod = self.store.get(PODS, target.namespace, target.name)
        name = query.get("container") or pod["spec"]["containers"][0]["name"]
        if name not in {each["name"] for each in pod["spec"]["containers"]}:
            raise bad_request(f"container {name} is not valid for pod {target.name}")
        run = self.kubelet.run_of(pod)
        if run is None:
            raise not_found(PODS, target.name)
        statuses = pod["status"].get("containerStatuses") or [{}]
        waiting = (statuses[0].get("state") or {}).get("waiting")
        previous = truth(query.get("previous"))
        if previous and run.handle.previous is None:
            raise bad_request(
                f'previous terminated container "{name}" in pod "{target.name}" not found'
            )
        if not previous and (not statuses[0] or (waiting and not run.handle.previous)):
            reason = (waiting or {}).get("reason", "ContainerCreating")
            if reason in ("ErrImagePull", "ImagePullBackOff"):
                reason = "trying and failing to pull image"
            raise bad_request(
                f'container "{name}" in pod "{target.name}" is waiting to start: {reason}'
            )
        lines = (run.handle.previous or []) if previous else run.handle.lines
        tail = int(query.get("tailLines") or -1)
        start = max(0, len(lines) - tail) if tail >= 0 else 0
        stamped = truth(query.get("timestamps"))
        pieces = self._lines(run.handle, lines, start, stamped=stamped)
        body: bytes | Iterator[bytes] = pieces
        if previous or not truth(query.get("follow")):
            body = b"".join(_line(each, stamped=stamped) for each in lines[start:])
        return Reply(200, body, {"Content-Type": "text/plain"})

    def _lines(
        self, handle: PodHandle, lines: list[tuple[str, str]], at: int, *, stamped: bool
    ) -> Iterator[bytes]:
        while not self.closing.is_set():
            over = handle.ended or handle.lines is not lines
            while at < len(lines):
                yield _line(lines[at], stamped=stamped)
                at += 1
            if over:
                return
            handle.told.wait(0.01)


def _line(told: tuple[str, str], *, stamped: bool) -> bytes:
    at, text = told
    return (f"{at} {text}\n" if stamped else f"{text}\n").encode()
