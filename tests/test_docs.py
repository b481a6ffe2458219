"""The documentation says what is there, and no more."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from components.common.figures import Figures
from pipelines.cli import app
from pipelines.describe import generated
from tests.small_project.make_data import month
from tests.small_project.task import SmallTask
from training_core.checks.runner import make
from training_core.checks.subject import Subject

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    page
    for page in ROOT.rglob("*.md")
    if not any(part.startswith(".") or part == "build" for part in page.relative_to(ROOT).parts)
]
README = (ROOT / "README.md").read_text()


def commands() -> set[str]:
    return set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_generated_pages_and_schemas_are_what_the_code_generates() -> None:
    stale = [str(p.relative_to(ROOT)) for p, text in generated().items() if p.read_text() != text]
    assert not stale, f"run: make docs ({stale})"


def test_the_readme_names_every_command_and_only_those() -> None:
    assert set(re.findall(r"`evertrain ([\w-]+)", README)) == commands()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    prose = re.sub(r"`[^`\n]*`", "", page.read_text())  # in code, what looks like a link is none
    links = re.findall(r"\]\(([^)#\s]+)", prose)
    broken = [x for x in links if "://" not in x and not (page.parent / x).exists()]
    assert not broken


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made where files are browsed."""
    prose = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = [
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        for title in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    ]
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_anchor_of_a_link_is_a_heading_of_its_page(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", page.read_text())
    broken = [
        f"{path}#{anchor}"
        for path, anchor in links
        if "://" not in path
        and (page.parent / path if path else page).suffix == ".md"
        and anchor not in anchors(page.parent / path if path else page)
    ]
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_place_is_kept_for_figures_that_never_came(page: Path) -> None:
    assert not re.findall(r"^[A-Z]{3,}$", page.read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_that_is_named_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for kind, verb in (("BENCHMARKS", "bench"), ("PROOFS", "prove")):
        names = re.search(rf"^{kind} := (.*)$", makefile, re.MULTILINE)
        assert names is not None
        targets |= {f"{verb}-{name}" for name in names.group(1).split()}

    named = set(re.findall(r"`make ([a-z-]+)", page.read_text()))
    named |= set(re.findall(r"^make ([a-z-]+)", page.read_text(), re.MULTILINE))
    assert not named - targets


def test_every_benchmark_and_proof_is_listed_with_its_figures() -> None:
    listed = (ROOT / "docs" / "figures.md").read_text()
    scripts = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "tests" / "proofs").glob("*.py")]
    for script in scripts:
        if '__name__ == "__main__"' in script.read_text():
            kind = "bench" if script.parent.name == "benchmarks" else "prove"
            assert f"make {kind}-{script.stem.replace('_', '-')}" in listed


@pytest.mark.smoke
def test_the_trainer_runs_without_the_pipeline_as_its_page_says(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "training_core.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "train.py").write_text(code)
    plain = ["-W", "error", "train.py"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    said = {}
    for name, words in (
        ("first", plain),
        ("again", plain),
        ("two processes", [*torchrun, "--nproc-per-node=2", "train.py"]),
    ):
        folder = tmp_path / "checkpoints"
        if name == "two processes":
            folder.rename(tmp_path / "checkpoints of one")
        ended = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )
        assert ended.returncode == 0, ended.stderr
        said[name] = ended.stdout.splitlines()[-1]
        assert list(folder.glob("first/*/manifest.json"))
    assert said == {
        "first": "epochs after 800 steps, from step 0",
        "again": "epochs after 800 steps, from step 800",
        "two processes": "epochs after 800 steps, from step 0",
    }


def test_the_check_of_the_documents_can_be_made() -> None:
    page = (ROOT / "docs" / "checks.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (code,) = (block for block in blocks if "(Check)" in block)
    said: dict[str, Any] = {}
    exec(code, said)
    finding = make(said["OutputsAreSmall"](), Subject(SmallTask(), month(1)))
    assert (finding.verdict, finding.limit) == ("pass", 100), finding.message


def test_every_component_names_figures_that_exist() -> None:
    known = {kind.__name__ for kind in Figures.__subclasses__()}
    for file in (ROOT / "components").glob("*/metadata.yaml"):
        named = re.search(r"^figures: (\w+)$", file.read_text(), re.MULTILINE)
        assert named is not None
        assert named.group(1) in {*known, "none"}


def test_no_source_file_is_longer_than_300_lines() -> None:
    folders = ("components", "pipelines", "training_core", "infra", "examples", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    too_long = {
        str(file.relative_to(ROOT)): count
        for file in files
        if (count := len(file.read_text().splitlines())) > 300
    }
    assert not too_long
