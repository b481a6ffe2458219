"""One port for who asks: `/healthz`, `/readyz`, `/metrics`."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from infra.errors import OutsideError
from pipelines.watch.exporting import Figures
from training_core.errors import ConfigurationError

Answer = Callable[[], str]
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Address(NamedTuple):
    host: str
    port: int


def address_of(text: str) -> Address:
    """Read `127.0.0.1:8080`, `[::1]:8080` or `:8080`, which is on loopback.

    Raises:
        ConfigurationError: It is none of these.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise ConfigurationError(
            f"--listen {text!r} is no address with a port",
            hint="for example --listen 127.0.0.1:8080; in a pod --listen 0.0.0.0:8080",
        )
    return Address(host.strip("[]") or "127.0.0.1", int(port))


class Server:
    """Answers on one port until it is closed.

    Args:
        address: Where; port 0: any that is free.
        healthy, ready: Say why not; empty: so it is.
        figures: The metrics.

    Raises:
        OutsideError: The port is taken, or may not be used.
    """

    def __init__(
        self, address: Address, *, healthy: Answer, ready: Answer, figures: Figures
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 10  # seconds for a request to come

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                if path == "/metrics":
                    return self._reply(200, figures.text(), _METRICS_TYPE)
                if path not in ("/healthz", "/readyz"):
                    return self._reply(404, b"/healthz, /readyz or /metrics\n")
                why_not = healthy() if path == "/healthz" else ready()
                return self._reply(503 if why_not else 200, f"{why_not or 'ok'}\n".encode())

            def _reply(self, code: int, body: bytes, kind: str = "text/plain") -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes come every few seconds: nobody wants to read of them."""

        class Listener(ThreadingHTTPServer):
            daemon_threads = True
            address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

        try:
            self._server = Listener((address.host, address.port), Handler)
        except OSError as error:
            raise OutsideError(
                f"cannot listen on {address.host}:{address.port}: {error.strerror or error}",
                hint="choose another port: --listen 127.0.0.1:PORT",
            ) from error
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
