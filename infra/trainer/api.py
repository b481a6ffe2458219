"""The Kubernetes API as Kubeflow's own SDK speaks with it, with patience and with words.

    api = TrainerApi(namespace="")
    job = api.asked("read TrainJob x", lambda: api.custom.get_namespaced_custom_object(...))

The stock client waits for an answer for ever, and its SDK hides what the server said. Here every
request has a time limit; timeouts, broken connections, 429 and 5xx are tried again for a while; all
else becomes one of our errors.
"""

from __future__ import annotations

import json
import logging
import os
import random
import time
from collections.abc import Callable
from typing import Any, TypeVar

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer.backends.kubernetes.backend import KubernetesBackend
from kubernetes import client
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from infra.errors import OutsideError, Refused

_TIMEOUT = (5.0, 30.0)  # seconds to connect, and between two bytes of an answer
_LONGEST_PAUSE = 15.0
_TRY_AGAIN = {408, 429, 500, 502, 503, 504}
Answer = TypeVar("Answer")


class NotThere(OutsideError, LookupError):  # noqa: N818
    """The cluster has no such thing."""


class AlreadyThere(OutsideError):  # noqa: N818
    """The cluster has something of this name."""


class TrainerApi:
    """The backend of Kubeflow's `TrainerClient`, and the Kubernetes API that it speaks with.

    Args:
        namespace: Of the TrainJobs; empty: the pod's own, else that of the kubeconfig.
        patience: Seconds for which a request is tried again.
        config: A Kubernetes client's configuration; None: the pod's own, else the kubeconfig.

    Attributes:
        backend: The SDK's.
        custom, core: Kubernetes' own clients, for what the SDK leaves out.
        namespace: As given, or as found.

    Raises:
        Refused: There is neither a pod's service account nor a kubeconfig.
    """

    def __init__(
        self,
        *,
        namespace: str = "",
        patience: float = 120.0,
        config: client.Configuration | None = None,
    ) -> None:
        settings = KubernetesBackendConfig(namespace=namespace or None, client_configuration=config)
        try:
            self.backend = Backend(settings)
        except (ConfigException, OSError) as error:
            raise Refused(
                f"there is no way to a Kubernetes cluster from here: {error}",
                hint="run the step in a pod with a service account, or name a kubeconfig by "
                "KUBECONFIG",
            ) from error
        self.custom, self.core = self.backend.custom_api, self.backend.core_api
        self.namespace: str = self.backend.namespace
        self.host: str = self.core.api_client.configuration.host
        self._patience = patience

    def asked(
        self, what: str, work: Callable[[], Answer], *, patience: float | None = None
    ) -> Answer:
        """Return what some requests give; try them again while the fault is one that passes.

        Args:
            what: For errors, to follow on "cannot".
            work: Harmless if done twice: an answer may be lost.
            patience: Seconds; None: as in the constructor.

        Raises:
            NotThere, AlreadyThere, Refused, OutsideError: As the server says.
        """
        until = time.monotonic() + (self._patience if patience is None else patience)
        pause = 0.5
        while True:
            try:
                return work()
            except Exception as error:
                cause = cause_of(error)
                wait = _pause_after(cause, pause)
                if wait is None or time.monotonic() + wait > until:
                    raise self._told(what, cause) from error
            time.sleep(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def read(
        self,
        what: str,
        method: Callable[..., Any],
        *words: Any,
        patience: float | None = None,
        **more: Any,
    ) -> Any:
        """Return the JSON of a reading request, as it came: the stock models refuse newer fields.

        Raises:
            OutsideError: As `asked`.
        """

        def work() -> Any:
            reply = method(*words, **more, _preload_content=False)
            return json.loads(reply.data)

        return self.asked(what, work, patience=patience)

    def _told(self, what: str, cause: BaseException) -> OutsideError:
        """Return a fault in words."""
        begin = f"cannot {what} at {self.host}"
        words = f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
        if _passes(cause) and not getattr(cause, "status", 0):
            return OutsideError(
                f"{begin}: {words}",
                hint="is the API server in reach? Run the same again: what was begun is found",
            )
        if not isinstance(cause, client.ApiException):
            return Refused(f"{begin}: {words}", hint="look at cluster.train_job in evertrain.yaml")
        said, status = message_of(cause), cause.status
        if status == 404:
            return NotThere(f"{begin}: {said}")
        if status == 409:
            return AlreadyThere(f"{begin}: {said}")
        if status == 401:
            return OutsideError(
                f"{begin}: not authorised ({said})",
                hint="the service account's token is missing or has expired",
            )
        if status == 403 and "exceeded quota" in said:
            return OutsideError(f"{begin}: {said}", hint="raise the quota, or ask for less")
        if status == 403 and "admission webhook" not in said:
            return Refused(
                f"{begin}: {said}",
                hint="give the step's service account the role evertrain-run (infra/kubernetes)",
            )
        if status in _TRY_AGAIN:
            return OutsideError(f"{begin}: {status} {said}", hint="run the same again later")
        return Refused(f"{begin}: {status} {said}", hint="see cluster in evertrain.yaml")


class Backend(KubernetesBackend):
    """The SDK's backend, with time limits, and with what its `train` has no option for.

    Attributes:
        completing: Called with each TrainJob's spec before it is sent.
    """

    def __init__(self, settings: KubernetesBackendConfig) -> None:
        logging.getLogger("kubeflow").setLevel(logging.ERROR)
        super().__init__(settings)
        for each in (self.custom_api, self.core_api):
            each.api_client = _ApiClient(each.api_client.configuration)
        self.completing: Callable[[Any], None] = lambda spec: None

    def verify_backend(self) -> None:
        """Look for no version: it is one more right to give, and nothing follows from it."""

    def _get_trainjob_spec(self, *words: Any, **more: Any) -> Any:
        spec = super()._get_trainjob_spec(*words, **more)
        self.completing(spec)
        return spec


class _ApiClient(client.ApiClient):  # type: ignore[misc]
    """Waits for an answer for a while, not for ever."""

    def call_api(self, *words: Any, **more: Any) -> Any:
        more["_request_timeout"] = more.get("_request_timeout") or _TIMEOUT
        return super().call_api(*words, **more)


def in_cluster() -> bool:
    """Say whether this process runs in a pod."""
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST"))


def cause_of(error: BaseException) -> BaseException:
    """Return what an error of the SDK was raised from: it says itself only what it was about."""
    found = error
    while found.__cause__ is not None and not isinstance(found, client.ApiException):
        found = found.__cause__
    return found


def message_of(error: client.ApiException) -> str:
    """Return what the API server said, in its own words."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return str(error.reason or error.status)


def _passes(cause: BaseException) -> bool:
    """Whether a fault may be gone in a while."""
    if isinstance(cause, client.ApiException):
        return not cause.status or cause.status in _TRY_AGAIN
    half_an_answer = json.JSONDecodeError
    return isinstance(cause, (HTTPError, TimeoutError, ConnectionError, half_an_answer))


def _pause_after(cause: BaseException, usual: float) -> float | None:
    """Return the seconds until it is worth trying again; None: it never is."""
    if not _passes(cause):
        return None
    asked = str((getattr(cause, "headers", None) or {}).get("Retry-After", ""))
    pause = usual * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)
    return max(pause, float(asked)) if asked.isdigit() else pause
