"""`evertrain alerts` and what the doctor says of them; the documented verification of a webhook."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from infra.alerts.alert import Alert
from infra.alerts.webhook import WebhookChannel
from pipelines.doctor import examine
from tests.infra.alert_servers import Web, web
from tests.small_project.command import evertrain, make_project

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project", 1)
    with (folder / "evertrain.yaml").open("a") as file:
        file.write(
            "\nalerts:\n  timeout: 3\n  channels:\n"
            "    - {type: slack, url_env: CHAT, on: [failed]}\n"
            "    - {type: webhook, url_env: HOOK, secret_env: SECRET}\n"
        )
    return folder


def test_a_test_alert_goes_to_every_channel_and_each_is_said(folder: Path) -> None:
    with web() as chat, web(404) as hook:
        more = {"CHAT": f"{chat.url}/hush", "HOOK": f"{hook.url}/hush", "SECRET": "hush"}
        ended = evertrain("alerts", folder, "--test", "--json", more=more)
        assert ended.code == 3
        slack, webhook = ended.json["channels"]
        assert slack["exit_code"] == 0
        assert re.fullmatch(rf"sent to {chat.url} in 0\.\d s", slack["words"])
        assert webhook["exit_code"] == 3
        assert "answered 404 (Not Found)" in webhook["words"]
        assert json.loads(hook.received[0].body)["outcome"] == "test"
        assert "hush" not in ended.out + ended.err
        hook.answers = [200]
        assert evertrain("alerts", folder, "--test", more=more).code == 0
        sent = (len(chat.received), len(hook.received))
        looked = evertrain("alerts", folder, more=more)
        assert (len(chat.received), len(hook.received)) == sent == (2, 2)
    assert looked.code == 0
    assert "on: failed\n" in looked.out


def test_variables_that_are_not_set_are_the_configurations_fault(folder: Path) -> None:
    ended = evertrain("alerts", folder)
    assert ended.code == 2
    assert "CHAT" in ended.out
    assert "SECRET" in ended.out or "HOOK" in ended.out


def test_without_channels_there_is_nothing_to_test(tmp_path: Path) -> None:
    folder = make_project(tmp_path / "project", 1)
    assert evertrain("alerts", folder).code == 0
    ended = evertrain("alerts", folder, "--test")
    assert ended.code == 2
    assert "docs/alerts.md" in ended.err


def test_the_doctor_looks_at_the_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def finding() -> Any:
        return next(f for f in examine(folder) if f.name == "alerts")

    assert finding().exit_code == 2
    assert "CHAT" in finding().words
    for name in ("CHAT", "HOOK"):
        monkeypatch.setenv(name, "https://example.org/hush")
    assert "SECRET" in finding().words
    monkeypatch.setenv("SECRET", "hush")
    assert (finding().exit_code, "hush" in finding().words) == (0, False)


def test_the_documented_verification_accepts_ours_and_no_other() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    said: dict[str, Any] = {}
    exec(code, said)
    is_ours = said["is_ours"]
    server: Web
    with web() as server:
        channel = WebhookChannel(name="hook", url=server.url, secret="right", timeout=3)
        channel.send(Alert(project="p", run="r", outcome="held", headline="Größer."))
    (got,) = server.received
    headers = {name.title(): value for name, value in got.headers.items()}
    later = int(headers["Evertrain-Timestamp"]) + 1000
    assert is_ours("right", headers, got.body)
    assert not is_ours("wrong", headers, got.body)
    assert not is_ours("right", headers, got.body.replace(b"held", b"fail"))
    assert not is_ours("right", headers, got.body, now=later)
    assert not is_ours("right", headers | {"Evertrain-Timestamp": str(later)}, got.body, now=later)
