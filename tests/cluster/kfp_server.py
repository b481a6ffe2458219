"""A double of the Kubeflow Pipelines API server (v2beta1), for the stock `kfp.Client`.

    with KfpServer() as server:
        client = kfp.Client(host=server.url)

A run goes on by `script`: each GET of the run moves it one state further (PENDING, RUNNING,
SUCCEEDED unless told otherwise), so that no test waits on a clock. `set_state` moves it at any
time; an `executor` runs it for real (`tests/cluster/kfp_executors.py`). Schedules fire when the
test says so: `tick`. Faults: `server.faults`. What came: `server.requests`, `server.called`.

Kept from the real server (kubeflow/pipelines, `backend/src/apiserver`): shapes, codes, texts and
oddities, of which some bite: times have whole seconds, unset ones are 1970; what was made in the
same second is ordered by its random id; a five-field cron means something else (`kfp_cron.py`); a
`+` in a filter becomes a space; `enable_caching` has no field in a run by id, so nothing arrives.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from json import JSONDecodeError
from typing import Any

from tests.cluster.http_double import HttpDouble, Reply, Request
from tests.cluster.kfp_entities import Experiment, Run
from tests.cluster.kfp_errors import INVALID, UNAUTHENTICATED, KfpError, by_status
from tests.cluster.kfp_experiments import Experiments, Pipelines
from tests.cluster.kfp_recurring import RecurringRuns
from tests.cluster.kfp_runs import Runs
from tests.cluster.kfp_state import Account, Executor, RunHandle, State

__all__ = ["Account", "KfpServer", "RunHandle"]

LOGIN_PAGE = b"<!doctype html><html><body><h1>Log in to Your Account</h1></body></html>"


class KfpServer(HttpDouble):
    """The double.

    Args:
        multi_user: Every request names its namespace, and its user must be allowed there.
        accounts: By bearer token. Where there are accounts, who is none of them gets 401.
        cookies: The same, by the value of a cookie.
        argo: Steps show as the server on Argo shows them (`kfp_tasks.py`), and logs are as hidden.
        login_page: Who is nobody gets a login page and 200 instead, as from a gateway with OIDC.

    Attributes:
        executor: Runs a run; gives its end state (None: SUCCEEDED), or raises (FAILED).
        script: The states of a run without executor: a list, or what gives one for a run.
        cancel_ends_as: What a terminated run becomes; some versions of the server say FAILED.
        experiments, pipelines, runs, recurring_runs: What is there, by id.
    """

    def __init__(
        self,
        *,
        multi_user: bool = False,
        accounts: dict[str, Account] | None = None,
        cookies: dict[str, Account] | None = None,
        login_page: bool = False,
        executor: Executor | None = None,
        argo: bool = False,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__(port=port, tls=tls)
        self.state = State(
            multi_user, self.lock, accounts or {}, cookies or {}, executor=executor, argo=argo
        )
        self.login_page = login_page
        self.route("GET", "/apis/v2beta1/healthz", self._healthz)
        Experiments(self, self.state)
        Pipelines(self, self.state)
        runs = Runs(self, self.state)
        self._recurring = RecurringRuns(self, self.state, runs)
        if not multi_user:
            default = Experiment("Default", description="All runs created without specifying an experiment will be grouped here.")  # noqa: E501  # fmt: skip
            self.state.experiments[default.key] = default
            self.state.default_experiment = default.key

    @property
    def experiments(self) -> dict[str, Experiment]:
        return self.state.experiments

    @property
    def pipelines(self) -> dict[str, Any]:
        return self.state.pipelines

    @property
    def runs(self) -> dict[str, Run]:
        return self.state.runs

    @property
    def recurring_runs(self) -> dict[str, Any]:
        return self.state.recurring

    @property
    def executor(self) -> Executor | None:
        return self.state.executor

    @executor.setter
    def executor(self, executor: Executor | None) -> None:
        self.state.executor = executor

    @property
    def script(self) -> Callable[[Run], list[str]]:
        return self.state.script

    @script.setter
    def script(self, script: Sequence[str] | Callable[[Run], list[str]]) -> None:
        self.state.script = script if callable(script) else lambda run: list(script)

    @property
    def cancel_ends_as(self) -> str:
        return self.state.cancel_ends_as

    @cancel_ends_as.setter
    def cancel_ends_as(self, state: str) -> None:
        self.state.cancel_ends_as = state

    def set_state(self, run_id: str, state: str, error: str = "") -> None:
        """Put a run into a state; its script is over with that."""
        with self.lock:
            run = self.state.run(run_id)
            run.script.clear()
            run.become(state, error)

    def handle_of(self, run_id: str) -> RunHandle:
        """What an executor has, for a test that plays one: tasks and logs of a run."""
        with self.lock:
            run = self.state.run(run_id)
            return RunHandle(run, self.state.spec(run.source), self.lock)

    def tick(self, recurring_run_id: str, *, at: datetime | None = None) -> Run | None:
        """Let a schedule fire; None if the real controller would start nothing."""
        with self.lock:
            return self._recurring.fire(recurring_run_id, at=at)

    def due(self, recurring_run_id: str, *, since: datetime, until: datetime) -> list[datetime]:
        """When a schedule is due between two times (only the last one with `no_catchup`)."""
        with self.lock:
            return list(self._recurring.due(recurring_run_id, since=since, until=until))

    def close(self) -> None:
        """Stop; running executors are told by `cancelled`, and waited for."""
        super().close()
        for run in list(self.runs.values()):
            run.cancelled.set()
        for thread in self.state.threads:
            thread.join(30)

    def answer_to(self, request: Request) -> Reply:
        with self.lock:
            if self.state.guarded and self.state.account(request) is None:
                return self._stranger()
            handle = self.find(request)
            if handle is None:
                return Reply.of(
                    {"code": 5, "message": "Not Found", "details": []}, status=404
                )  # fmt: skip
            try:
                return handle(request)
            except KfpError as error:
                return error.reply()
            except (JSONDecodeError, UnicodeDecodeError, AttributeError, TypeError) as error:
                return KfpError(INVALID, f"invalid request body: {error}").reply()

    def error_reply(self, status: int) -> Reply:
        return by_status(status)

    def _stranger(self) -> Reply:
        if self.login_page:
            return Reply(200, LOGIN_PAGE, {"Content-Type": "text/html"})
        said = "Request header error: there is no user identity header."
        return KfpError(UNAUTHENTICATED, said, "Failed to authorize with API").reply()

    def _healthz(self, request: Request) -> Reply:
        return Reply.of({"multi_user": self.state.multi_user, "pipeline_store": "database"})
