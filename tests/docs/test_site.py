"""The site is built strictly, fetches nothing, and leads to every page."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.components.report_run.report_browser import Browser, call, chromium, missing
from tests.docs.documented import ROOT

pytestmark = [pytest.mark.smoke, pytest.mark.slow]

_LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "object": "data"}
# `link` is a resource by what it is for; a canonical address, for one, is none.
_RESOURCES = {"stylesheet", "icon", "preload", "modulepreload", "preconnect", "manifest"}


def built(folder: Path, *, config: Path = ROOT / "mkdocs.yml") -> subprocess.CompletedProcess[str]:
    """Build the site into a folder, as make docs does."""
    words = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        folder,
        "-f",
        config,
    ]
    proxy = "http://127.0.0.1:1"  # whatever were fetched would fail the build
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "NO_MKDOCS_2_WARNING": "1",
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy),
    }
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    ended = built(folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "WARNING" not in ended.stderr
    return folder


class Page(HTMLParser):
    """What a page loads, what it leads to, and the anchors that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag in _LOADS and _LOADS[tag] in given:
            self.loads.append(given[_LOADS[tag]])
        if tag == "link" and _RESOURCES & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def read(site: Path) -> dict[Path, Page]:
    return {file: Page(file.read_text()) for file in site.rglob("*.html")}


def test_no_page_loads_anything_from_elsewhere(site: Path, read: dict[Path, Page]) -> None:
    assert len(read) > 100
    foreign = {
        f"{file.relative_to(site)}: {address}"
        for file, page in read.items()
        for address in page.loads
        if re.match(r"([a-z]+:)?//", address)
    }
    assert not foreign
    styles = {file.name: file.read_text() for file in site.rglob("*.css")}
    assert styles
    assert [
        n for n, text in styles.items() if re.search(r"url\(['\"]?(https?:)?//|@import", text)
    ] == []


def test_every_link_of_the_site_leads_to_a_page_and_an_anchor_that_it_has(
    site: Path, read: dict[Path, Page]
) -> None:
    broken = []
    for file, page in read.items():
        if file.name == "404.html":  # its links are from the root, wherever that is
            continue
        for link in page.links:
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (file.parent / path).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            anchors = read[target].anchors if target in read else {anchor}
            if not target.is_file() or anchor not in {*anchors, "", "__top"}:
                broken.append(f"{file.relative_to(site)}: {link}")
    assert broken == []


def test_every_page_of_docs_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = set(re.findall(r"([\w./-]+\.md)$", nav, re.MULTILINE))
    docs = {str(file.relative_to(ROOT / "docs")) for file in (ROOT / "docs").rglob("*.md")}
    assert docs - named == set()


def test_there_is_an_index_to_search_which_knows_settings_commands_and_docstrings(
    site: Path,
) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"] for entry in index["docs"]}
    assert {"settings/#trainingoptimiser", "commands/#rollback", "tutorial/"} <= places
    assert any(place.endswith("training_core.task.Task.loss") for place in places)
    assert not [place for place in places if place.startswith("source/")]


def test_every_public_name_of_the_training_core_is_in_the_reference(read: dict[Path, Page]) -> None:
    import training_core

    anchors = {each.rpartition(".")[2] for page in read.values() for each in page.anchors}
    settings = {"TrainingSettings"}  # a page of their own
    assert set(training_core.__all__) - anchors - settings == set()


def test_a_page_that_nobody_would_find_and_a_link_to_nothing_fail_the_build(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    lost = "# Lost\n\n[nowhere](nowhere.md), [no anchor](tutorial.md#nowhere)\n"
    (tmp_path / "docs" / "lost_page.md").write_text(lost)
    config = {
        "INHERIT": str(ROOT / "mkdocs.yml"),
        "docs_dir": str(tmp_path / "docs"),
        "hooks": [str(ROOT / "docs" / "site" / "hooks.py")],
        "plugins": ["search"],  # without docstrings: it is sooner there
        "watch": [],
    }
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(config))
    ended = built(tmp_path / "site", config=tmp_path / "mkdocs.yml")
    said = ended.stdout + ended.stderr
    assert ended.returncode != 0
    assert "lost_page.md" in said
    assert "nowhere.md" in said
    assert "#nowhere" in said


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if absent := missing():
        if "EVERTRAIN_REQUIRE_BROWSER" in os.environ:
            pytest.fail(f"EVERTRAIN_REQUIRE_BROWSER is set, and PATH has no {absent}")
        pytest.skip(f"no {absent} in PATH: the site was not tried in a browser")
    with chromium(tmp_path_factory.mktemp("browser")) as started:
        yield started


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_an_error_fetch_nothing_and_are_no_wider_than_the_screen(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    browser.emulate(width=width, height=800, scheme=scheme)
    browser.log("browser"), browser.requests()
    for page in ("", "tutorial/", "settings/", "commands/", "reference/task/", "checks/", "log/"):
        call(f"{browser.session}/url", {"url": f"{address}/{page}"})
        assert browser.run("return document.body.dataset.mdColorScheme") == (
            "slate" if scheme == "dark" else "default"
        )
        assert browser.run("return document.documentElement.scrollWidth") <= width, page
    assert [entry for entry in browser.log("browser") if entry["level"] != "INFO"] == []
    elsewhere = [url for url in browser.requests() if not url.startswith((address, "data:"))]
    assert elsewhere == []


@pytest.mark.browser
def test_a_search_finds_a_setting(browser: Browser, address: str) -> None:
    browser.emulate(width=1400, height=800)
    call(f"{browser.session}/url", {"url": f"{address}/?q=retraining_noise"})
    found = "return [...document.querySelectorAll('.md-search-result a')].map(a => a.href)"
    results: list[str] = []
    for _ in range(50):
        results = browser.run(found)
        if results:
            break
        threading.Event().wait(0.2)
    assert any("/settings/" in each for each in results), results
