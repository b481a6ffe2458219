"""`evertrain alerts`: who is told of what, and whether that works."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from components.common.alert_channels import destination
from components.common.alert_settings import ChannelSettings
from components.common.project import Project
from components.report_run.alerting import deliver
from infra.alerts.alert import Alert
from infra.errors import OutsideError
from training_core.errors import ConfigurationError


@dataclass(frozen=True)
class ChannelState:
    """One channel.

    Attributes:
        on: The outcomes that it is for.
        exit_code: 0: as it should be; else as on the design page.
        words: Where it leads or what became of the test; else what is wrong.
    """

    name: str
    type: str
    on: list[str]
    exit_code: int
    words: str


def look(project: Project) -> list[ChannelState]:
    """Say where each channel leads, and whether its environment variables are set."""
    settings = project.settings.alerts
    return [_look(n, c) for n, c in zip(settings.names, settings.channels, strict=True)]


def try_out(project: Project) -> list[ChannelState]:
    """Send a test alert by every channel, whatever outcomes it is for.

    Raises:
        ConfigurationError: There is no channel.
    """
    settings = project.settings.alerts
    if not settings.channels:
        raise ConfigurationError(
            f"{project.settings.name!r} has no channel to try out",
            hint="write one under alerts.channels in evertrain.yaml, see docs/alerts.md",
        )
    looked = look(project)
    ready = [state.name for state in looked if not state.exit_code]
    told = deliver(settings, _test(project), only=ready)
    tried = []
    for state in looked:
        if state.name in told:
            sent = told[state.name]
            words = f"sent to {state.words} in {sent.seconds:.1f} s" if not sent.reason else ""
            code = 0 if sent.status == "sent" else OutsideError.exit_code
            state = ChannelState(state.name, state.type, state.on, code, words or sent.reason)
        tried.append(state)
    return tried


def _look(name: str, channel: ChannelSettings) -> ChannelState:
    try:
        code, words = 0, destination(channel)
    except (ConfigurationError, OutsideError) as error:
        code, words = ConfigurationError.exit_code, str(error)
    return ChannelState(name, channel.type, list(channel.on), code, words)


def _test(project: Project) -> Alert:
    now = datetime.now(UTC)
    return Alert(
        project=project.settings.name,
        run=f"test-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(2)}",
        outcome="test",
        headline="This is a test: nothing has happened.",
        reasons=("Somebody ran evertrain alerts --test.",),
        hint="Nothing has to be done.",
    )
