"""A real Chromium, spoken to in WebDriver's plain HTTP: no client library is needed."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars",
]  # fmt: skip


def missing() -> str:
    """What is not installed; empty if all is there."""
    return ", ".join(name for name in ("chromium", "chromedriver") if shutil.which(name) is None)


class Browser:
    """One session; commands as in the WebDriver standard and, for emulation, DevTools."""

    def __init__(self, session: str) -> None:
        self.session = session

    def open(self, page: Path) -> None:
        call(f"{self.session}/url", {"url": page.as_uri()})

    def run(self, script: str) -> Any:
        """Return what a function's body returns."""
        return call(f"{self.session}/execute/sync", {"script": script, "args": []})

    def emulate(self, *, width: int, height: int, media: str = "", scheme: str = "light") -> None:
        """Size, medium and preferred colours, as a device would have them."""
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=height,
                   deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._tell("Emulation.setEmulatedMedia", media=media, features=features)

    def press(self, key: str) -> None:
        actions = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        call(f"{self.session}/actions", {"actions": [keyboard]})

    def pdf(self) -> bytes:
        a4 = {"page": {"width": 21.0, "height": 29.7}, "background": True}
        return base64.b64decode(call(f"{self.session}/print", a4))

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What was logged since the last call: `browser` is the console."""
        found = call(f"{self.session}/se/log", {"type": kind})
        assert isinstance(found, list)
        return found

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        sent = [m for m in messages if m["method"] == "Network.requestWillBeSent"]
        return [m["params"]["request"]["url"] for m in sent]

    def _tell(self, command: str, **parameters: Any) -> None:
        call(f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})


def call(url: str, body: dict[str, Any] | None = None, method: str = "") -> Any:
    """One command; returns its value."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url, data=data, method=method or ("GET" if data is None else "POST")
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{url}: {error.read().decode()[:1000]}") from None


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Start Chromium under its driver; both end with the block."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "HOME": str(folder)}
    with (folder / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=log, stderr=log, env=environment
        )
        try:
            root = f"http://127.0.0.1:{port}"
            _wait(root, driver)
            options = {
                "args": [*ARGUMENTS, f"--user-data-dir={folder / 'profile'}"],
                "binary": shutil.which("chromium"),
            }
            logs = {"browser": "ALL", "performance": "ALL"}
            wanted = {"alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": logs}}
            made = call(f"{root}/session", {"capabilities": wanted})
            session = f"{root}/session/{made['sessionId']}"
            try:
                yield Browser(session)
            finally:
                call(session, method="DELETE")
        finally:
            driver.terminate()
            driver.wait(timeout=20)


def _wait(root: str, driver: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until and driver.poll() is None:
        try:
            if call(f"{root}/status")["ready"]:
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("chromedriver did not start")
