"""A package is tried out in a process of its own, and what is wrong with it is said in words."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from components.common.smoke import smoke_test
from tests.sample_packages.writing import KINDS, Written, edit, written

IN_TRANSFORM = "\nTabularPreprocessor.transform = lambda self, frame: "


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A package with predictions [N]. Do not change it."""
    return written(tmp_path_factory.mktemp("whole"), "regression")


@pytest.fixture
def package(whole: Written, tmp_path: Path) -> Written:
    """A copy that a test may spoil."""
    return whole._replace(folder=Path(shutil.copytree(whole.folder, tmp_path / "package")))


def message(package: Written, *, timeout: float = 60, bare: bool = False) -> str:
    """Try a package out that must not pass."""
    rows, expected = (None, None) if bare else (package.rows, package.expected)
    figures = smoke_test(package.folder, rows, expected, timeout=timeout)
    assert figures.outcome == "fail"
    assert ": " in figures.message or "; " in figures.message  # what is wrong, and what to do
    return figures.message


@pytest.mark.parametrize("kind", KINDS)
def test_a_package_of_each_kind_predicts_in_a_fresh_process_what_was_recorded(
    kind: str, tmp_path: Path
) -> None:
    package = written(tmp_path, kind)
    before = sorted(package.folder.rglob("*"))
    began = time.monotonic()
    figures = smoke_test(package.folder, package.rows, package.expected)
    seconds = time.monotonic() - began
    assert figures.outcome == "pass", figures.message
    assert figures.rows == 60
    assert figures.largest_difference is not None
    assert 0 <= figures.largest_difference < 1e-5
    assert "without the project's code" in figures.how
    assert f"{sum(path.stat().st_size for path in before) / 1e6}" == f"{figures.size_mb}"
    assert figures.load_seconds is not None
    assert 0.3 < figures.load_seconds < seconds
    assert figures.latency_ms is not None
    assert figures.latency_p99_ms is not None
    assert 0 < figures.latency_ms <= figures.latency_p99_ms < 1000 * seconds
    assert figures.rows_per_second is not None
    assert figures.rows_per_second * figures.latency_ms / 1000 > 2  # together rows are faster
    assert sorted(package.folder.rglob("*")) == before  # it leaves nothing behind there


def test_the_memory_is_that_of_the_process_and_not_of_the_one_that_started_it(
    whole: Written,
) -> None:
    ballast = np.ones(80_000_000)  # 640 MB
    figures = smoke_test(whole.folder, None, None)
    assert figures.peak_memory_mb is not None
    assert 100 < figures.peak_memory_mb < ballast.nbytes / 1e6
    assert (figures.outcome, figures.rows, figures.latency_ms) == ("pass", 0, None)
    assert "given no rows" in figures.message


def test_who_asks_for_it_needs_no_torch(whole: Written) -> None:
    code = (
        "import sys; from pathlib import Path; from components.common.smoke import smoke_test; "
        "print(smoke_test(Path(sys.argv[1]), None, None).outcome, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, whole.folder], capture_output=True, text=True, check=True
    )
    assert done.stdout == "pass False\n"


@pytest.mark.parametrize(
    "name", ["package.json", "network.pt2", "preprocessor.json", "preprocessor.py"]
)
@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_a_file_that_is_missing_or_damaged_is_named(
    package: Written, name: str, damage: str
) -> None:
    path = package.folder / name
    content = bytearray(path.read_bytes())
    content[0 if name == "package.json" else len(content) // 2] ^= 1
    path.unlink()
    if damage == "flipped":
        path.write_bytes(content)
    words = "damaged" if damage == "flipped" else "missing"
    assert f"{name} is {words}" in message(package)


def test_a_folder_that_is_not_there_and_another_format_are_said(
    package: Written, tmp_path: Path
) -> None:
    assert "package.json is missing" in message(package._replace(folder=tmp_path / "nowhere"))
    text = (package.folder / "package.json").read_text()
    (package.folder / "package.json").write_text(text.replace("package/1", "package/9"))
    assert "'evertrain/package/9'" in message(package)


@pytest.mark.parametrize("code", ["import training_core", "from components.common import layout"])
def test_the_project_cannot_be_imported_though_it_is_installed(package: Written, code: str) -> None:
    edit(package.folder, "preprocessor.py", add=f"\n{code}\n")
    said = message(package)
    assert "which is not there where the package is served" in said
    assert code.split()[1].partition(".")[0] in said


def test_nothing_of_the_project_is_loaded_and_no_credential_is_seen(
    package: Written, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_SECRET_ACCESS_KEY", "MLFLOW_TRACKING_TOKEN", "EVERTRAIN_STORE", "PGPASSWORD"):
        monkeypatch.setenv(name, "a-secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".aws").mkdir()
    edit(
        package.folder,
        "preprocessor.py",
        add=f"""
import os, sys, pathlib
def tell(self, frame):
    ours = [m for m in sys.modules if m.split(".")[0] in {("components", "infra", "training_core")}
            and sys.modules[m] is not None]
    raise ValueError(f"{{ours}} {{'a-secret' in os.environ.values()}} "
                     f"{{(pathlib.Path.home() / '.aws').exists()}} {{sorted(os.environ)}}")
TabularPreprocessor.transform = tell
""",
    )
    said = message(package)
    assert "rows were scored: [] False False [" in said
    names = said.partition("False False ")[2]
    assert "PATH" in names
    assert not {"AWS", "MLFLOW", "EVERTRAIN", "PG", "PYTHON"} & {
        word.strip("[', ]").partition("_")[0] for word in names.split()
    }


def test_a_module_of_the_users_own_that_does_not_travel_is_named(
    package: Written, tmp_path: Path
) -> None:
    (tmp_path / "my_features.py").write_text("")
    found = f"\nimport sys; sys.path.insert(0, {str(tmp_path)!r}); import my_features\n"
    edit(package.folder, "preprocessor.py", add=found)
    assert f"my_features from {tmp_path}" in message(package, bare=True)
    edit(package.folder, "preprocessor.py", add="\nimport no_such_module\n")
    assert "imports no_such_module, which is not there" in message(package)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("1 / 0", "preprocessor.py was loaded: ZeroDivisionError: division by zero"),
        ("raise SystemExit(0)", "preprocessor.py was loaded: SystemExit"),
        ("import os; os._exit(0)", "ended with status 0 and said nothing"),
        ("import os; print('deep', flush=True); os.abort()", "SIGABRT (it last said: deep)"),
        ("import os; os.kill(os.getpid(), 9)", "killed (SIGKILL), as the system does where memory"),
        ("bytearray(10**18)", "memory ran out when preprocessor.py was loaded"),
        ("import urllib.request as u; u.urlopen('http://127.0.0.1:9')", "it wants the network"),
    ],
)
def test_a_preprocessor_that_fails_ends_crashes_or_is_killed_is_said_to(
    package: Written, code: str, words: str
) -> None:
    edit(package.folder, "preprocessor.py", add=f"\n{code}\n")
    assert words in message(package)


def test_what_takes_too_long_is_stopped_with_all_that_it_started(
    package: Written, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    waits = f"""
import pathlib, subprocess, time
child = subprocess.Popen(["sleep", "600"])
pathlib.Path({str(note)!r}).write_text(str(child.pid))
time.sleep(600)
"""
    edit(package.folder, "preprocessor.py", add=waits)
    began = time.monotonic()
    assert "within 3 s, and was stopped" in message(package, timeout=3)
    assert time.monotonic() - began < 8
    deadline = time.monotonic() + 10
    status = Path("/proc", note.read_text(), "stat")  # a zombie until init has fetched it
    while status.exists() and ") Z" not in status.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not status.exists() or ") Z" in status.read_text()


def test_a_process_that_nobody_is_left_to_stop_ends_by_itself(
    package: Written, tmp_path: Path
) -> None:
    note = tmp_path / "pid"
    waits = f"""
import os, pathlib, time
pathlib.Path({str(note)!r}).write_text(str(os.getpid()))
time.sleep(600)
"""
    edit(package.folder, "preprocessor.py", add=waits)
    code = (
        "import sys; from pathlib import Path; import components.common.smoke as s; "
        "s._PATIENCE = 1; s.smoke_test(Path(sys.argv[1]), None, None, timeout=2)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, package.folder])
    deadline = time.monotonic() + 30
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    alive = Path("/proc", note.read_text(), "stat")
    while alive.exists() and ") Z" not in alive.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive.exists() or ") Z" in alive.read_text()


def test_a_network_that_is_no_graph_is_said_to_be_none(package: Written) -> None:
    (package.folder / "network.pt2").write_text("not a graph")
    edit(package.folder, "network.pt2")
    assert "failed when network.pt2 was loaded" in message(package)


def test_other_predictions_are_counted_and_the_first_is_shown(whole: Written) -> None:
    expected = whole.expected.copy()
    expected[[17, 40]] += [0.5, 0.25]
    said = message(whole._replace(expected=expected))
    assert "for 2 of 60 rows: row 17 gives" in said
    assert "largest difference 0.5" in said
    figures = smoke_test(whole.folder, whole.rows, expected)
    assert figures.largest_difference == pytest.approx(0.5, abs=1e-4)
    assert "[60], and [60, 1] are recorded" in message(
        whole._replace(expected=whole.expected[:, None])
    )


def test_predictions_that_are_not_finite_are_refused_with_the_first_row(package: Written) -> None:
    own = "\n_own = TabularPreprocessor.transform\ndef _holed(self, frame):\n"
    own += "    arrays = _own(self, frame)\n    if len(frame) > 1:\n"
    own += "        arrays['numbers'][7:9] = np.nan\n    return arrays\n"
    edit(package.folder, "preprocessor.py", add=own + "TabularPreprocessor.transform = _holed\n")
    assert "predictions of 2 of 60 rows are not finite, the first that of row 7" in message(package)


def test_rows_that_cannot_be_scored_are_said_with_the_reason(package: Written) -> None:
    lacking = package._replace(rows=package.rows.drop(columns=package.rows.columns[0]))
    assert "rows were scored: KeyError" in message(lacking)
    edit(package.folder, "preprocessor.py", add=f"{IN_TRANSFORM}{{}}\n")
    assert "failed when rows were scored" in message(package)


def test_predictions_of_another_number_of_rows_are_refused(package: Written) -> None:
    own = "\n_own = TabularPreprocessor.transform\n"
    own += f"{IN_TRANSFORM}_own(self, frame.head(max(1, len(frame) // 2)))\n"
    edit(package.folder, "preprocessor.py", add=own)
    assert "shape [30] for 60 rows" in message(package)


def test_a_row_whose_prediction_depends_on_the_others_is_noticed(package: Written) -> None:
    own = "\n_own = TabularPreprocessor.transform\ndef _scaled(self, frame):\n"
    own += "    arrays = _own(self, frame)\n"
    own += "    arrays['numbers'] = arrays['numbers'] - arrays['numbers'].mean(0)\n"
    own += "    return arrays\nTabularPreprocessor.transform = _scaled\n"
    edit(package.folder, "preprocessor.py", add=own)
    figures = smoke_test(package.folder, package.rows, None)
    assert figures.outcome == "fail"
    assert "a row scored by itself gets another prediction" in figures.message


def test_other_libraries_that_the_preprocessor_needs_are_named(package: Written) -> None:
    edit(package.folder, "preprocessor.py", add="\ndef later():\n    import scipy.special\n")
    figures = smoke_test(package.folder, None, None)
    assert figures.outcome == "pass"
    assert "and scipy, without the project's code" in figures.how


def test_neither_its_files_nor_its_environment_outlive_it(
    whole: Written, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    assert smoke_test(whole.folder, whole.rows, whole.expected).outcome == "pass"
    assert list(tmp_path.iterdir()) == []
    assert dict(os.environ) == before
