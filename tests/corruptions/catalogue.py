"""All kinds, and the page that lists them.

python -m tests.corruptions.catalogue     # writes docs/corruptions.md
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from tests.corruptions.benign import BENIGN
from tests.corruptions.codes import codes
from tests.corruptions.files import files
from tests.corruptions.kinds import Corruption, Family
from tests.corruptions.labels import labels
from tests.corruptions.rows import rows
from tests.corruptions.schema import schema
from tests.corruptions.texts import texts
from tests.corruptions.values import values

FAMILIES: dict[str, Family] = {
    "Schema": schema, "Values": values, "Categories and codes": codes, "Rows": rows,
    "Labels": labels, "Files": files, "Text files": texts,
}  # fmt: skip
PAGE = Path(__file__).parents[2] / "docs" / "corruptions.md"
_FRAME = Path(__file__).with_name("page.md")


def of_families(*titles: str) -> list[Corruption]:
    """The corruptions of some families."""
    return list(chain.from_iterable(FAMILIES[title].corruptions for title in titles))


CORRUPTIONS = of_families(*FAMILIES)


def page() -> str:
    """The page, as Markdown."""
    return _FRAME.read_text().format(
        count=len(CORRUPTIONS),
        families="\n\n".join(_table(title, family) for title, family in FAMILIES.items()),
        benign=len(BENIGN),
        harmless="\n".join(f"| {_spelt(case.name)} | {case.why} |" for case in BENIGN),
    )


def _table(title: str, family: Family) -> str:
    lines = [
        f"| {_spelt(c.name)} | {c.outcome} | {c.by} | {_named(c)} | {c.why} |"
        for c in family.corruptions
    ]
    head = "| what | must be | by | saying | why |\n|---|---|---|---|---|"
    return "\n".join([f"## {title}\n", head, *lines])


def _spelt(name: str) -> str:
    return name.replace("_", " ")


def _named(corruption: Corruption) -> str:
    return ", ".join(f"`{word.strip(chr(39))}`" for word in corruption.names)


if __name__ == "__main__":
    PAGE.write_text(page())
