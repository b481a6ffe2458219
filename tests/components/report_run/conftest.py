"""One browser for the tests of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from report_browser import Browser, chromium, missing


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    absent = missing()
    if absent and os.environ.get("EVERTRAIN_REQUIRE_BROWSER") == "1":
        pytest.fail(f"EVERTRAIN_REQUIRE_BROWSER=1, but there is no {absent} in PATH")
    if absent:
        pytest.skip(f"no {absent} in PATH: the page was not tried in a browser")
    with chromium(tmp_path_factory.mktemp("browser")) as started:
        yield started
