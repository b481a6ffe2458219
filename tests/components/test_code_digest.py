"""The code in a run's key is the code that runs, on this machine as in an image."""

from __future__ import annotations

from pathlib import Path

from components.common.provenance import sources

ROOT = Path(__file__).resolve().parents[2]


def test_what_no_image_has_is_no_code_of_a_run() -> None:
    """Else a run in containers would not be known to one in processes, and would be made again."""
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    left_out = tuple(f"{line}/" for line in lines if line.startswith(("infra/", "components/")))
    assert any((ROOT / folder).rglob("*.py") for folder in left_out)
    names = {name for name, _ in sources()}
    assert not [name for name in names if name.startswith(left_out)]
    packages = ("components", "pipelines", "training_core", "infra")
    there = {
        p.relative_to(ROOT).as_posix() for each in packages for p in (ROOT / each).rglob("*.py")
    }
    assert names == {name for name in there if not name.startswith(left_out)}
