"""Every command line that the documentation shows is run, or taken by the program's own parser."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.new.start import start
from pipelines.new.template import Template
from tests.docs.accepting import refusal
from tests.docs.documented import TUTORIAL, fenced, inline, listed, pages

PAGES = pages()
SHOWN = sorted({line for page, text in PAGES.items() if page != TUTORIAL for line in fenced(text)})
NAMED = sorted({line for text in PAGES.values() for line in inline(text)})
LISTS = listed()
RUN, FOREIGN = "Run", "Of other programs"
PARSED = sorted(line for section, lines in LISTS.items() if section != FOREIGN for line in lines)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "shop"
    start(folder, Template.TABULAR)
    return folder


def test_every_command_line_is_listed_with_how_it_is_tested_and_no_other_is() -> None:
    names = [line for lines in LISTS.values() for line in lines]
    assert len(names) == len(set(names)), "a command is in two lists"
    missing, left = sorted(set(SHOWN) - set(names)), sorted(set(names) - set(SHOWN))
    assert not missing, f"add to docs/tested_commands.md: {missing}"
    assert not left, f"no page shows these any more, take them out: {left}"


def test_who_is_only_parsed_says_why() -> None:
    text = PAGES["docs/tested_commands.md"]
    for section in LISTS:
        reason = text.partition(f"## {section}\n")[2].partition("\n- ")[0].strip()
        assert reason.endswith((".", ":")), section


def test_nothing_of_ours_is_left_to_other_programs() -> None:
    ours = ("evertrain ", "make", "python ", "kubectl ")
    assert [line for line in LISTS[FOREIGN] if line.startswith(ours)] == []


@pytest.mark.parametrize("command", PARSED)
def test_a_command_line_is_taken_as_it_is_shown(command: str, project: Path) -> None:
    assert refusal(command, whole=True, project=project) == ""


@pytest.mark.parametrize("command", NAMED)
def test_what_a_sentence_names_exists(command: str, project: Path) -> None:
    assert refusal(command, whole=False, project=project) == ""


@pytest.mark.parametrize(
    "command",
    [
        "evertrain rnu PROJECT",
        "evertrain run PROJECT --forse",
        "evertrain run PROJECT OTHER",
        "evertrain new shapes --template sound",
        "evertrain rollback",
        "make bech-loop",
        "make test ARG=1",
        "python -m tests.proofs.bug --file my_bugs.py",
        "python -m tests.proofs.bugs --fiel my_bugs.py",
        "python -m components.train_distributed.node s3://bucket --node 1",
        "python examples/flights/prepare.py --data data --months 13",
        "python shop/make_data.py --weeks nine",
        "kubectl -n evertrain get deploy x --lbl",
        "kubectl aply -f infra/kubernetes/base/namespace.yaml",
        "kubectl apply -k infra/kubernetes/overlays/nowhere",
        "kubectl -n evertrain create secret generic --from-literal=A=b",
    ],
)
def test_a_command_line_with_a_mistake_is_refused(command: str, project: Path) -> None:
    assert refusal(command, whole=True, project=project) != ""


def test_lines_are_found_as_a_reader_would_copy_them() -> None:
    page = (
        "`make lint` and\n```sh\nmake venv && . .venv/bin/activate  # once\n"
        "aws sqs list \\\n  --all\n```\n```console\n$ evertrain runs shop\nmake no command\n```\n"
        "```yaml\nmake: no\n```\n```\nevertrain run a # now\nverdict: promoted\n```\n"
    )
    assert fenced(page) == [
        "make venv", "aws sqs list --all", "evertrain runs shop", "evertrain run a",
    ]  # fmt: skip
    assert inline(page) == ["make lint"]
    with pytest.raises(ValueError, match="no command that is known"):
        fenced("```sh\nmkae venv\n```\n")
