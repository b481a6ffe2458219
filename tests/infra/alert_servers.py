"""Servers on loopback that alerts are sent to: HTTP that misbehaves as it is told, and SMTP."""

from __future__ import annotations

import datetime
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, Session

FIELDS = {"project": "flights", "run": "20130501T041203Z-ab12", "outcome": "promoted"}
USER, PASSWORD = "mailer", "correct horse"


@dataclass
class Received:
    """One request."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Web:
    """What arrived, and what is answered: numbers of statuses, or ways to misbehave, in turn.

    The last answer stays. `location` is where redirects lead.
    """

    url: str = ""
    answers: list[int | str] = field(default_factory=lambda: [200])
    location: str = ""
    received: list[Received] = field(default_factory=list)

    def answer(self) -> int | str:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def web(*answers: int | str) -> Iterator[Web]:
    """An HTTP server until the block ends."""
    state, over = Web(answers=list(answers or [200])), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.received.append(Received(self.path, headers, body))
            answer = state.answer()
            self.close_connection = True
            if answer == "hang":
                over.wait(30)
            elif answer == "garbage":
                self.wfile.write(b"\x00\xff what \x1b[31mare you?\r\n\r\n")
            elif answer == "drip":
                self.wfile.write(b"HTTP/1.1 200 OK\r\n")
                while not over.wait(0.2):
                    try:
                        self.wfile.write(b"X-More: yes\r\n")
                    except OSError:
                        return
            elif isinstance(answer, int):
                # as servers that quote what they were sent
                said = body + str(self.headers).encode()
                self.send_response(answer, f"reason {self.path}")
                if 300 <= answer < 400:
                    self.send_header("Location", state.location)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

        def log_message(self, *words: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads, block_on_close = True, False

        def handle_error(self, *about: Any) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield state
        finally:
            over.set()
            server.shutdown()
            thread.join()


@dataclass
class Mail:
    """A mail server and what it got; `refuse` says what recipients get instead of a 250."""

    port: int = 0
    refuse: Callable[[str], str | None] = lambda address: None
    envelopes: list[Envelope] = field(default_factory=list)

    async def handle_RCPT(
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refused = self.refuse(address)
        if refused is None:
            envelope.rcpt_tos.append(address)
        return refused or "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:
        self.envelopes.append(envelope)
        return "250 taken"


@contextmanager
def smtp(
    *, starttls: ssl.SSLContext | None = None, tls: ssl.SSLContext | None = None,
    login: bool = False, port: int,
) -> Iterator[Mail]:  # fmt: skip
    """A mail server until the block ends; with `login` it takes nothing without one."""
    mail = Mail(port=port)

    def authenticate(server: Any, session: Any, envelope: Any, way: str, data: Any) -> AuthResult:
        known = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
        return AuthResult(success=known, handled=False)

    controller = Controller(
        mail, hostname="127.0.0.1", port=port, ssl_context=tls, tls_context=starttls,
        require_starttls=starttls is not None, auth_required=login,
        auth_require_tls=starttls is not None,
        authenticator=authenticate if login else None,
    )  # fmt: skip
    controller.start()
    try:
        yield mail
    finally:
        time.sleep(0.05)  # the goodbye of the last connection
        controller.stop()


def certificate(folder: Path, *, name: str = "loopback") -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 signed by itself: its file, and a server's context with it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file, private = folder / "loopback.pem", folder / "loopback.key"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, private)
    return file, context
