"""What `alerts` in evertrain.yaml may say; a secret in it is refused, and never quoted."""

from __future__ import annotations

from pathlib import Path

import pytest

from components.common.alert_channels import destination, open_channel
from components.common.project import open_project
from tests.small_project.command import make_project
from training_core.errors import ConfigurationError

HOOK = "type: webhook, secret_env: S"
MAIL = "type: email, host: h, sender: a@b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project", 1)


def write(folder: Path, *channels: str) -> None:
    lines = ["", "alerts:", "  channels:", *(f"    - {{{channel}}}" for channel in channels)]
    with (folder / "evertrain.yaml").open("a") as file:
        file.write("\n".join(lines))


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        (f"{HOOK}, url: 'https://hush:hush@example.org/'", "user or a password"),
        (f"{HOOK}, url: 'https://hush@example.org/'", "user or a password"),
        (f"{HOOK}, url: 'https://example.org/?token=hush'", "query"),
        (f"{HOOK}, url: 'hush://example.org'", "http or https"),
        (f"{HOOK}, url: 'https://[hush/'", "url is none"),
        (f"{HOOK}, url: 'https://example.org/', url_env: U", "either url or url_env"),
        (HOOK, "either url or url_env"),
        ("type: webhook, url: 'https://example.org/'", "secret_env' is missing"),
        ("type: webhook, url: 'https://example.org/', secret_env: ''", "can be forged"),
        ("type: webhook, url: 'https://example.org/', secret_env: hush", "not the secret itself"),
        ("type: slack, url_env: 'https://example.org/hush'", "not the secret itself"),
        ("type: slack, url_env: [hush]", "valid string"),
        ("type: slack, url: 'https://hush'", "unknown key"),
        (f"{MAIL}, to: [c@d], password: hush", "unknown key"),
        (f"{MAIL}, to: [c@d], password_env: P", "both or neither"),
        (f"{MAIL}, to: [c@d], user: u", "both or neither"),
        (f"{MAIL}, to: [c@d], user: u, password_env: P, security: none", "in the clear"),
        (f"{MAIL}, to: []", "at least 1 item"),
        (f"{MAIL}, to: ['Boss <c@d>']", "no plain address"),
        (f'{MAIL}, to: ["c@d\\r\\nBcc: e@f"]', "no plain address"),
        ("type: log, on: [sometimes]", "'promoted'"),
        ("type: log, on: []", "at least 1 item"),
        ('type: log, name: "a\\nb"', "match pattern"),
        ("type: pigeon", "expected tags"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder: Path, channel: str, words: str) -> None:
    write(folder, channel)
    with pytest.raises(ConfigurationError) as error:
        open_project(folder)
    assert words in str(error.value)
    assert "hush" not in str(error.value)
    assert "valid keys here: \n" not in str(error.value) + "\n"


def test_a_misspelt_key_of_a_channel_is_explained_with_that_channels_keys(folder: Path) -> None:
    write(folder, "type: slack, urll_env: U")
    with pytest.raises(ConfigurationError, match="did you mean 'url_env'") as error:
        open_project(folder)
    assert "valid keys here: name, on, type, url_env" in str(error.value)


def test_two_channels_of_one_type_need_names(folder: Path) -> None:
    write(folder, "type: log", "type: log")
    with pytest.raises(ConfigurationError, match="several channels are called 'log'"):
        open_project(folder)


def test_a_channel_that_is_given_no_outcomes_is_for_all_ends_of_runs_that_worked(
    folder: Path,
) -> None:
    write(folder, "type: log")
    (channel,) = open_project(folder).settings.alerts.channels
    assert set(channel.on) == {
        "promoted", "proposed", "held", "inconclusive", "stopped", "failed", "interrupted",
    }  # fmt: skip


def test_a_destination_does_not_tell_the_path_of_a_secret_url(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, "type: slack, url_env: U", f"{HOOK}, url: 'https://example.org:8443/hook'")
    slack, hook = open_project(folder).settings.alerts.channels
    monkeypatch.setenv("U", "https://example.org/hush\n")
    monkeypatch.setenv("S", "hush")
    assert destination(slack) == "https://example.org"
    assert destination(hook) == "https://example.org:8443/hook"


def test_a_variable_that_is_not_set_is_named(folder: Path) -> None:
    write(folder, f"{HOOK}, url: 'https://example.org/'")
    (hook,) = open_project(folder).settings.alerts.channels
    with pytest.raises(ConfigurationError, match="needs the environment variable S, which"):
        open_channel(hook, timeout=1)
