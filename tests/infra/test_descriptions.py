"""The description of a version, on SQLite and on a real server over PostgreSQL."""

from __future__ import annotations

import pytest
from registry_case import Case

from infra.errors import ObjectMissing


def test_a_version_is_described_again_and_again(case: Case) -> None:
    case.register()
    table = "# a card\n\n| it's | ü\N{FULL BLOCK} |"
    for text in (table, table, "new"):
        case.registry.describe(case.model, "1", text)
        assert described(case) == text
    case.registry.describe(case.model, "1", "no\0thing")
    assert described(case) == "nothing"
    with pytest.raises(ObjectMissing, match="7"):
        case.registry.describe(case.model, "7", "a card")


@pytest.mark.parametrize("length", [4990, 5000, 5001, 20_000])
def test_a_long_description_is_cut_after_a_line_and_says_where_the_whole_is(
    case: Case, length: int
) -> None:
    case.register()
    line = "| ü | a line of a table |\n"
    text = (line * (length // len(line) + 1))[: length - 1] + "\n"
    case.registry.describe(case.model, "1", text, whole="s3://store/objects/ab12")
    found = described(case)
    if length <= 5000:
        assert found == text
        return
    assert 4800 < len(found) <= 5000
    kept, _, end = found.partition("\n\n… *")
    assert end == "It is too long for MLflow; the whole: s3://store/objects/ab12.*\n"
    assert set(kept.splitlines()) == {line.strip()}


def test_a_description_is_not_cut_within_code(sqlite_case: Case) -> None:
    sqlite_case.register()
    text = "words\n" * 700 + "```python\n" + "code()\n" * 700 + "```\n"
    sqlite_case.registry.describe(sqlite_case.model, "1", text)
    found = described(sqlite_case)
    assert "`" not in found
    assert found.endswith("words\n\n… *It is too long for MLflow.*\n")


def test_a_description_that_is_there_already_is_not_written_again(sqlite_case: Case) -> None:
    sqlite_case.register()
    sqlite_case.registry.describe(sqlite_case.model, "1", "a card")
    before = sqlite_case.registry._client.get_model_version(sqlite_case.model, "1")
    sqlite_case.registry.describe(sqlite_case.model, "1", "a card")
    after = sqlite_case.registry._client.get_model_version(sqlite_case.model, "1")
    assert after.last_updated_timestamp == before.last_updated_timestamp


def described(case: Case) -> str:
    return str(case.registry._client.get_model_version(case.model, "1").description)
