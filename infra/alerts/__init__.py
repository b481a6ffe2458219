"""Channels by which a person hears how a run ended: log, webhook, Slack-compatible, e-mail."""
