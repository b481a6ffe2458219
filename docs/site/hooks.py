"""Make one site of pages that lie beside the code: mkdocs calls this (`mkdocs.yml`, `make docs`).

A link in this repository leads to a file, as it does wherever the files are browsed. On the site
it leads to the page of that file: READMEs beside the code become pages, and a source file that a
page names is shown on a page of its own. Nothing is fetched, and no address of a host is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]

# `](target#anchor)` of links and pictures; what has a scheme, or is an anchor alone, stays.
LINK = re.compile(r"(\]\()(?![a-z]+:|#)([^)#\s]+)")
FENCE = re.compile(r"^( *)(`{3,}).*?^ *\2 *$", re.MULTILINE | re.DOTALL)
# What is shown on a page of its own, and as what it is coloured; nothing else is.
_SHOWN = {".py": "python", ".yaml": "yaml", ".json": "json", ".md": "markdown", ".txt": "text"}
_UNSEARCHED = "---\nsearch:\n  exclude: true\nhide: [navigation, toc]\n---\n"


def pages_outside() -> dict[str, str]:
    """Return where on the site each page lies that is not below docs/, by its path."""
    found = {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
        "infra/kubernetes/README.md": "kubernetes.md",
    }
    for folder in ("components", "examples"):
        for readme in sorted(ROOT.glob(f"{folder}/*/README.md")):
            found[f"{folder}/{readme.parent.name}/README.md"] = f"{folder}/{readme.parent.name}.md"
    return found


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and a page for each source file that one of them names."""
    outside = pages_outside()
    for path, place in outside.items():
        if files.get_file_from_path(place) is None:
            text = (ROOT / path).read_text()
            files.append(File.generated(config, place, content=text))
    named = {
        target
        for file in files.documentation_pages()
        for target in targets(file.content_string, beside=origin(file.src_uri))
        if _place(target, files) is None and _can_be_shown(ROOT / target)
    }
    inside = {
        f"{p}/{f.name}"
        for p in named
        for f in _files(ROOT / p)
        if _place(f"{p}/{f.name}", files) is None
    }
    for path in sorted(named | inside):
        files.append(
            File.generated(
                config,
                f"source/{path}.md",
                content=source_page(path),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links from files to the pages of those files."""
    here = page.file.src_uri
    if here.startswith("source/"):
        return markdown

    def led(found: re.Match[str]) -> str:
        target = _absolute(found.group(2), beside=origin(here))
        place = _place(target, files)
        return found.group(1) + (relpath(place, _folder(here)) if place else found.group(2))

    return outside_fences(markdown, led)


def origin(place: str) -> str:
    """Return the path in the repository of a page of the site."""
    back = {there: path for path, there in pages_outside().items() if path != "README.md"}
    return back.get(place, f"docs/{place}")


def targets(markdown: str, *, beside: str) -> list[str]:
    """Return the paths, from the repository's root, that a page's links lead to."""
    found: list[str] = []

    def noted(link: re.Match[str]) -> str:
        found.append(_absolute(link.group(2), beside=beside))
        return link.group(0)

    outside_fences(markdown, noted)
    return found


def outside_fences(markdown: str, change: Callable[[re.Match[str]], str]) -> str:
    """Replace the links of a page, but not what looks like one in code."""
    parts, end = [], 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(change, markdown[end : fence.start()]), fence.group(0)]
        end = fence.end()
    return "".join([*parts, LINK.sub(change, markdown[end:])])


def source_page(path: str) -> str:
    """Return a page that shows a file, or lists a folder."""
    file = ROOT / path
    if file.is_dir():
        shown = [each for each in _files(file) if f"{path}/{each.name}" not in pages_outside()]
        rows = [f"- [{each.name}]({file.name}/{each.name}.md)" for each in shown]
        return f"{_UNSEARCHED}# {path}/\n\n" + "\n".join(rows) + "\n"
    kind = _SHOWN[file.suffix]
    return f'{_UNSEARCHED}# {path}\n\n`````{kind} linenums="1"\n{file.read_text()}\n`````\n'


def _can_be_shown(file: Path) -> bool:
    return file.is_dir() or (file.is_file() and file.suffix in _SHOWN)


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(each for each in folder.iterdir() if each.is_file() and each.suffix in _SHOWN)


def _absolute(target: str, *, beside: str) -> str:
    return normpath(f"{_folder(beside)}/{target}")


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _place(target: str, files: Files) -> str | None:
    """Where on the site a path of the repository lies; None: nowhere."""
    inside = target.removeprefix("docs/") if target.startswith("docs/") else ""
    for place in (pages_outside().get(target, ""), inside, f"source/{target}.md"):
        if place and files.get_file_from_path(place) is not None:
            return place
    return None
