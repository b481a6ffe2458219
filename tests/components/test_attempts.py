"""A step that ended for good ends so again at once when Kubeflow starts it anew."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.common.attempts import NODE_VARIABLE, attempt
from components.common.records import StepRecord, step
from infra.errors import OutsideError
from infra.folder import FolderStore
from training_core.errors import ConfigurationError, StoppedByGate

RUN = "20250101T000000Z-abcd"


@pytest.fixture(autouse=True)
def in_a_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("EVERTRAIN_RUN_ID", RUN)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name in ("EVERTRAIN_HOME", "EVERTRAIN_STORE", "KFP_RETRY_INDEX", NODE_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def ends(project: Path, error: BaseException | None) -> tuple[object, bool]:
    """The exit code of the step, and whether its work was begun."""
    begun = False
    try:
        with step("split_data", project=str(project), store="", overrides=[], run_key="k"):
            begun = True
            if error is not None:
                raise error
    except SystemExit as ended:
        return ended.code, begun
    return 0, begun


def kept(project: Path) -> bytes:
    return FolderStore(project / ".evertrain" / "store").get(f"runs/{RUN}/split_data.json")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StoppedByGate("bad data", hint="mend it"), 1),
        (ConfigurationError("no such key", hint="look"), 2),
        (ZeroDivisionError("division by zero"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_what_a_retry_cannot_help_is_not_done_again(
    fresh_project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
) -> None:
    assert ends(fresh_project, error) == (code, True)
    record, said = kept(fresh_project), capsys.readouterr().err
    monkeypatch.setenv("KFP_RETRY_INDEX", "1")
    assert ends(fresh_project, None) == (code, False)
    assert kept(fresh_project) == record, "the first attempt's record stays as it is"
    again = capsys.readouterr().err
    assert again == said[said.index("split_data: ") :], "the same words, and no traceback"


@pytest.mark.parametrize("error", [OutsideError("no server", hint="start it"), KeyboardInterrupt()])
def test_what_a_retry_may_help_is_done_again(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    assert ends(fresh_project, error)[1]
    monkeypatch.setenv("KFP_RETRY_INDEX", "1")
    assert ends(fresh_project, None) == (0, True)
    assert StepRecord.model_validate_json(kept(fresh_project)).status == "done"


def test_a_person_who_retries_a_run_has_everything_tried_anew(
    fresh_project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ends(fresh_project, StoppedByGate("bad data", hint="mend it")) == (1, True)
    monkeypatch.setenv(NODE_VARIABLE, "flights-x7k2p.root.run.split-data.executor(0)")
    assert ends(fresh_project, None) == (0, True)


def test_an_attempt_that_nobody_counts_is_taken_for_a_retry(fresh_project: Path) -> None:
    assert ends(fresh_project, StoppedByGate("bad data", hint="mend it")) == (1, True)
    assert ends(fresh_project, None) == (1, False)


def test_a_record_that_cannot_be_read_stops_nothing(fresh_project: Path) -> None:
    store = FolderStore(fresh_project / ".evertrain" / "store")
    store.put(f"runs/{RUN}/split_data.json", b"{")
    assert ends(fresh_project, None) == (0, True)


@pytest.mark.parametrize(
    ("index", "node", "number"),
    [
        ("2", "", 2),
        ("", "run.root.split-data.executor(1)", 1),
        ("0", "run.root.split-data.executor(3)", 0),
        ("", "run.root.split-data.executor", None),
        ("{{retries}}", "", None),
    ],
)
def test_attempts_are_counted_by_kubeflow_or_by_argo(
    monkeypatch: pytest.MonkeyPatch, index: str, node: str, number: int | None
) -> None:
    monkeypatch.setenv("KFP_RETRY_INDEX", index)
    monkeypatch.setenv(NODE_VARIABLE, node)
    assert attempt() == number
