"""What the parts of the KFP double share: what is kept, who may do what, how a run goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeVar

import yaml

from tests.cluster.http_double import Request
from tests.cluster.kfp_entities import (
    Experiment,
    Pipeline,
    Recurring,
    Run,
    Source,
    Version,
)
from tests.cluster.kfp_errors import DENIED, INVALID, UNAUTHENTICATED, KfpError, not_found
from tests.cluster.kfp_packages import parts_of, spec_of
from tests.cluster.kfp_tasks import Task, now

Kept = TypeVar("Kept")


@dataclass(frozen=True)
class Account:
    """A user, and the namespaces that are theirs (`*`: all)."""

    user: str
    namespaces: tuple[str, ...] = ("*",)


@dataclass
class RunHandle:
    """A run as an executor has it: what to run, and where to say how it goes."""

    run: Run
    spec: dict[str, Any]
    _lock: threading.RLock

    @property
    def cancelled(self) -> threading.Event:
        """Set when somebody terminates the run, or the server stops."""
        return self.run.cancelled

    @property
    def parameters(self) -> dict[str, Any]:
        return self.run.source.parameters

    @property
    def package(self) -> str:
        """The pipeline as a file that `kfp.components.load_component_from_text` reads."""
        pipeline, platform = parts_of(self.spec)
        return yaml.safe_dump_all([pipeline, platform] if platform else [pipeline])

    def task(self, name: str, state: str) -> None:
        """Say that a step of the run entered a state (`RUNNING`, `SUCCEEDED`, `FAILED`, …)."""
        with self._lock:
            task = self.run.tasks.setdefault(name, Task(name, state))
            task.state = state
            if state in ("SUCCEEDED", "FAILED", "SKIPPED", "CANCELED"):
                task.ended = now()

    def log(self, task: str, line: str) -> None:
        """Add a line to what the step's pod printed."""
        with self._lock:
            self.run.logs.setdefault(task, []).append(line)


Executor = Callable[[RunHandle], "str | None"]
Script = Callable[[Run], list[str]]


@dataclass
class State:
    """Everything that the server knows; guarded by `lock`."""

    multi_user: bool
    lock: threading.RLock
    accounts: dict[str, Account] = field(default_factory=dict)
    cookies: dict[str, Account] = field(default_factory=dict)
    experiments: dict[str, Experiment] = field(default_factory=dict)
    pipelines: dict[str, Pipeline] = field(default_factory=dict)
    runs: dict[str, Run] = field(default_factory=dict)
    recurring: dict[str, Recurring] = field(default_factory=dict)
    default_experiment: str = ""
    script: Script = lambda run: ["PENDING", "RUNNING", "SUCCEEDED"]
    executor: Executor | None = None
    cancel_ends_as: str = "CANCELED"
    argo: bool = False
    threads: list[threading.Thread] = field(default_factory=list)

    # who asks
    def account(self, request: Request) -> Account | None:
        """Who a request is from: by its bearer token, its cookie, or the gateway's header."""
        form, _, token = request.headers.get("authorization", "").partition(" ")
        if form.lower() == "bearer" and token in self.accounts:
            return self.accounts[token]
        for value in _cookie_values(request.headers.get("cookie", "")):
            if value in self.cookies:
                return self.cookies[value]
        user = request.headers.get("kubeflow-userid", "")
        return next((each for each in self._known() if user and each.user == user), None)

    def _known(self) -> Iterator[Account]:
        yield from self.accounts.values()
        yield from self.cookies.values()

    @property
    def guarded(self) -> bool:
        return bool(self.accounts or self.cookies)

    def allow(self, request: Request, namespace: str, *, verb: str, resource: str) -> None:
        """Refuse who may not do this in the namespace, as the server in multi-user mode does."""
        if not self.multi_user:
            return
        if not namespace:
            kind = {"runs": "A run", "jobs": "A recurring run", "pipelines": "A pipeline"}
            kind_said = kind.get(resource, "An experiment")
            said = f"{kind_said} cannot have an empty namespace in multi-user mode"
            raise KfpError(INVALID, said, "Failed to authorize with API")
        account = self.account(request)
        if account is None:
            said = "Request header error: there is no user identity header."
            raise KfpError(UNAUTHENTICATED, said, "Failed to authorize with API")
        if not {"*", namespace} & set(account.namespaces):
            asked = (
                f"&ResourceAttributes{{Namespace:{namespace},Verb:{verb},"
                f"Group:pipelines.kubeflow.org,Version:v1beta1,Resource:{resource},"
                "Subresource:,Name:,}"
            )
            said = f"User '{account.user}' is not authorized with reason:  (request: {asked})"
            raise KfpError(DENIED, said, "Failed to authorize with API")

    def namespace(self, told: str) -> str:
        """Without users there are no namespaces: whatever is told is passed over."""
        return told if self.multi_user else ""

    # what there is
    def experiment(self, key: str) -> Experiment:
        return _kept(self.experiments, "Experiment", key)

    def pipeline(self, key: str) -> Pipeline:
        return _kept(self.pipelines, "Pipeline", key)

    def version(self, key: str) -> Version:
        for pipeline in self.pipelines.values():
            if key in pipeline.versions:
                return pipeline.versions[key]
        raise not_found("PipelineVersion", key)

    def run(self, key: str) -> Run:
        return _kept(self.runs, "Run", key)

    def schedule(self, key: str) -> Recurring:
        return _kept(self.recurring, "Job", key)

    def spec(self, source: Source) -> dict[str, Any]:
        """What a source means now: a pipeline without a version means its latest."""
        if source.version:
            return self.version(source.version).spec
        if source.pipeline:
            latest = self.pipeline(source.pipeline).latest()
            if latest is None:
                raise not_found("PipelineVersion", f"of pipeline {source.pipeline}")
            return latest.spec
        return source.spec

    # how a run goes on
    def start(self, run: Run) -> None:
        """Begin, or begin again after a retry."""
        if self.argo and not run.workflow:
            name = parts_of(self.spec(run.source))[0]["pipelineInfo"]["name"]
            run.workflow = f"{name}-{run.key[:5]}"
        run.cancelled = threading.Event()
        if self.executor is None:
            run.script = list(self.script(run)) or ["PENDING"]
            run.become(run.script.pop(0))
            return
        run.become("PENDING")
        handle = RunHandle(run, self.spec(run.source), self.lock)
        thread = threading.Thread(target=self._execute, args=(handle, self.executor), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _execute(self, handle: RunHandle, executor: Executor) -> None:
        run, cancelled = handle.run, handle.run.cancelled
        with self.lock:
            run.become("RUNNING")
        try:
            state, error = executor(handle) or "SUCCEEDED", ""
        except Exception as failure:  # noqa: BLE001 — whatever a test's executor raises
            state, error = "FAILED", f"{type(failure).__name__}: {failure}"
        with self.lock:
            run.become(self.cancel_ends_as if cancelled.is_set() else state, error)

    def look(self, run: Run) -> None:
        """A look at a run moves its script on by one state."""
        if self.executor is not None:
            return
        if run.state == "CANCELING":
            run.become(self.cancel_ends_as)
        elif run.script:
            run.become(run.script.pop(0))

    def source(self, told: dict[str, Any]) -> Source:
        """What a request asks to run.

        Raises:
            KfpError: It names nothing, or what is not there, or a spec that is none.
        """
        by_id = told.get("pipeline_version_reference") or {}
        config = told.get("runtime_config") or {}
        source = Source(
            pipeline=by_id.get("pipeline_id", ""),
            version=by_id.get("pipeline_version_id", ""),
            spec=told.get("pipeline_spec") or {},
            parameters=config.get("parameters") or {},
            root=config.get("pipeline_root", ""),
        )
        if source.version:
            version = self.version(source.version)  # it counts, whatever pipeline is named beside
            source.pipeline = source.pipeline or version.pipeline
        elif source.pipeline:
            self.spec(source)
        elif source.spec:
            source.spec = spec_of(_dumped(source.spec))
        else:
            raise KfpError(
                INVALID, "Failed to fetch a template with an invalid pipeline spec manifest"
            )
        return source


def _dumped(spec: dict[str, Any]) -> str:
    pipeline, platform = parts_of(spec)
    return yaml.safe_dump_all([pipeline, platform] if platform else [pipeline])


def _kept(things: dict[str, Kept], kind: str, key: str) -> Kept:
    if key not in things:
        raise not_found(kind, key)
    return things[key]


def _cookie_values(text: str) -> list[str]:
    try:
        return [morsel.value for morsel in SimpleCookie(text).values()]
    except CookieError:
        return []
