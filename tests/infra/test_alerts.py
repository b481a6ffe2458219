"""Alerts by log, webhook and Slack, to servers on loopback that answer, refuse, hang and lie."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from alert_servers import FIELDS, web
from loopback import free_ports

from infra.alerts.alert import Alert, Channel, Difference, NotSent
from infra.alerts.log import LogChannel
from infra.alerts.post import post
from infra.alerts.sending import Sending, send_all
from infra.alerts.slack import SlackChannel, escaped, message
from infra.alerts.webhook import WebhookChannel, signature
from infra.errors import OutsideError

SECRET = "hush-hush-0123456789"
ROOT = Path(__file__).parents[2]


def alert(**more: Any) -> Alert:
    fields: dict[str, Any] = {
        **FIELDS, "headline": "Version 4 replaces version 3 as champion.", "metric": "log loss",
        "value": 0.4612, "reasons": ("Better on 30 days.",), "champion_before": "3",
        "champion_after": "4", "seconds": 61.4, "report": "s3://b/r.html",
    }  # fmt: skip
    return Alert(**{**fields, **more})


def webhook(url: str, *, timeout: float = 2.0) -> WebhookChannel:
    return WebhookChannel(name="hook", url=url, secret=SECRET, timeout=timeout)


def sent(channel: Channel, *, timeout: float = 8.0) -> Sending:
    (outcome,) = send_all([channel], alert(), timeout=timeout)
    return outcome


def test_a_receiver_that_knows_the_secret_can_verify_what_came() -> None:
    with web() as server:
        assert sent(webhook(f"{server.url}/hook?token=t")).sent
    (got,) = server.received
    assert got.path == "/hook?token=t"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["idempotency-key"] == FIELDS["run"]
    instant = int(got.headers["evertrain-timestamp"])
    assert abs(instant - time.time()) < 60
    signed = got.headers["evertrain-signature"]
    assert signed == signature(SECRET, instant, got.body)
    assert signed != signature("another", instant, got.body)
    assert signed != signature(SECRET, instant + 1, got.body), "an old request could be sent anew"
    assert signed != signature(SECRET, instant, got.body + b" ")
    said = json.loads(got.body)
    assert said["format"] == "evertrain/alert/1"
    assert (said["id"], said["outcome"], said["value"]) == (FIELDS["run"], "promoted", 0.4612)


def test_numbers_that_are_not_finite_and_strange_characters_still_make_json() -> None:
    odd = Difference("champion", float("nan"), float("-inf"), 0.1, "Größer \ud800 als\r\nzuvor")
    with web() as server:
        webhook(server.url).send(alert(value=float("nan"), differences=(odd,)))
    said = json.loads(server.received[0].body.decode())
    assert said["value"] is None
    assert said["differences"][0]["low"] is None
    assert said["differences"][0]["words"] == "Größer als zuvor"


def test_an_error_of_the_server_is_tried_again_and_signed_anew() -> None:
    with web(500, 503, 200) as server:
        outcome = sent(webhook(server.url))
    assert (outcome.sent, outcome.attempts) == (True, 3)
    assert outcome.reason == ""
    for got in server.received:
        instant = int(got.headers["evertrain-timestamp"])
        assert got.headers["evertrain-signature"] == signature(SECRET, instant, got.body)


def test_attempts_come_to_an_end() -> None:
    with web(500) as server:
        outcome = sent(webhook(server.url))
    assert (outcome.sent, outcome.attempts, len(server.received)) == (False, 4, 4)
    assert outcome.reason.endswith("answered 500 (Internal Server Error)")
    assert outcome.seconds < 5, "a pause that nothing follows"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 411])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with web(status) as server:
        outcome = sent(webhook(server.url))
    assert (outcome.sent, len(server.received)) == (False, 1)
    assert str(status) in outcome.reason


def test_being_asked_to_come_later_is_no_refusal() -> None:
    with web(429, 200) as server:
        assert sent(webhook(server.url)).sent
    assert len(server.received) == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with web() as elsewhere, web(status) as server:
        server.location = f"{elsewhere.url}/stolen"
        outcome = sent(webhook(server.url))
    assert not outcome.sent
    assert "redirects are not followed" in outcome.reason
    assert (len(server.received), elsewhere.received) == (1, [])


@pytest.mark.parametrize("way", ["garbage", "close"])
def test_a_server_that_sends_garbage_or_nothing_is_tried_again(way: str) -> None:
    with web(way, 200) as server:
        outcome = sent(webhook(server.url))
    assert (outcome.sent, outcome.attempts) == (True, 2)
    with web(way) as server:
        outcome = sent(webhook(server.url))
    assert not outcome.sent
    assert "what" not in outcome.reason


def test_a_server_that_hangs_is_given_up_and_tried_again() -> None:
    with web("hang", 200) as server:
        outcome = sent(webhook(server.url, timeout=0.5))
    assert (outcome.sent, outcome.attempts) == (True, 2)


def test_a_server_that_drips_cannot_hold_beyond_the_time() -> None:
    with web("drip") as server:
        began = time.monotonic()
        outcome = sent(webhook(server.url), timeout=1.0)
        assert time.monotonic() - began < 1.5
    assert not outcome.sent
    assert "no answer within 1 s" in outcome.reason


def test_channels_are_sent_side_by_side_in_one_time() -> None:
    with web("hang") as slow, web() as quick:
        channels = [webhook(slow.url, timeout=9), webhook(quick.url), webhook(slow.url, timeout=9)]
        began = time.monotonic()
        outcomes = send_all(channels, alert(), timeout=1.0)
        assert time.monotonic() - began < 1.5
    assert [each.sent for each in outcomes] == [False, True, False]


def test_without_time_nothing_is_begun() -> None:
    with web() as server:
        assert sent(webhook(server.url), timeout=0).reason == "no time was left"
    assert server.received == []


def test_a_hanging_server_does_not_hold_the_process_at_its_exit() -> None:
    code = (
        "import sys; from infra.alerts.sending import send_all; from infra.alerts.alert import *\n"
        "from infra.alerts.webhook import WebhookChannel\n"
        "hook = WebhookChannel(name='h', url=sys.argv[1], secret='s', timeout=25)\n"
        "alert = Alert(project='p', run='r', outcome='held', headline='h')\n"
        "print(send_all([hook], alert, timeout=0.5)[0].sent)"
    )
    with web("hang") as server:
        began = time.monotonic()
        ended = subprocess.run(
            [sys.executable, "-W", "error", "-c", code, server.url], cwd=ROOT, timeout=20,
            capture_output=True, text=True,
        )  # fmt: skip
        assert time.monotonic() - began < 5
    assert (ended.stdout, ended.stderr, ended.returncode) == ("False\n", "", 0)


def test_nobody_listening_is_said_with_the_address() -> None:
    (port,) = free_ports(1)
    with pytest.raises(OutsideError, match=f"127.0.0.1:{port} could not be reached: Connection"):
        webhook(f"http://127.0.0.1:{port}/secret-path").send(alert())


SECRET_URLS = (
    "http://127.0.0.1:1/hush-hush",
    "https://127.0.0.1:1/hush-hush",
    "http://hush-hush:hush-hush@127.0.0.1:1/",
    "http://127.0.0.1:1/hush-hush with blanks\x7f",
    "http://127.0.0.1:1/hush-hush/ü",
    "http://127.0.0.1:hush-hush/",
    "http://[hush-hush/",
    "file:///etc/hush-hush",
    "hush-hush",
    "http://name.invalid/hush-hush",
)


@pytest.mark.parametrize("url", SECRET_URLS)
def test_no_error_quotes_the_url(url: str) -> None:
    outcome = sent(webhook(url), timeout=1.5)
    assert not outcome.sent
    assert outcome.reason
    assert "hush" not in outcome.reason


@pytest.mark.parametrize("answer", [200, 302, 404, 500, "garbage", "close"])
def test_no_error_holds_a_secret_even_if_the_server_quotes_all_it_got(answer: int | str) -> None:
    with web(answer) as server:
        for channel in (
            webhook(f"{server.url}/hush-hush"),
            SlackChannel(name="chat", url=f"{server.url}/hush-hush", timeout=1),
        ):
            reason = sent(channel, timeout=1.2).reason
            assert "hush" not in reason
            assert "fault" not in reason


def test_a_header_cannot_be_added_by_a_run_id() -> None:
    with web() as server:
        odd = alert(run="x\r\nX-Injected: yes")
        with pytest.raises(NotSent):
            webhook(server.url).send(odd)
    assert server.received == []


def test_a_certificate_that_is_not_trusted_is_refused(tmp_path: Path) -> None:
    import socket
    import threading

    from alert_servers import certificate

    file, context = certificate(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            for _ in range(2):
                plain, _address = listening.accept()
                try:
                    with context.wrap_socket(plain, server_side=True) as talk:
                        while not talk.recv(65536).endswith(b"{}"):
                            pass
                        talk.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                except OSError:
                    plain.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(NotSent, match="is not trusted: self-signed certificate"):
            post(url, b"{}", headers={}, timeout=3)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SSL_CERT_FILE", str(file))
            post(url, b"{}", headers={}, timeout=3)
        thread.join(5)


def test_slack_gets_text_and_blocks_in_which_data_can_call_nobody() -> None:
    with web() as server:
        reasons = ("column <!channel> & co > 3", "Grüße, 東京")
        SlackChannel(name="chat", url=server.url, timeout=2).send(alert(reasons=reasons))
    said = json.loads(server.received[0].body)
    words = "\n".join(block["text"]["text"] for block in said["blocks"])
    assert "column &lt;!channel&gt; &amp; co &gt; 3" in words
    assert "Grüße, 東京" in words
    assert "*Champion:* 3 → 4" in words
    assert said["text"] == "flights: promoted. Version 4 replaces version 3 as champion."
    assert "<" not in json.dumps(said)


def test_a_section_for_slack_is_never_too_long_and_never_ends_inside_an_escape() -> None:
    blocks = message(alert(reasons=("&" * 600, *(f"{i}<" * 200 for i in range(9)))))["blocks"]
    assert all(len(block["text"]["text"]) <= 3000 for block in blocks)
    assert escaped("&" * 600).removesuffix("…").endswith("&amp;")


def test_the_log_gets_one_line_whatever_the_alert_holds(capsys: pytest.CaptureFixture[str]) -> None:
    LogChannel(name="log").send(alert(reasons=("one\nalert: forged\r\x1b[2J\u2028two",)))
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 1
    assert "\x1b" not in said.err
    assert "one alert: forged [2J two" in said.err


def test_a_fault_of_a_channel_is_the_others_and_the_callers_no_fault() -> None:
    class Broken:
        name = "broken"

        def send(self, alert: Alert) -> None:
            raise RuntimeError("hush-hush")

    with web() as server:
        broken, good = send_all([Broken(), webhook(server.url)], alert(), timeout=3)
    assert (broken.sent, broken.reason, broken.attempts) == (
        False, "fault in the channel: RuntimeError", 1,
    )  # fmt: skip
    assert good.sent
