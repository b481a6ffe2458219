"""What the doubles share: an HTTP server on loopback that routes, counts, and fails by a script."""

from __future__ import annotations

import json
import re
import socket
import ssl
import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.cluster.faults import Fault, Faults


@dataclass
class Request:
    """A request as it came, and what `route` took from its path."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    named: dict[str, str] = field(default_factory=dict)
    status: int = 0  # of the answer; 0 while there is none, and where a fault swallowed it

    def json(self) -> Any:
        return json.loads(self.body or b"{}")


@dataclass
class Reply:
    """An answer; an iterator of bytes is sent in chunks, as it comes."""

    status: int
    body: bytes | Iterator[bytes]
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, content: Any, *, status: int = 200, **headers: str) -> Reply:
        body = json.dumps(content, separators=(",", ":")).encode()
        return cls(status, body, {"Content-Type": "application/json", **headers})


Handle = Callable[[Request], Reply]


class HttpDouble(ThreadingHTTPServer, ABC):
    """Serves `answer_to` on 127.0.0.1; a context manager.

    Attributes:
        url: Where it listens, for a client's configuration.
        requests: Every request that came, in order, with the status that it got.
        faults: What goes wrong (`tests/cluster/faults.py`).
        closing: Set when the server stops: what waits, waits for this.
    """

    daemon_threads, block_on_close, request_queue_size = True, False, 128

    def __init__(self, *, port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server_address[1]}"
        self.requests: list[Request] = []
        self.faults = Faults()
        self.closing = threading.Event()
        self.lock = threading.RLock()
        self._open: set[socket.socket] = set()
        self._routes: list[tuple[str, re.Pattern[str], Handle]] = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, as a host that goes down: open connections are cut."""
        if self.closing.is_set():
            return
        self.closing.set()
        self.shutdown()
        self._thread.join()
        with self.lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def route(self, method: str, path: str, handle: Handle) -> None:
        """Answer `path`, in which `{name}` stands for a part without a slash, by `handle`."""
        names = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+?)", re.escape(path))
        self._routes.append((method, re.compile(names), handle))

    def find(self, request: Request) -> Handle | None:
        for method, pattern, handle in self._routes:
            found = pattern.fullmatch(request.path)
            if found and method == request.method:
                request.named = found.groupdict()
                return handle
        return None

    def called(self, method: str, path: str) -> list[Request]:
        """The requests so far with this method and a path that matches the regular expression."""
        return [r for r in self.requests if r.method == method and re.fullmatch(path, r.path)]

    @abstractmethod
    def answer_to(self, request: Request) -> Reply:
        """What this server answers."""

    @abstractmethod
    def error_reply(self, status: int) -> Reply:
        """What a fault answers: an error in the form that this server's errors have."""

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body go separately: 40 ms each where it is on
    server: HttpDouble

    def _serve(self) -> None:
        request = self._read()
        with self.server.lock:
            self.server.requests.append(request)
        fault = self.server.faults.next(request.method, request.path)
        kind = fault.kind if fault else ""
        if kind == "hang":
            assert fault is not None
            self.server.closing.wait(fault.seconds)
        if kind in ("hang", "reset"):
            self._hang_up()
            return
        if fault is not None and kind == "answer":
            reply = self._fault_reply(fault)
        else:
            reply = self.server.answer_to(request)
        if kind == "lost_reply":
            self._hang_up()
            return
        request.status = reply.status
        try:
            self._send(reply, fault)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _serve  # noqa: N815

    def _read(self) -> Request:
        target = urlsplit(self.path)
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b"".join(iter(self._chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        query = dict(parse_qsl(target.query, keep_blank_values=True))
        return Request(self.command, unquote(target.path), query, headers, body)

    def _chunk(self) -> bytes:
        size = int(self.rfile.readline().split(b";")[0], 16)
        content = self.rfile.read(size)
        self.rfile.readline()
        return content

    def _fault_reply(self, fault: Fault) -> Reply:
        reply = self.server.error_reply(fault.status)
        if fault.body is not None:
            reply = Reply(fault.status, fault.body, {"Content-Type": "text/plain"})
        reply.headers.update(fault.headers)
        return reply

    def _send(self, reply: Reply, fault: Fault | None) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if not isinstance(reply.body, bytes):
            self._stream(reply.body)
            return
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault is not None and fault.kind == "truncated_body":
            self.wfile.write(reply.body[: len(reply.body) // 2])
            self._hang_up()
        elif fault is not None and fault.kind == "slow_body":
            step = max(1, -(-len(reply.body) // 10))
            for start in range(0, len(reply.body), step):
                self.server.closing.wait(fault.seconds / 10)
                self.wfile.write(reply.body[start : start + step])
        else:
            self.wfile.write(reply.body)

    def _stream(self, pieces: Iterator[bytes]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        pass
