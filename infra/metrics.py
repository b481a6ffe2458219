"""The Prometheus metrics of the watcher: each one's name, kind, help and labels.

One table, read by what exports them, by the tests of the alert rules and dashboard in
`infra/kubernetes/`, and by the docs; so a rule cannot ask for a metric that nothing exports.
Names follow Prometheus' conventions: base units, `_total` for counters, `_timestamp_seconds` for
moments in Unix time (https://prometheus.io/docs/practices/naming/).
"""

from typing import Final, Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """What one metric is. `labels` come after `project`, which every metric has first."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        return ("project", *self.labels)


# Why a run was started.
REASONS: Final = ("data", "drift", "decay", "schedule")

# How a run ended: one of these is 1 in evertrain_last_run_status, the others are 0.
STATUSES: Final = (
    "promoted",
    "held",
    "inconclusive",
    "stopped",
    "failed",
    "interrupted",
    "nothing_new",
)

# Seconds. Fine below a minute, where SQS and a poll's interval are told apart; then a quiet
# period and a queue behind another run, up to a day.
EVENT_TO_START_BUCKETS: Final = (
    *(0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0),
    *(120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0),
)

METRICS: Final[dict[str, Metric]] = {
    "evertrain_watch_polls_total": Metric(
        "counter", "Looks at a source of events, by their outcome.", ("source", "outcome")
    ),
    "evertrain_watch_events_total": Metric(
        "counter", "Events that a source gave, duplicates included.", ("source",)
    ),
    "evertrain_watch_runs_started_total": Metric(
        "counter", "Runs that this watcher started, by their reason.", ("reason",)
    ),
    "evertrain_watch_errors_total": Metric(
        "counter", "Errors that the watcher went on after, by their kind.", ("kind",)
    ),
    "evertrain_watch_last_poll_timestamp_seconds": Metric(
        "gauge", "When a source was last looked at with success, Unix time; 0: never."
    ),
    "evertrain_watch_pending_objects": Metric(
        "gauge", "Objects that are there and that no run has been started for yet."
    ),
    "evertrain_watch_pending_since_timestamp_seconds": Metric(
        "gauge", "Since when the oldest pending object has been waiting, Unix time; 0: none is."
    ),
    "evertrain_watch_backoff_seconds": Metric(
        "gauge", "The wait before the next attempt after an error; 0: there was none."
    ),
    "evertrain_champion_version": Metric(
        "gauge", "The version of the model in production; 0: there is none."
    ),
    "evertrain_champion_promoted_timestamp_seconds": Metric(
        "gauge", "When the model in production became champion, Unix time; 0: there is none."
    ),
    "evertrain_last_run_timestamp_seconds": Metric(
        "gauge", "When the last run with this status ended, Unix time; 0: none did.", ("status",)
    ),
    "evertrain_last_run_status": Metric(
        "gauge", "1 for the status of the run that ended last, 0 for the others.", ("status",)
    ),
    "evertrain_lease_held": Metric("gauge", "1 while some run holds the project's lease, else 0."),
    "evertrain_lease_age_seconds": Metric(
        "gauge", "For how long the lease has been held by its holder; 0: it is free."
    ),
    "evertrain_watch_event_to_start_seconds": Metric(
        "histogram", "From an event's own time to the start of the run that it led to."
    ),
}


def series(name: str) -> tuple[str, ...]:
    """The names under which Prometheus stores the metric `name`.

    Raises:
        KeyError: there is no such metric.
    """
    if METRICS[name].kind == "histogram":
        return (f"{name}_bucket", f"{name}_sum", f"{name}_count")
    return (name,)
