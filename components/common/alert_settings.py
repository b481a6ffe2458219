"""`alerts` of evertrain.yaml: who hears of the end of a run, and by what.

Secrets are named by the environment variable that holds them; none can stand in the file. What is
refused is never quoted: it may be the secret, written into the wrong place.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from training_core.settings import Settings

Outcome = Literal[
    "promoted", "proposed", "held", "inconclusive", "stopped", "failed", "interrupted",
    "nothing_new", "skipped",
]  # fmt: skip
USUAL: tuple[Outcome, ...] = (
    "promoted", "proposed", "held", "inconclusive", "stopped", "failed", "interrupted",
)  # fmt: skip

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_ADDRESS = re.compile(r"[!-~]+@[!-~]+")
_NEVER_IN_ADDRESS = re.compile(r'[<>,;:"()\[\]\\]')
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class _Channel(Settings):
    """What all channels have."""

    name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9 _.-]{0,40}$",
        description="In records and in the log; empty: its type.",
    )
    on: tuple[Outcome, ...] = Field(
        USUAL,
        min_length=1,
        description="Outcomes that are told; not given: all but nothing_new and skipped.",
    )

    def variables(self) -> list[str]:
        """The environment variables that it needs."""
        named = (getattr(self, field) for field in type(self).model_fields if field[-4:] == "_env")
        return [name for name in named if name]

    @model_validator(mode="after")
    def _names_variables(self) -> Self:
        for field in type(self).model_fields:
            value = getattr(self, field) if field.endswith("_env") else ""
            if value and not _VARIABLE.fullmatch(value):
                raise ValueError(
                    f"{field} is the name of an environment variable (capitals, digits, _), not "
                    "the secret itself"
                )
        return self


class LogSettings(_Channel):
    """One line on stderr: in the run's log, or a pod's."""

    type: Literal["log"]


class WebhookSettings(_Channel):
    """JSON to a URL, signed with HMAC-SHA256."""

    type: Literal["webhook"]
    url: str = Field("", description="Where to; without user, password and query.")
    url_env: str = Field("", description="Variable that holds the URL instead, if it is a secret.")
    secret_env: str = Field(description="Variable that holds the secret it is signed with.")

    @model_validator(mode="after")
    def _one_url(self) -> Self:
        if bool(self.url) == bool(self.url_env):
            raise ValueError("give either url or url_env")
        if self.url:
            check_url(self.url)
        if not self.secret_env:
            raise ValueError("secret_env is empty: what is not signed can be forged")
        return self


class SlackSettings(_Channel):
    """A message to an incoming webhook of Slack, or of what is compatible with it."""

    type: Literal["slack"]
    url_env: str = Field(min_length=1, description="Variable that holds the webhook's URL.")


class EmailSettings(_Channel):
    """An e-mail by SMTP."""

    type: Literal["email"]
    host: str = Field(pattern=r"^[A-Za-z0-9.:_-]+$", description="SMTP server.")
    port: int = Field(587, ge=1, le=65535, description="Usual: 587 for starttls, 465 for tls.")
    security: Literal["starttls", "tls", "none"] = Field(
        "starttls", description="none: in the clear, and without login but on this machine."
    )
    user: str = Field("", description="To log in with; empty: no login, or user_env.")
    user_env: str = Field("", description="Variable that holds the user instead.")
    password_env: str = Field("", description="Variable that holds the password.")
    sender: str = Field(description="Address it comes from.")
    to: tuple[str, ...] = Field(min_length=1, description="Addresses it goes to.")

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        for address in (self.sender, *self.to):
            if not _ADDRESS.fullmatch(address) or _NEVER_IN_ADDRESS.search(address):
                raise ValueError(
                    f"{address!r} is no plain address such as team@example.org (no name, no "
                    "brackets, ASCII)"
                )
        if self.user and self.user_env:
            raise ValueError("give either user or user_env")
        if bool(self.user or self.user_env) != bool(self.password_env):
            raise ValueError("a login needs user (or user_env) and password_env, both or neither")
        if self.password_env and self.security == "none" and self.host not in _LOOPBACK:
            raise ValueError("security: none would send the password in the clear")
        return self


ChannelSettings = Annotated[
    LogSettings | WebhookSettings | SlackSettings | EmailSettings, Field(discriminator="type")
]


class AlertSettings(Settings):
    """Who hears of the end of a run."""

    channels: tuple[ChannelSettings, ...] = Field((), description="None: nobody is told.")
    timeout: float = Field(
        20.0,
        gt=0,
        le=120,
        description="Seconds that a run may take at its end for all channels together.",
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"several channels are called {twice[0]!r}: give each a name")
        return self

    @property
    def names(self) -> list[str]:
        """What the channels are called."""
        return [channel.name or channel.type for channel in self.channels]


def check_url(url: str) -> None:
    """Refuse a URL that is none, or that holds what may be a secret.

    Raises:
        ValueError: With words that do not quote it.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("url is none") from None
    if parts.scheme not in ("http", "https") or not host or not url.isprintable() or " " in url:
        raise ValueError("url is not one of http or https")
    if "@" in parts.netloc:
        raise ValueError("url has a user or a password in it: put it into a variable (url_env)")
    if parts.query or parts.fragment:
        raise ValueError("url has a query, which may be a secret: put it into a variable (url_env)")
