"""From the settings of an alert's channel and the environment to the channel itself."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from components.common.alert_settings import (
    ChannelSettings,
    EmailSettings,
    LogSettings,
    SlackSettings,
    WebhookSettings,
)
from infra.alerts.alert import Channel
from infra.alerts.email import EmailChannel, Server
from infra.alerts.log import LogChannel
from infra.alerts.post import host_of
from infra.alerts.slack import SlackChannel
from infra.alerts.webhook import WebhookChannel
from training_core.errors import ConfigurationError


def open_channel(settings: ChannelSettings, *, timeout: float) -> Channel:
    """Make a channel; nothing is sent or looked up yet.

    Args:
        settings: Of the channel.
        timeout: Seconds that all attempts may take; one gets half, so that a second fits in.

    Raises:
        ConfigurationError: An environment variable that it needs is not set.
    """
    name, attempt = settings.name or settings.type, timeout / 2
    match settings:
        case LogSettings():
            return LogChannel(name=name)
        case WebhookSettings():
            url = settings.url or secret(settings.url_env, name)
            key = secret(settings.secret_env, name)
            return WebhookChannel(name=name, url=url, secret=key, timeout=attempt)
        case SlackSettings():
            return SlackChannel(name=name, url=secret(settings.url_env, name), timeout=attempt)
        case EmailSettings():
            user = secret(settings.user_env, name) if settings.user_env else settings.user
            password = secret(settings.password_env, name) if settings.password_env else ""
            server = Server(settings.host, settings.port, settings.security, user, password)
            return EmailChannel(
                name=name,
                server=server,
                sender=settings.sender,
                recipients=settings.to,
                timeout=attempt,
            )


def secret(variable: str, channel: str) -> str:
    """Read a variable, without the line break that files of secrets often end with.

    Raises:
        ConfigurationError: It is not set, or empty.
    """
    value = os.environ.get(variable, "").strip("\r\n")
    if not value:
        raise ConfigurationError(
            f"the alert channel {channel!r} needs the environment variable {variable}, which is "
            "not set",
            hint=f"set {variable}, or take the channel out of alerts.channels",
        )
    return value


def destination(settings: ChannelSettings) -> str:
    """Where a channel leads, without what may be a secret.

    Raises:
        ConfigurationError: An environment variable that it needs is not set.
        NotSent: The variable of its URL holds none.
    """
    name = settings.name or settings.type
    for variable in settings.variables():
        secret(variable, name)
    match settings:
        case LogSettings():
            return "stderr"
        case WebhookSettings(url=url) if url:
            return f"{host_of(url)}{urlsplit(url).path}"
        case WebhookSettings() | SlackSettings():
            return host_of(secret(settings.url_env, name))
        case EmailSettings():
            return f"{', '.join(settings.to)} by {settings.host}:{settings.port}"
