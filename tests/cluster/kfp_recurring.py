"""The KFP API's schedules: `job_server.go` and `api_converter.go` of kubeflow/pipelines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tests.cluster.http_double import HttpDouble, Reply, Request
from tests.cluster.kfp_cron import Cron, Every, times
from tests.cluster.kfp_entities import Recurring, Run, Source
from tests.cluster.kfp_errors import INVALID, KfpError, internal
from tests.cluster.kfp_packages import check_parameters
from tests.cluster.kfp_runs import Owned, Runs
from tests.cluster.kfp_state import State
from tests.cluster.kfp_tasks import filled, now
from tests.cluster.kfp_times import seconds, shown

_BASE = "/apis/v2beta1"


class RecurringRuns(Owned):
    resource = "jobs"

    def __init__(self, server: HttpDouble, state: State, runs: Runs) -> None:
        super().__init__(state)
        self.runs = runs
        one = f"{_BASE}/recurringruns/{{id}}"
        server.route("POST", f"{_BASE}/recurringruns", self.create)
        server.route("GET", f"{_BASE}/recurringruns", self.list)
        server.route("GET", one, self.get)
        server.route("DELETE", one, self.delete)
        server.route("POST", f"{one}:enable", self.enable)
        server.route("POST", f"{one}:disable", self.disable)

    def create(self, request: Request) -> Reply:
        told, what = request.json(), "Failed to create a recurring run"
        name = told.get("display_name", "")
        if not name:
            raise internal(
                "Failed to convert a API recurring run to its internal representation: "
                "Invalid input error: Recurring run's name cannot be empty"
            ).within(what)
        most = int(told.get("max_concurrency") or 0)
        if not 1 <= most <= 10:
            raise KfpError(
                INVALID,
                "Max concurrency of a recurring run must be at least 1 and at most 10. "
                f"Received {most}",
                what, "Failed to create a recurring run due to conversion error",
            )  # fmt: skip
        try:
            trigger = _trigger(told.get("trigger") or {})
            experiment = self.experiment(request, told)
            source = self.state.source(told)
            check_parameters(self.state.spec(source), source.parameters)
        except KfpError as error:
            raise error.within(what) from None
        made = Recurring(
            name, experiment.key, experiment.namespace, source, trigger, most,
            told.get("mode") == "ENABLE", bool(told.get("no_catchup")),
            told.get("description", ""), told.get("service_account") or "pipeline-runner",
        )  # fmt: skip
        self.state.recurring[made.key] = made
        return Reply.of(made.view())

    def get(self, request: Request) -> Reply:
        return Reply.of(self._allowed(request, "get").view())

    def list(self, request: Request) -> Reply:
        views, total, token = self.listed(request, list(self.state.recurring.values()), "Job")
        return Reply.of(filled(recurringRuns=views, total_size=total, next_page_token=token))

    def delete(self, request: Request) -> Reply:
        del self.state.recurring[self._allowed(request, "delete").key]
        return Reply.of({})

    def enable(self, request: Request) -> Reply:
        return self._switch(request, "enable", to=True)

    def disable(self, request: Request) -> Reply:
        return self._switch(request, "disable", to=False)

    def _switch(self, request: Request, verb: str, *, to: bool) -> Reply:
        found = self._allowed(request, verb)
        found.enabled, found.updated = to, now()
        return Reply.of({})

    def _allowed(self, request: Request, verb: str) -> Recurring:
        found = self.state.schedule(request.named["id"])
        self.state.allow(request, found.namespace, verb=verb, resource=self.resource)
        return found

    def fire(self, key: str, *, at: datetime | None = None) -> Run | None:
        """Start the run that is due, as the controller of ScheduledWorkflows does.

        Returns:
            The run; None where the schedule is off, over, not begun, or has as many runs going as
            it may.
        """
        schedule = self.state.schedule(key)
        at = at or datetime.now(UTC)
        start, end = span(schedule)
        going = [run for run in self.state.runs.values() if run.recurring == key and not run.over]
        outside = (start and at < start) or (end and at > end)
        if not schedule.enabled or outside or len(going) >= schedule.max_concurrency:
            return None
        schedule.fired += 1
        mark = hashlib.sha256(f"{key}{at.timestamp()}".encode()).hexdigest()[:10]
        source = Source(
            schedule.source.pipeline, schedule.source.version, schedule.source.spec,
            dict(schedule.source.parameters), schedule.source.root,
        )  # fmt: skip
        run = Run(
            f"{schedule.name}-{schedule.fired}-{mark}", schedule.experiment, schedule.namespace,
            source, schedule.description, schedule.service_account, key,
            scheduled=int(at.timestamp()),
        )  # fmt: skip
        return self.runs.add(run, self.state.experiment(schedule.experiment))

    def due(self, key: str, *, since: datetime, until: datetime) -> Sequence[datetime]:
        """When the schedule is due between two times; only the last where it does not catch up."""
        schedule = self.state.schedule(key)
        start, end = span(schedule)
        found = list(
            times(parsed(schedule), since=max(since, start or since), until=until, end=end)
        )
        return found[-1:] if schedule.no_catchup else found


def span(schedule: Recurring) -> tuple[datetime | None, datetime | None]:
    (told,) = schedule.trigger.values()
    start, end = (told.get(name) for name in ("start_time", "end_time"))
    return (
        datetime.fromisoformat(start) if start else None,
        datetime.fromisoformat(end) if end else None,
    )


def parsed(schedule: Recurring) -> Cron | Every:
    if cron := schedule.trigger.get("cron_schedule"):
        return Cron.parse(cron["cron"])
    return Every(int(schedule.trigger["periodic_schedule"]["interval_second"]))


def _trigger(told: dict[str, Any]) -> dict[str, Any]:
    """The trigger as it is kept and shown.

    Raises:
        KfpError: A cron, an interval or a time that the server does not take.
    """
    forms = [name for name in ("cron_schedule", "periodic_schedule") if told.get(name)]
    if len(forms) != 1:
        raise KfpError(INVALID, "Either a cron schedule or a periodic schedule is required")
    schedule = dict(told[forms[0]])
    for name in ("start_time", "end_time"):
        if schedule.get(name):
            try:
                schedule[name] = shown(seconds(str(schedule[name])))
            except ValueError:
                said = f"proto: invalid google.protobuf.Timestamp value {schedule[name]!r}"
                raise KfpError(INVALID, said) from None
    if forms[0] == "cron_schedule":
        try:
            Cron.parse(schedule.get("cron", ""))
        except ValueError as error:
            raise KfpError(
                INVALID,
                "Schedule cron is not a supported format(https://godoc.org/github.com/robfig/cron)"
                f". Error: {error}",
            ) from None
    else:
        interval = int(schedule.get("interval_second") or 0)
        if interval < 1:
            raise KfpError(
                INVALID,
                f"Found invalid period schedule interval {interval}. Set at interval to least 1 "
                "second",
            )
        schedule["interval_second"] = str(interval)
    return {forms[0]: {name: value for name, value in schedule.items() if value}}
