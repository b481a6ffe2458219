"""An alert as an e-mail by SMTP: plain text, and the same as HTML."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate
from hashlib import sha256
from html import escape
from typing import Literal

from infra.alerts.alert import Alert, NotSent, one_line
from infra.alerts.post import why_unreached
from infra.errors import OutsideError


@dataclass(frozen=True)
class Server:
    """Where mail is handed over.

    Attributes:
        security: `starttls` and `tls` verify the server's certificate; `none` is for loopback, and
            for relays inside a network of one's own.
        user, password: Empty: no login.
    """

    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    user: str = ""
    password: str = ""


class EmailChannel:
    """Sends from one address to some.

    Args:
        name: What the operator calls it.
        server: Where mail is handed over.
        sender: Address.
        recipients: Addresses.
        timeout: Seconds that each wait for the server may take.
    """

    def __init__(
        self, *, name: str, server: Server, sender: str, recipients: Sequence[str], timeout: float
    ) -> None:
        self.name = name
        self._server, self._timeout = server, timeout
        self._sender, self._recipients = sender, list(recipients)

    def send(self, alert: Alert) -> None:
        try:
            mail = written(alert, sender=self._sender, recipients=self._recipients)
        except ValueError as error:
            raise NotSent(f"no e-mail can be made of it: {type(error).__name__}") from None
        where = f"{self._server.host}:{self._server.port}"
        try:
            self._hand_over(mail, where)
        except smtplib.SMTPAuthenticationError as error:
            raise NotSent(f"{where} refused the login ({error.smtp_code})") from None
        except smtplib.SMTPRecipientsRefused as error:
            raise _refused(where, max(code for code, _ in error.recipients.values())) from None
        except smtplib.SMTPResponseException as error:
            raise _refused(where, error.smtp_code) from None
        except smtplib.SMTPNotSupportedError:
            raise NotSent(f"{where} does not offer {self._wanted()}") from None
        except smtplib.SMTPException as error:
            raise OutsideError(
                f"{where} could not be talked to in SMTP: {type(error).__name__}"
            ) from None
        except ssl.SSLCertVerificationError as error:
            words = f"the certificate of {where} is not trusted: {error.verify_message}"
            raise NotSent(words) from None
        except (OSError, ValueError) as error:
            raise OutsideError(f"{where} {why_unreached(error)}") from None

    def _hand_over(self, mail: EmailMessage, where: str) -> None:
        server, timeout = self._server, self._timeout
        context = ssl.create_default_context()
        client = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=timeout, context=context)
            if server.security == "tls"
            else smtplib.SMTP(server.host, server.port, timeout=timeout)
        )
        try:
            if server.security == "starttls":
                client.starttls(context=context)
            if server.user:
                client.login(server.user, server.password)
            refused = client.send_message(mail)
            with suppress(smtplib.SMTPException, OSError):
                client.putcmd("quit")  # whose answer would change nothing: not waited for
        finally:
            client.close()
        if refused:
            raise NotSent(f"{where} refused {len(refused)} of {len(self._recipients)} recipients")

    def _wanted(self) -> str:
        wanted = ["STARTTLS"] * (self._server.security == "starttls")
        return " or ".join([*wanted, *["a login that is known here"] * bool(self._server.user)])


def written(alert: Alert, *, sender: str, recipients: Sequence[str]) -> EmailMessage:
    """Compose the message.

    Its Message-ID comes from the run, so that a message that arrived twice can be told. No header
    can be added by what an alert holds: the subject is one line, and addresses with more than one
    are refused by the library.

    Raises:
        ValueError: An address holds a line break, or is none.
    """
    mail = EmailMessage(policy=SMTP_POLICY)
    mail["Subject"] = alert.title[:200]
    mail["From"] = sender
    mail["To"] = ", ".join(recipients)
    mail["Date"] = formatdate()
    identity = sha256(f"{alert.project}/{alert.run}".encode()).hexdigest()[:32]
    mail["Message-ID"] = f"<{identity}@evertrain.invalid>"
    mail["Auto-Submitted"] = "auto-generated"  # no holiday notices in return (RFC 3834)
    facts = alert.facts()
    lines = [*alert.sentences(), "", *(f"{name}: {value}" for name, value in facts)]
    mail.set_content("\n".join(lines) + "\n")
    said = "".join(f"<p>{escape(line)}</p>\n" for line in alert.sentences())
    rows = "".join(
        f'<tr><th align="left">{escape(name)}</th><td>{escape(value)}</td></tr>\n'
        for name, value in facts
    )
    page = f"<h1>{escape(one_line(alert.title))}</h1>\n{said}<table>\n{rows}</table>\n"
    mail.add_alternative(f"<html><body>\n{page}</body></html>\n", subtype="html")
    return mail


def _refused(where: str, code: int) -> OutsideError:
    """4xx is `later` in SMTP, 5xx is `never`: the other way round than in HTTP."""
    kind = OutsideError if 400 <= code < 500 else NotSent
    return kind(f"{where} refused the message ({code})")
