"""Lists of Kubeflow's API: every page of them, and filters that its server reads as meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from infra.kubeflow.calls import Calls

_PAGE = 100
_MOST_PAGES = 1000  # a server that hands out tokens for ever must not keep us


def named(name: str) -> str:
    """A filter for what is displayed as `name`.

    The server decodes it once more than HTTP does, and compares without case: what comes back has
    to be looked at again.
    """
    predicate = {"operation": "EQUALS", "key": "display_name", "stringValue": name}
    return quote(json.dumps({"predicates": [predicate]}))


def every(
    calls: Calls, what: str, method: Callable[..., Any], field: str, **given: Any
) -> Iterator[Any]:
    """Yield every entry of a list, the newest first.

    Args:
        calls: How calls are made.
        what: For a message: "list the runs".
        method: Of kfp_server_api.
        field: Of the answer, which holds the entries.
        given: Arguments of the method; empty ones are left out.
    """
    asked = {name: value for name, value in given.items() if value}
    token = ""
    for _ in range(_MOST_PAGES):
        more = {"page_token": token} if token else {}
        page = calls.ask(what, method, page_size=_PAGE, sort_by="created_at desc", **asked, **more)
        yield from getattr(page, field) or []
        token = page.next_page_token or ""
        if not token:
            return


def moment(given: datetime | None) -> datetime | None:
    """A time of the API in UTC; what has not happened yet, 1970 on the wire, is None."""
    return given.astimezone(UTC) if given is not None and given.timestamp() > 0 else None
