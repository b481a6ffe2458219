"""A package index on loopback that asks for a password, over TLS with a certificate of its own.

What a company's mirror asks of a build: a user, a password, and certificates that pip has to be
told of. All three are made up here for one session, and none may be found in the image.
"""

from __future__ import annotations

import base64
import html
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

from infra.image.wheels import wheels
from tests.infra.alert_servers import certificate


@dataclass(frozen=True)
class Mirror:
    """What a build is given.

    Attributes:
        ca: Certificate to trust.
        configuration: pip.conf with user and password.
        secrets: What must not be found anywhere, in each form it may take.
        asked: Paths that were fetched.
    """

    ca: Path
    configuration: Path
    secrets: tuple[bytes, ...]
    asked: list[str]


@contextmanager
def mirror(home: Path) -> Iterator[Mirror]:
    """Serve the wheels of the CPU image until the block ends."""
    user, password = f"user{secrets.token_hex(8)}", f"password{secrets.token_hex(8)}"
    login = base64.b64encode(f"{user}:{password}".encode())
    authority = f"authority{secrets.token_hex(8)}"
    ca, context = certificate(home, name=authority)
    asked: list[str] = []
    handler = partial(_Handler, wheels(torch="cpu"), b"Basic " + login, asked)
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    configuration = home / "pip.conf"
    address = f"https://{user}:{password}@127.0.0.1:{server.server_port}/simple/"
    configuration.write_text(f"[global]\nindex-url = {address}\n")
    body = ca.read_text().splitlines()[1]  # a line of the certificate
    planted = (user.encode(), password.encode(), login, authority.encode(), body.encode())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Mirror(ca, configuration, planted, asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(SimpleHTTPRequestHandler):
    """PEP 503: a page for each project, and the files."""

    def __init__(self, folder: Path, login: bytes, asked: list[str], *rest: Any) -> None:
        self.folder, self.login, self.asked = folder, login, asked
        super().__init__(*rest, directory=str(folder))

    def do_GET(self) -> None:
        if self.headers.get("Authorization", "").encode() != self.login:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="wheels"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.asked.append(self.path)
        found = re.fullmatch(r"/simple/([^/]+)/", self.path)
        if found is None:
            super().do_GET()  # a file
            return
        names = [f.name for f in self.folder.glob("*.whl") if _project(f.name) == found.group(1)]
        links = "".join(f'<a href="/{quote(name)}">{html.escape(name)}</a>\n' for name in names)
        page = f"<!DOCTYPE html><html><body>\n{links}</body></html>".encode()
        self.send_response(200 if names else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _project(wheel: str) -> str:
    return re.sub(r"[-_.]+", "-", wheel.partition("-")[0]).lower()
