"""Schedules: Kubeflow's recurring runs. They cannot be changed, only made, switched and deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from infra.kubeflow.calls import Calls
from infra.kubeflow.entities import Schedule
from infra.kubeflow.errors import NotThere
from infra.kubeflow.listing import every, moment


class Schedules:
    """The schedules of one namespace.

    Args:
        client: kfp's.
        calls: How calls are made.
        namespace: Of the profile; empty: Kubeflow is not multi-user.
    """

    def __init__(self, client: Any, calls: Calls, namespace: str) -> None:
        self._api, self._calls, self._namespace = client.recurring_runs, calls, namespace

    def all(self) -> list[Schedule]:
        """Return every schedule, whoever made it, the newest first."""
        found = every(
            self._calls, "list the schedules",
            self._api.recurring_run_service_list_recurring_runs, "recurring_runs",
            namespace=self._namespace,
        )  # fmt: skip
        return [_schedule(each) for each in found]

    def create(
        self, wanted: Schedule, *, is_it: Callable[[Schedule], bool] = lambda schedule: False
    ) -> Schedule:
        """Make a schedule; a lost reply does not make two.

        Args:
            wanted: What it is to be; its id is not looked at.
            is_it: Whether a schedule is the one that this call made, after its reply was lost. It
                has to say no to those that were there before.

        Raises:
            Refused: The server does not take its cron, or its parameters.
        """
        from kfp_server_api import (
            RecurringRunMode,
            V2beta1CronSchedule,
            V2beta1PipelineVersionReference,
            V2beta1RecurringRun,
            V2beta1RuntimeConfig,
            V2beta1Trigger,
        )

        body = V2beta1RecurringRun(
            display_name=wanted.name,
            description=wanted.description,
            experiment_id=wanted.experiment,
            mode=RecurringRunMode.ENABLE if wanted.enabled else RecurringRunMode.DISABLE,
            pipeline_version_reference=V2beta1PipelineVersionReference(
                pipeline_id=wanted.pipeline, pipeline_version_id=wanted.version
            ),
            runtime_config=V2beta1RuntimeConfig(parameters=wanted.parameters),
            trigger=V2beta1Trigger(cron_schedule=V2beta1CronSchedule(cron=wanted.cron)),
            max_concurrency=str(wanted.max_concurrency),
            no_catchup=not wanted.catch_up,
            service_account=wanted.service_account or None,
        )
        made = self._calls.create(
            f"make the schedule {wanted.name!r}",
            lambda: next((each for each in self.all() if is_it(each)), None),
            self._api.recurring_run_service_create_recurring_run,
            body,
        )
        return made if isinstance(made, Schedule) else _schedule(made)

    def enable(self, schedule: Schedule) -> None:
        """Let it fire again."""
        self._calls.ask(
            f"enable the schedule {schedule.name!r}",
            self._api.recurring_run_service_enable_recurring_run,
            schedule.id,
        )

    def disable(self, schedule: Schedule) -> None:
        """Let it fire no more; it stays."""
        self._calls.ask(
            f"disable the schedule {schedule.name!r}",
            self._api.recurring_run_service_disable_recurring_run,
            schedule.id,
        )

    def delete(self, schedule: Schedule) -> None:
        """Delete it; its runs stay. One that is gone already is gone."""
        with contextlib.suppress(NotThere):
            self._calls.ask(
                f"delete the schedule {schedule.name!r}",
                self._api.recurring_run_service_delete_recurring_run,
                schedule.id,
            )


def _schedule(given: Any) -> Schedule:
    reference, config = given.pipeline_version_reference, given.runtime_config
    cron = given.trigger.cron_schedule if given.trigger else None
    periodic = given.trigger.periodic_schedule if given.trigger else None
    times = cron or periodic
    return Schedule(
        id=given.recurring_run_id,
        name=given.display_name or "",
        description=given.description or "",
        enabled=given.mode == "ENABLE",
        pipeline=(reference.pipeline_id or "") if reference else "",
        version=(reference.pipeline_version_id or "") if reference else "",
        experiment=given.experiment_id or "",
        cron=(cron.cron or "") if cron else "",
        every=int(periodic.interval_second or 0) if periodic else 0,
        parameters=dict((config.parameters if config else None) or {}),
        catch_up=not given.no_catchup,
        max_concurrency=int(given.max_concurrency or 1),
        service_account=given.service_account or "",
        starts=_text(times.start_time if times else None),
        ends=_text(times.end_time if times else None),
        created=moment(given.created_at),
    )


def _text(given: Any) -> str:
    at = moment(given)
    return at.isoformat() if at else ""
