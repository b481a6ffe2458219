"""`evertrain watch`: puts a watcher together for a project, and lets it turn."""

from __future__ import annotations

import os
import socket
import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from components.common.layout import project_store
from components.common.project import Project
from components.common.sources import Source, open_source
from infra.events.source import EventSource, Silence
from infra.lease import boot_seconds
from infra.store import ObjectStore
from pipelines.watch.advice import Advising
from pipelines.watch.cursor import Cursors
from pipelines.watch.exporting import Figures
from pipelines.watch.local_starter import LocalStarter
from pipelines.watch.looking import beating
from pipelines.watch.observing import Observer, who_is_busy
from pipelines.watch.outcomes import outcome_of
from pipelines.watch.parts import Parts
from pipelines.watch.places import open_events
from pipelines.watch.process import Life, Process
from pipelines.watch.schedules import Schedules
from pipelines.watch.serving import Server, address_of
from pipelines.watch.starter import RunStarter
from pipelines.watch.starting import Starting
from pipelines.watch.stopping import StopAsked, Stopping
from pipelines.watch.telling import Teller
from training_core.errors import ConfigurationError


@dataclass(frozen=True)
class Asked:
    """The command's options."""

    host: str = ""
    once: bool = False
    listen: str = ""
    data: str = ""
    as_json: bool = False


def start_watching(project: Project, asked: Asked) -> int:
    """Watch until somebody asks to stop, or once; return the exit code.

    Raises:
        ConfigurationError: Settings or options make no sense, or the task cannot be run.
        OutsideError: The port is taken; with `once`: whatever failed.
    """
    settings, watch = project.settings, project.settings.watch
    address = address_of(asked.listen) if asked.listen else None
    zone = settings.cluster.timezone
    given = settings.schedules if "schedule" in watch.when else ()
    schedules = Schedules(given, zone=zone)
    if "schedule" in watch.when and not schedules.keys:
        raise ConfigurationError(
            "watch.when names schedule, and no schedule is enabled",
            hint="write one under schedules in evertrain.yaml: evertrain schema describes them",
        )
    store, life = project_store(project), Life(boot_seconds)
    figures, teller = Figures(settings.name), Teller(as_json=asked.as_json)
    with ExitStack() as stack:
        stopping = stack.enter_context(Stopping())
        if address is not None:
            server = Server(address, healthy=life.healthy, ready=life.ready, figures=figures)
            stack.callback(server.close)
        events, source = _events(project, once=asked.once)
        starter = _starter(project, asked)
        stack.callback(starter.close)
        advising = None
        if set(watch.when) & {"drift", "decay"}:
            advising = Advising(project, data=asked.data, clock=boot_seconds)
            stack.callback(advising.close)
        parts = Parts(
            name=settings.name, settings=watch, source=beating(source, life.beat),
            data=settings.data, events=events, store=store,
            cursors=Cursors(store), starting=_starting(project, store, starter),
            schedules=schedules, busy=partial(who_is_busy, store), advising=advising,
            figures=figures, teller=teller, calm=stopping.waiting,
        )  # fmt: skip
        observer = Observer(store, figures) if address is not None else None
        process = Process(
            parts, life=life, observer=observer, stopping=stopping, prepare=starter.prepare
        )
        when = ", ".join([*(w for w in watch.when if w != "schedule"), *schedules.words])
        about = f"{events.about if events.looks or watch.queue else source.uri}"
        teller.say("watching", f"{settings.name} for {when} ({about}); runs on {starter.about}")
        if asked.once:
            return _once(process, starter, teller)
        return process.run()


def _once(process: Process, starter: RunStarter, teller: Teller) -> int:
    """Look once; a run on this machine is waited for, because its parent may end with this one."""
    try:
        process.once()
    except StopAsked:
        return 130
    started = process.watcher.started
    if not started:
        teller.say("looked", "no run is due")
    elif isinstance(starter, LocalStarter):
        for name in started:
            starter.wait(name)
        process.watcher.turn()
    return 0


def _starter(project: Project, asked: Asked) -> RunStarter:
    host = asked.host or project.settings.cluster.host
    if host or os.environ.get("KF_PIPELINES_ENDPOINT"):
        from pipelines.watch.kubeflow_starter import KubeflowStarter  # kfp: half a second

        return KubeflowStarter(project, host=host, data=asked.data)
    return LocalStarter(project, data=asked.data, stand_by=not asked.once)


def _events(project: Project, *, once: bool) -> tuple[EventSource, Source]:
    if once or "data" not in project.settings.watch.when:
        return Silence(time.sleep), open_source(project.data_source)
    return open_events(project, clock=boot_seconds, sleep=time.sleep)


def _starting(project: Project, store: ObjectStore, starter: RunStarter) -> Starting:
    watch = project.settings.watch
    return Starting(
        store, starter, outcome=partial(outcome_of, store), busy=partial(who_is_busy, store),
        by=f"{socket.gethostname()}:{os.getpid()}", retries=watch.retries, clock=boot_seconds,
        pause=watch.retry_after, under_way=min(starter.glance, watch.poll),
    )  # fmt: skip
