"""A proxy between an S3 client and its server that damages what passes, by a script.

    with faulty_proxy(endpoint) as proxy:
        proxy.script = lambda number, request: "corrupt" if number % 3 == 0 else ""

Requests are counted from 1 among those that the script may damage: GETs of objects and listings.
"""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Fault = Literal["", "500", "503", "reset", "truncate", "corrupt"]
FAULTS: tuple[Fault, ...] = ("500", "503", "reset", "truncate", "corrupt")
_NOT_FORWARDED = {"connection", "transfer-encoding", "keep-alive"}
_ERRORS = {"500": "InternalError", "503": "SlowDown"}


class FaultyProxy(ThreadingHTTPServer):
    """Forwards to a server; `script` says what happens to a GET.

    Attributes:
        script: From the number of a GET and its path to a fault, or "".
        done: How often each fault was done.
    """

    daemon_threads = True

    def __init__(self, endpoint: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = endpoint.removeprefix("http://")
        self.endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.script: Callable[[int, str], Fault] = lambda number, path: ""
        self.done: Counter[str] = Counter()
        self._count, self._lock = 0, threading.Lock()

    def next_fault(self, method: str, path: str) -> Fault:
        if method != "GET":
            return ""
        with self._lock:
            self._count += 1
            fault = self.script(self._count, path)
            self.done[fault] += 1
            return fault

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        fault = self.server.next_fault(self.command, self.path)
        if fault in _ERRORS:
            self._error(int(fault), _ERRORS[fault])
            return
        if fault == "reset":
            self._hang_up()
            return
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=60)
        # the signature covers the Host that the client named: it is passed on as it is
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _NOT_FORWARDED:
                upstream.putheader(name, value)
        upstream.endheaders(body)
        reply = upstream.getresponse()
        content = bytearray(reply.read())
        upstream.close()
        self.send_response_only(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in {*_NOT_FORWARDED, "content-length"}:
                self.send_header(name, value)
        length = reply.getheader("Content-Length") if self.command == "HEAD" else len(content)
        self.send_header("Content-Length", str(length or 0))
        self.end_headers()
        if fault == "corrupt" and content:
            content[len(content) // 2] ^= 1
        if fault == "truncate":
            self.wfile.write(content[: len(content) // 2])
            self._hang_up()
            return
        self.wfile.write(content)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_PUT(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        self.do_GET()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _error(self, status: int, code: str) -> None:
        content = f"<Error><Code>{code}</Code><Message>by the script</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _hang_up(self) -> None:
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def faulty_proxy(endpoint: str) -> Iterator[FaultyProxy]:
    """Run a proxy until the block ends."""
    proxy = FaultyProxy(endpoint)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
