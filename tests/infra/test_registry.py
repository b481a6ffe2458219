"""The registry, on SQLite and on a real server over PostgreSQL."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from registry_case import SERVE, Case

import infra.registry
from infra.errors import ObjectMissing, OutsideError

FRESH = """
import sys
for name in ("infra", "training_core", "components", "pipelines"):
    sys.modules[name] = None  # any import of them fails
import mlflow, pandas
model = mlflow.pyfunc.load_model(sys.argv[1])
print(model.predict(pandas.DataFrame({"a": [1.0, 2.0]}))["a"].tolist())
"""


def test_a_champion_is_loaded_by_the_stock_client_where_our_code_is_not(
    case: Case, tmp_path: Path
) -> None:
    assert case.register(factor=3) == "1"
    case.registry.set_aliases(case.model, {"champion": "1"})
    environment = dict(os.environ) | {"MLFLOW_TRACKING_URI": case.registry.uri}
    environment.pop("PYTHONPATH", None)
    process = subprocess.run(
        [sys.executable, "-I", "-c", FRESH, f"models:/{case.model}@champion"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout == "[3.0, 6.0]\n"


def test_versions_are_found_by_their_tags_and_listed_newest_first(case: Case) -> None:
    assert case.registry.find_version(case.model, tag="run_key", value="one") is None
    assert case.registry.versions(case.model) == []
    for key in ("one", "two", "two"):
        case.register(key=key)
    find = case.registry.find_version
    assert find(case.model, tag="run_key", value="one") == "1"
    assert find(case.model, tag="run_key", value="two") == "2"  # the first of the two
    assert find(case.model, tag="run_key", value="three") is None
    assert find(case.model, tag="other", value="one") is None
    versions = case.registry.versions(case.model)
    assert [each["version"] for each in versions] == ["3", "2", "1"]
    assert versions[2]["tags"] == {"run_key": "one", "note": "it's new"}
    assert (versions[2]["run_id"], versions[2]["status"]) == (case.run_id, "READY")
    assert [model.status for model in case.logged_models()] == ["READY"] * 3


def test_a_long_list_of_versions_is_read_page_by_page(
    sqlite_case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        sqlite_case.register()
    monkeypatch.setattr(infra.registry, "_PAGE", 2)
    assert len(sqlite_case.registry.versions(sqlite_case.model)) == 3


def test_a_version_that_is_not_ready_is_not_found(sqlite_case: Case) -> None:
    sqlite_case.register()
    with sqlite3.connect(sqlite_case.registry.uri.removeprefix("sqlite:///")) as database:
        database.execute(
            "UPDATE model_versions SET status = 'PENDING_REGISTRATION' WHERE name = ?",
            (sqlite_case.model,),
        )
    database.close()
    registry, model = sqlite_case.registry, sqlite_case.model
    assert registry.find_version(model, tag="run_key", value="one") is None
    assert len(registry.versions(model)) == 1


def test_two_versions_with_code_of_the_same_name_keep_their_own(sqlite_case: Case) -> None:
    path = list(sys.path)
    sqlite_case.register(factor=3, combine="x * k")
    sqlite_case.register(factor=3, combine="x + k")
    assert "tools_of_the_task" not in sys.modules
    assert sys.path == path
    models = sqlite_case.logged_models()
    texts = [
        Path(model.artifact_location.removeprefix("file://"), "code/tools_of_the_task/__init__.py")
        for model in sorted(models, key=lambda model: model.creation_timestamp)
    ]
    assert ["x * k" in text.read_text() for text in texts] == [True, False]
    first, second = (sqlite_case.registry.load(sqlite_case.model, which) for which in "12")
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    assert list(second.predict(frame)["a"]) == [4.0, 5.0]
    assert list(first.predict(frame)["a"]) == [3.0, 6.0]
    assert "tools_of_the_task" not in sys.modules
    assert sys.path == path


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (SERVE.replace("combine(", "1 / 0 or combine("), "cannot predict.*division by zero"),
        (SERVE.replace("set_model(Scaled())", ""), "set using mlflow.models.set_model"),
        ("import no_such_module", "no_such_module"),
    ],
)
def test_a_model_that_cannot_be_served_is_not_registered(
    sqlite_case: Case, serve: str, reason: str
) -> None:
    sqlite_case.register(key="good")
    with pytest.raises(ValueError, match=reason):
        sqlite_case.register(serve=serve)
    assert len(sqlite_case.registry.versions(sqlite_case.model)) == 1
    assert sorted(model.status for model in sqlite_case.logged_models()) == ["FAILED", "READY"]


def test_a_crash_before_the_version_leaves_none_and_a_repetition_makes_it(
    sqlite_case: Case,
) -> None:
    registry, model = sqlite_case.registry, sqlite_case.model
    client = registry._client
    make = client.create_model_version

    def crash(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    client.create_model_version = crash
    with pytest.raises(KeyboardInterrupt):
        sqlite_case.register()
    assert registry.find_version(model, tag="run_key", value="one") is None
    client.create_model_version = make
    assert sqlite_case.register() == "1"
    assert registry.find_version(model, tag="run_key", value="one") == "1"
    assert sqlite_case.predict("1") == [3.0, 6.0]


def test_aliases_are_set_moved_and_taken_away(case: Case) -> None:
    registry, model = case.registry, case.model
    assert registry.aliases(model) == {}
    case.register(factor=3)
    case.register(factor=5)
    registry.set_aliases(model, {"champion": "1", "previous": None})
    assert registry.aliases(model) == {"champion": "1"}
    registry.set_aliases(model, {"champion": "2", "previous": "1"})
    assert registry.aliases(model) == {"champion": "2", "previous": "1"}
    assert case.predict("champion") == [5.0, 10.0]
    assert case.predict("1") == [3.0, 6.0]
    registry.set_aliases(model, {"previous": None})
    assert registry.aliases(model) == {"champion": "2"}


def test_what_is_not_registered_is_said_to_be_missing(case: Case) -> None:
    case.register()
    for which in ("7", "champion"):
        with pytest.raises(ObjectMissing, match=which):
            case.registry.load(case.model, which)
    with pytest.raises(ObjectMissing, match="version=7"):
        case.registry.set_aliases(case.model, {"champion": "7"})
    with pytest.raises(ValueError, match="refuses"):
        case.registry.set_aliases(case.model, {"latest": "1"})
    assert case.registry.aliases(case.model) == {}


def test_an_alias_that_a_rival_moves_at_the_same_moment_is_not_believed(
    sqlite_case: Case,
) -> None:
    sqlite_case.register()
    sqlite_case.register()
    client = sqlite_case.registry._client
    write = client.set_registered_model_alias

    def rival(model: str, alias: str, version: str) -> None:
        write(model, alias, version)
        write(model, alias, "1")

    client.set_registered_model_alias = rival
    with pytest.raises(OutsideError, match="did not stick"):
        sqlite_case.registry.set_aliases(sqlite_case.model, {"champion": "2"})
