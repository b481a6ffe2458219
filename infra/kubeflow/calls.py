"""One call of Kubeflow's API: its time limit, what is tried again, and how its failure reads.

What only reads, or may be done twice, is tried again while the server is away, busy or broken
(`ask`). What creates is not: its reply may have been lost after it was done, so between two tries
one looks whether it is there (`create`).
"""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from infra.errors import OutsideError
from infra.kubeflow.errors import AlreadyThere, NotAllowed, NotThere, Refused

T = TypeVar("T")
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # the same request may be answered later
_LONGEST_PAUSE = 15.0


class _Passing(Exception):  # noqa: N818
    """A failure that may pass by itself.

    Attributes:
        done: Whether the server may have done what it was asked for.
    """

    def __init__(self, words: str, *, pause: float = 0.0, done: bool = True) -> None:
        super().__init__(words)
        self.pause, self.done = pause, done


@dataclass
class Calls:
    """How calls are made.

    Attributes:
        host: For messages.
        access: Which credentials are used, for messages.
        patience: Seconds for which a failing call is tried again.
        timeout: Seconds to connect, and seconds between two pieces of the answer.
    """

    host: str
    access: str
    patience: float = 30.0
    timeout: tuple[float, float] = (10.0, 60.0)

    def ask(self, what: str, method: Callable[..., Any], *words: Any, **named: Any) -> Any:
        """Make a call that may be made twice.

        Args:
            what: What it is for, in a message: "list the runs".
            method: Of kfp_server_api, by its name without `_with_http_info`.
            words, named: Its arguments.

        Raises:
            OutsideError: Or one of the errors of `infra.kubeflow.errors`.
        """
        return self._patiently(what, lambda: self._method(what, method, *words, **named), None)

    def create(
        self,
        what: str,
        found: Callable[[], T | None],
        method: Callable[..., Any],
        *words: Any,
        **named: Any,
    ) -> Any | T:
        """Make a call that creates something, once: neither a lost reply nor another client,
        who was at it in the same moment, makes two.

        Args:
            what: What it is for, in a message.
            found: Looks for what should have been created; None: it is not there.
            method: Of kfp_server_api.
            words, named: Its arguments.

        Returns:
            The server's answer, or what `found` found.
        """
        try:
            return self._patiently(what, lambda: self._method(what, method, *words, **named), found)
        except AlreadyThere:
            if (there := found()) is None:
                raise
            return there

    def text(self, what: str, path: str, *, as_in: Callable[..., Any]) -> str:
        """Return what is at a path that kfp_server_api has no method for, as text.

        Args:
            what: What it is for, in a message.
            path: From the host on.
            as_in: A method of kfp_server_api, whose address and credentials are used.

        Raises:
            OutsideError: It is not to be had now; it is not tried again.
        """
        api = as_in.__self__  # type: ignore[attr-defined]

        def get(**named: Any) -> Any:
            return api.api_client.call_api(
                path, "GET", header_params={"Accept": "text/plain"}, response_type="str",
                auth_settings=["Bearer"], **named,
            )  # fmt: skip

        try:
            return str(self._once(what, get))
        except _Passing as error:
            raise OutsideError(f"cannot {what} at {self.host}: {error}") from error

    def _patiently(
        self, what: str, call: Callable[[], Any], found: Callable[[], Any] | None
    ) -> Any:
        until, attempt = time.monotonic() + self.patience, 0
        while True:
            try:
                return call()
            except _Passing as failure:
                pause = min(_LONGEST_PAUSE, failure.pause or 0.25 * 2**attempt)
                pause *= random.uniform(0.75, 1.25)  # noqa: S311 (so that clients spread)
                attempt += 1
                over = time.monotonic() + pause > until
                if not over:
                    time.sleep(pause)
                if found is not None and failure.done and (there := found()) is not None:
                    return there
                if over:
                    raise OutsideError(
                        f"cannot {what} at {self.host}: {failure}",
                        hint=f"tried {attempt} times in {self.patience:g} s; is the server up? "
                        f"curl {self.host}/apis/v2beta1/healthz",
                    ) from failure

    def _method(self, what: str, method: Callable[..., Any], *words: Any, **named: Any) -> Any:
        """One try of a method of kfp_server_api, whose answer has to be JSON.

        Of what is not JSON the generated client makes an empty answer: no runs, no schedules.
        """
        api = method.__self__  # type: ignore[attr-defined]
        answer = self._once(
            what, getattr(api, f"{method.__name__}_with_http_info"), *words, **named
        )
        try:
            json.loads(api.api_client.last_response.data)
        except ValueError as error:
            raise _Passing("it sent half an answer, or none that is JSON") from error
        return answer

    def _once(self, what: str, full: Callable[..., Any], *words: Any, **named: Any) -> Any:
        import urllib3
        from kfp_server_api import ApiException

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the generated client is older than urllib3 2
                answer, status, headers = full(*words, _request_timeout=self.timeout, **named)
        except ApiException as error:
            raise self._refusal(what, error) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise self._failure(what, error) from error
        except (ValueError, AttributeError) as error:
            # half a body, a page that is no JSON, or the generated client at an error of TLS
            if isinstance(error.__context__, ApiException):
                raise self._tls(what, error.__context__) from error
            raise _Passing(
                f"its answer cannot be read ({type(error).__name__}: {error})"
            ) from error
        kind = str(headers.get("Content-Type", "")) if headers else ""
        if "html" in kind:
            raise self._login(what, f"it answered {status} with a web page")
        return answer

    def _failure(self, what: str, error: Exception) -> Exception:
        """What no answer means."""
        import urllib3.exceptions as broken

        if isinstance(error, FileNotFoundError | PermissionError):
            return NotAllowed(
                f"cannot {what} at {self.host}: the credentials cannot be read ({error})",
                hint=f"they are {self.access}",
            )
        cause = getattr(error, "reason", None) or error
        if isinstance(cause, broken.SSLError) or "CERTIFICATE" in str(cause).upper():
            return self._tls(what, cause)
        if isinstance(cause, broken.NameResolutionError):
            return _Passing("its name cannot be resolved", done=False)
        if isinstance(cause, broken.NewConnectionError | broken.ProxyError):
            return _Passing(str(cause).rpartition(": ")[2] or "no connection", done=False)
        if isinstance(cause, broken.ConnectTimeoutError):
            return _Passing(f"no connection in {self.timeout[0]:g} s", done=False)
        if isinstance(cause, broken.ReadTimeoutError):
            return _Passing(f"no answer in {self.timeout[1]:g} s")
        return _Passing(f"the connection broke ({type(cause).__name__})")

    def _tls(self, what: str, error: object) -> OutsideError:
        return OutsideError(
            f"cannot {what} at {self.host}: its certificate is not trusted ({error})",
            hint="name the file of your authority's certificates: cluster.access.ca in "
            "evertrain.yaml, or SSL_CERT_FILE",
        )

    def _login(self, what: str, why: str) -> NotAllowed:
        return NotAllowed(
            f"cannot {what} at {self.host}: {why}, not as the API does (used: {self.access})",
            hint="the host has to be the API's (https://HOST/pipeline), and one has to be logged "
            "in: see docs/deploy.md#credentials",
        )

    def _refusal(self, what: str, error: Any) -> Exception:
        """What an answer that is no success means."""
        status, said = int(error.status or 0), _said(error.body)
        where = f"cannot {what} at {self.host}: {status} {error.reason or ''}".rstrip()
        full = f"{where}: {said}" if said else where
        if status == 0:
            return self._tls(what, error.reason)
        if 300 <= status < 400:
            return self._login(what, f"it answered {status}, to a page to log in at")
        if status == 401:
            return NotAllowed(
                f"{full} (used: {self.access})",
                hint="the credentials are missing or too old: see docs/deploy.md#credentials",
            )
        if status == 403:
            return NotAllowed(
                f"{full} (used: {self.access})",
                hint="is the namespace right, and may you edit in it? "
                "cluster.namespace in evertrain.yaml, or --namespace",
            )
        if status in _PASSING:
            return _Passing(
                f"{status} {error.reason or ''}: {said}".rstrip(": "), pause=_pause(error)
            )
        if status == 404:
            return NotThere(full, hint="somebody may have deleted it; run the same command again")
        if status == 409:
            return AlreadyThere(full, hint="somebody else was at it; run the same command again")
        return Refused(full, hint="the server does not take what it was given")


def _said(body: object) -> str:
    """The server's own words; of KFP's the innermost, without its chain of wrappings."""
    text = body.decode(errors="replace") if isinstance(body, bytes) else str(body or "")
    try:
        told = json.loads(text)
        words = told.get("error_message") or told.get("message") or told.get("error") or ""
        details = told.get("details") or []
        inner = details[0].get("message", "") if details else ""
        text = str(inner if inner and inner != "Internal Server Error" else words)
    except (ValueError, AttributeError, TypeError):
        text = "" if "<html" in text.lower() else text
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:300] + "…"


def _pause(error: Any) -> float:
    """Seconds that the server asks one to wait."""
    try:
        return max(0.0, float((error.headers or {}).get("Retry-After", 0)))
    except ValueError:
        return 0.0  # a date: the usual pauses do
