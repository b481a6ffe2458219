"""Alerts by e-mail, to a mail server on loopback: with and without login and TLS."""

from __future__ import annotations

import email
import email.policy
import socket
import ssl
import threading
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from alert_servers import FIELDS, PASSWORD, USER, Mail, certificate, smtp
from loopback import free_ports

from infra.alerts.alert import Alert, NotSent
from infra.alerts.email import EmailChannel, Server, written
from infra.alerts.sending import send_all
from infra.errors import OutsideError

SENDER, TO = "evertrain@example.org", ("team@example.org", "boss@example.org")


def alert(**more: Any) -> Alert:
    return Alert(**{**FIELDS, "headline": "Version 4 replaces version 3.", **more})


def channel(port: int, *, security: Any = "none", login: bool = False) -> EmailChannel:
    user, password = (USER, PASSWORD) if login else ("", "")
    server = Server("127.0.0.1", port, security, user, password)
    return EmailChannel(name="mail", server=server, sender=SENDER, recipients=TO, timeout=3)


def read(mail: Mail) -> EmailMessage:
    (envelope,) = mail.envelopes
    content = envelope.original_content
    assert content is not None
    return email.message_from_bytes(content, policy=email.policy.default)  # type: ignore[return-value]


def parts(message: EmailMessage) -> tuple[str, str]:
    found = [message.get_body((kind,)) for kind in ("plain", "html")]
    plain, html = [part.get_content() for part in found if part is not None]
    return str(plain), str(html)


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


def test_a_mail_has_a_plain_part_and_an_html_part_that_say_the_same(port: int) -> None:
    with smtp(port=port) as mail:
        channel(port).send(alert(reasons=("Grüße <b>aus</b> 東京 & mehr",), report="s3://b/r.html"))
    assert mail.envelopes[0].rcpt_tos == list(TO)
    message = read(mail)
    assert message["Subject"] == "flights: promoted"
    assert message["Auto-Submitted"] == "auto-generated"
    plain, html = parts(message)
    for words in ("Version 4 replaces version 3.", "s3://b/r.html", FIELDS["run"]):
        assert words in plain
        assert words in html
    assert "Grüße <b>aus</b> 東京 & mehr" in plain
    assert "Grüße &lt;b&gt;aus&lt;/b&gt; 東京 &amp; mehr" in html


def test_two_mails_of_one_run_can_be_told_to_be_one() -> None:
    def identity(**more: Any) -> str:
        return str(written(alert(**more), sender=SENDER, recipients=TO)["Message-ID"])

    assert identity() == identity(headline="Other words.")
    assert identity() != identity(run="another")


def test_no_header_can_be_added_by_what_an_alert_holds(port: int) -> None:
    evil = "x\r\nBcc: thief@example.org\r\n\r\nHello"
    with smtp(port=port) as mail:
        channel(port).send(alert(project=evil, run=evil, headline=evil, report=evil))
    message = read(mail)
    assert message["Bcc"] is None
    assert mail.envelopes[0].rcpt_tos == list(TO)
    assert message["Subject"] == "x Bcc: thief@example.org Hello: promoted"
    assert "\nBcc" not in parts(message)[0]


@pytest.mark.parametrize("address", ["a@b\r\nBcc: c@d", "a@b\nBcc: c@d"])
def test_an_address_with_a_line_break_is_refused(port: int, address: str) -> None:
    server = Server("127.0.0.1", port, "none")
    with smtp(port=port) as mail:
        for sender, to in ((address, SENDER), (SENDER, address)):
            sending = EmailChannel(
                name="mail", server=server, sender=sender, recipients=[to], timeout=3
            )
            with pytest.raises(NotSent):
                sending.send(alert())
    assert mail.envelopes == []


def test_characters_that_no_mail_may_hold_do_not_stop_it(port: int) -> None:
    with smtp(port=port) as mail:
        channel(port).send(alert(headline="odd \ud800 \x00 words"))
    assert "odd words" in parts(read(mail))[0]


# aiosmtpd does not count the TLS that was there from the start
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_a_login_goes_through_tls_whose_certificate_is_verified(
    security: str, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, context = certificate(tmp_path)
    with smtp(port=port, login=True, **{security: context}) as mail:  # type: ignore[arg-type]
        with pytest.raises(NotSent, match="is not trusted: self-signed certificate"):
            channel(port, security=security, login=True).send(alert())
        assert mail.envelopes == []
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        channel(port, security=security, login=True).send(alert())
    assert read(mail)["Subject"] == "flights: promoted"


def test_a_login_that_is_refused_is_not_tried_again_and_its_password_not_said(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, context = certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    server = Server("127.0.0.1", port, "starttls", USER, "hush-hush")
    wrong = EmailChannel(name="mail", server=server, sender=SENDER, recipients=TO, timeout=3)
    with smtp(port=port, login=True, starttls=context) as mail:
        (outcome,) = send_all([wrong], alert(), timeout=8)
    assert (outcome.sent, outcome.attempts, mail.envelopes) == (False, 1, [])
    assert outcome.reason == f"127.0.0.1:{port} refused the login (535)"


def test_a_server_without_starttls_gets_nothing_in_the_clear(port: int) -> None:
    with smtp(port=port) as mail, pytest.raises(NotSent, match="does not offer STARTTLS"):
        channel(port, security="starttls", login=True).send(alert())
    assert mail.envelopes == []


@pytest.mark.parametrize(("answer", "attempts"), [("550 no such box hush", 1), ("451 later", 2)])
def test_never_is_not_tried_again_and_later_is(port: int, answer: str, attempts: int) -> None:
    answers = [answer] * len(TO)
    with smtp(port=port) as mail:
        mail.refuse = lambda address: answers.pop() if answers else None
        (outcome,) = send_all([channel(port)], alert(), timeout=8)
    assert (outcome.attempts, outcome.sent) == (attempts, attempts == 2)
    assert "hush" not in outcome.reason


def test_a_mail_that_some_got_is_not_sent_to_them_again(port: int) -> None:
    with smtp(port=port) as mail:
        mail.refuse = lambda address: "450 later" if address == TO[1] else None
        (outcome,) = send_all([channel(port)], alert(), timeout=8)
    assert len(mail.envelopes) == 1
    assert (outcome.sent, outcome.attempts) == (False, 1)
    assert outcome.reason.endswith("refused 1 of 2 recipients")


@pytest.mark.parametrize("said", [b"\x00\xff what?\r\n", b"", b"554 hush, go away\r\n"])
def test_what_is_no_mail_server_is_said_in_our_words(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            talk, _ = listening.accept()
            with talk:
                talk.sendall(said)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(OutsideError) as error:
            channel(listening.getsockname()[1]).send(alert())
        thread.join(5)
    assert "hush" not in str(error.value)
    assert "127.0.0.1" in str(error.value)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        (outcome,) = send_all([channel(listening.getsockname()[1])], alert(), timeout=1)
    assert not outcome.sent
    assert "no answer within 1 s" in outcome.reason


def test_tls_to_a_server_without_it_is_an_error_in_our_words(port: int) -> None:
    with smtp(port=port), pytest.raises(OutsideError, match="could not be reached"):
        channel(port, security="tls").send(alert())
    assert issubclass(ssl.SSLError, OSError)
