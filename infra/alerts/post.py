"""One POST by the standard library: TLS verified, nothing redirected, errors without secrets."""

from __future__ import annotations

import os
import ssl
from http import HTTPStatus
from http.client import HTTPException, InvalidURL
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from infra.alerts.alert import NotSent
from infra.errors import OutsideError

_LATER = (408, 429)  # refusals that are about now, not about the message


def post(url: str, body: bytes, *, headers: dict[str, str], timeout: float) -> None:
    """Post JSON; anything but a 2xx is an error.

    The URL may be a secret (Slack's are), so errors name its host alone, and of the answer its
    number alone: a server may quote what it was sent.

    Args:
        url: http or https.
        body: JSON in UTF-8.
        headers: Besides those that every POST has.
        timeout: Seconds that each wait for the other side may take.

    Raises:
        NotSent: 3xx, 4xx, a certificate that is not trusted, or no URL at all.
        OutsideError: 5xx, 408, 429, no answer, or one that is no HTTP.
    """
    where = host_of(url)
    opener = build_opener(_NoRedirects, HTTPSHandler(context=ssl.create_default_context()))
    try:
        sent = Request(  # noqa: S310 (host_of has seen to the scheme)
            url, data=body, headers={"Content-Type": "application/json", **headers}, method="POST"
        )
        with opener.open(sent, timeout=timeout):
            return
    except HTTPError as error:
        error.close()
        raise _answered(where, error.code) from None
    except URLError as error:
        raise _unreached(where, error.reason) from None
    except HTTPException as error:
        # InvalidURL quotes the URL, the others what the server said
        kind = NotSent if isinstance(error, InvalidURL) else OutsideError
        raise kind(f"{where} could not be talked to in HTTP: {type(error).__name__}") from None
    except OSError as error:
        raise _unreached(where, error) from None
    except ValueError:
        raise NotSent(f"{where}: the URL or a header holds what HTTP does not allow") from None


def host_of(url: str) -> str:
    """Return scheme and host of a URL: what may be said of it.

    Raises:
        NotSent: It is no http or https URL, or has a user or a password in it.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise NotSent("the URL is none") from None
    if parts.scheme not in ("http", "https") or not host:
        raise NotSent("the URL is not one of http or https")
    if "@" in parts.netloc:
        raise NotSent(f"the URL of {host} has a user or a password in it")
    return f"{parts.scheme}://{host}" + (f":{port}" if port else "")


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST becomes a GET without its body, perhaps at a host nobody named."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        return None


def _answered(where: str, code: int) -> OutsideError:
    known = {status.value: f" ({status.phrase})" for status in HTTPStatus}
    words = f"{where} answered {code}{known.get(code, '')}"
    if code >= 500 or code in _LATER:
        return OutsideError(words)
    return NotSent(words + (", and redirects are not followed" if 300 <= code < 400 else ""))


def _unreached(where: str, reason: object) -> OutsideError:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return NotSent(f"the certificate of {where} is not trusted: {reason.verify_message}")
    return OutsideError(f"{where} {why_unreached(reason)}")


def why_unreached(reason: object) -> str:
    """Say what the system said; its own words, never the other side's."""
    if isinstance(reason, TimeoutError):
        return "did not answer in time"
    if isinstance(reason, OSError) and reason.errno is not None and reason.errno > 0:
        return f"could not be reached: {os.strerror(reason.errno)}"
    return f"could not be reached: {type(reason).__name__}"
