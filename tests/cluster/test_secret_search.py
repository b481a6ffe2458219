"""The search for secrets finds keys and tokens, and takes words for words."""

from __future__ import annotations

import random
import string

import pytest

from tests.cluster.secret_search import secrets_in, values_in

LETTERS = string.ascii_letters + string.digits


def random_word(seed: int, length: int, alphabet: str) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


@pytest.mark.parametrize("length", [32, 40, 64])
@pytest.mark.parametrize("alphabet", [LETTERS, LETTERS + "+/", LETTERS + "-_"])
def test_random_keys_are_found(length: int, alphabet: str) -> None:
    found = sum(bool(secrets_in(f"key: {random_word(n, length, alphabet)}")) for n in range(500))
    assert found >= 485  # of 32 characters one in a hundred looks like a word


@pytest.mark.parametrize(
    "line",
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        "AWS_ACCESS_KEY_ID=AKIA" + "IOSFODNN7EXAMPLE",
        "uri: postgresql://mlflow:hunter2@postgres:5432/mlflow",
        "a: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "token: ghp_" + "a" * 36,
        "url: https://hooks.slack.com/services/T0/B0/abc",
        "digest: " + "0123456789abcdef" * 4,
    ],
)
def test_known_forms_are_found_and_not_repeated(line: str) -> None:
    (found, *_) = secrets_in(f"fine\n{line}\n")
    assert found.startswith("line 2: ")
    assert line.split()[-1] not in found


@pytest.mark.parametrize(
    "line",
    [
        "image: registry.example.com/evertrain@sha256:" + "0123456789abcdef" * 4,
        "- -master.volumeSizeLimitMB=1024",
        "name: evertrain-postgres-backup-m4c485btd2",
        "path: /var/run/secrets/kubeflow/pipelines/token",
        "expr: evertrain_watch_pending_since_timestamp_seconds",
        "uri: postgresql+psycopg2://",
        "KF_PIPELINES_ENDPOINT: http://ml-pipeline.kubeflow.svc.cluster.local:8888",
    ],
)
def test_words_are_no_secrets(line: str) -> None:
    assert secrets_in(line) == []


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "Secret", "stringData": {"a": "b"}},
        {"kind": "Pod", "spec": {"containers": [{"env": [{"name": "PGPASSWORD", "value": "x"}]}]}},
        {"kind": "ConfigMap", "data": {"AWS_SECRET_ACCESS_KEY": "x"}},
        {"kind": "ConfigMap", "data": {"api-token.txt": "x"}},
    ],
)
def test_a_value_is_found_by_its_name(document: dict[str, object]) -> None:
    assert len(list(values_in(document))) == 1


def test_a_reference_is_no_value() -> None:
    reference = {"name": "PGPASSWORD", "valueFrom": {"secretKeyRef": {"name": "a", "key": "token"}}}
    assert list(values_in({"kind": "Pod", "env": [reference]})) == []
