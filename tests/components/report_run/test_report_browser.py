"""The page in a real Chromium: wide, on a phone, dark, printed, by keyboard."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from report_browser import Browser
from report_outline import checks_page_of, data_page_of, page_of
from report_samples import CASES, REPLAY, finished

from components.report_run.page import render

pytestmark = [pytest.mark.browser, pytest.mark.smoke]
REPOSITORY = Path(__file__).parents[3]
TAB = "\ue004"
DATA = ("finding", "bare", "wide", "hostile")  # of report_data_cases.py
PRINTED = 680  # CSS pixels of text height on A4 at the page's margins are 991; well inside
CONTRAST = """
const light = c => { const v = c.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255)
    .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
  return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
const on = light(getComputedStyle(document.body).backgroundColor);
const ratio = c => (Math.max(light(c), on) + .05) / (Math.min(light(c), on) + .05);
const seen = [...document.querySelectorAll('p, h1, h2, td, th, dd, small,' +
  'summary, span.mark, svg text')]
  .filter(e => e.getClientRects().length);
return Math.min(...seen.map(e =>
  ratio(getComputedStyle(e)[e instanceof SVGElement ? 'fill' : 'color'])));
"""


@pytest.fixture(params=[*sorted(CASES), *(f"data of {name}" for name in DATA), "checks"])
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "checks":
        return written(tmp_path, checks_page_of())
    _, _, name = request.param.rpartition("data of ")
    return written(tmp_path, data_page_of(name) if name in DATA else page_of(name))


@pytest.fixture
def refused(tmp_path: Path) -> Path:
    return written(tmp_path, data_page_of("finding"))


@pytest.fixture
def promoted(tmp_path: Path) -> Path:
    run, records = finished()
    return written(tmp_path, render(run=run, records=records, replay=REPLAY))


def written(folder: Path, content: str) -> Path:
    path = folder / "report.html"
    path.write_text(content)
    return path


@pytest.mark.parametrize("width", [320, 360, 700, 760, 1280])
def test_the_page_is_never_wider_than_its_window(browser: Browser, page: Path, width: int) -> None:
    browser.emulate(width=width, height=800)
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    wide = browser.run("return document.documentElement.scrollWidth")
    assert wide <= width
    shown = "return [...document.querySelectorAll('svg.chart')].filter(e => e.clientWidth).length"
    assert browser.run(shown) == browser.run(
        "return new Set([...document.querySelectorAll('svg.chart')]"
        ".map(e => e.getAttribute('aria-labelledby').replace(/-\\d+-[td]/g, ''))).size"
    )


def test_long_words_do_not_widen_a_phone(browser: Browser, tmp_path: Path) -> None:
    run, records = finished()
    run = run.model_copy(update={"project": "p" * 300, "champion_after": "v" * 300,
                                 "reasons": ["r" * 3000], "key": "k" * 500})  # fmt: skip
    for gate in records["evaluate_model"].figures["gates"]:
        gate.update(name="n" * 300, observed="o" * 300, threshold="t" * 300, message="m" * 900)
    browser.emulate(width=360, height=800)
    browser.open(written(tmp_path, render(run=run, records=records, replay="x" * 3000)))
    assert browser.run("return document.documentElement.scrollWidth") <= 360


def test_a_page_asks_for_nothing_and_complains_of_nothing(browser: Browser, page: Path) -> None:
    browser.emulate(width=1280, height=800)
    browser.log("browser"), browser.requests()
    browser.open(page)
    assert browser.log("browser") == []
    asked = [url for url in browser.requests() if not url.startswith("data:")]
    assert asked == [page.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_can_be_read_against_its_ground(
    browser: Browser, page: Path, scheme: str
) -> None:
    browser.emulate(width=1280, height=800, scheme=scheme)
    browser.open(page)
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
    assert browser.run(CONTRAST) >= 4.5  # WCAG 2.2, 1.4.3


def test_words_of_a_picture_do_not_overlap(browser: Browser, page: Path) -> None:
    for width in (360, 1280):
        browser.emulate(width=width, height=800)
        browser.open(page)
        overlaps = browser.run("""
          const found = [];
          for (const svg of document.querySelectorAll('svg.chart')) {
            const boxes = [...svg.querySelectorAll('text')]
                .map(t => [t.getBoundingClientRect(), t]);
            boxes.forEach(([a, s], i) => boxes.slice(i + 1).forEach(([b, t]) => {
              if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
                  && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
                found.push(s.textContent + ' / ' + t.textContent); }));
          }
          return found""")
        assert overlaps == []


def test_print_is_light_opens_everything_and_keeps_the_verdict_and_its_picture_together(
    browser: Browser, promoted: Path
) -> None:
    browser.emulate(width=PRINTED, height=991, media="print", scheme="dark")
    browser.open(promoted)
    assert browser.run("return getComputedStyle(document.body).color") == "rgb(27, 31, 35)"
    closed = browser.run(
        "return [...document.querySelectorAll('details')]"
        ".filter(d => !d.lastElementChild.checkVisibility({contentVisibilityAuto: true})"
        " || d.lastElementChild.getBoundingClientRect().height < 5).length"
    )
    assert closed == 0
    bottom = browser.run(
        "return document.querySelector('.decides figure:last-of-type')"
        ".getBoundingClientRect().bottom"
    )
    assert bottom < 991  # 297 mm less the margins


def test_the_verdict_of_the_data_and_its_parts_are_on_the_first_screen(
    browser: Browser, refused: Path
) -> None:
    browser.emulate(width=1280, height=800)
    browser.open(refused)
    bottom = "return document.querySelector('{}').getBoundingClientRect().bottom"
    assert browser.run(bottom.format(".contents")) < 800
    assert browser.run(bottom.format(".lead")) < 300
    browser.emulate(width=360, height=800)
    assert browser.run(bottom.format(".facts")) < 800


def test_the_data_prints_in_light_with_everything_open_on_few_pages(
    browser: Browser, refused: Path
) -> None:
    browser.emulate(width=PRINTED, height=991, media="print", scheme="dark")
    browser.open(refused)
    assert browser.run("return getComputedStyle(document.body).color") == "rgb(27, 31, 35)"
    hidden = (
        "return [...document.querySelectorAll('details table, details svg.chart.wide')]"
        ".filter(e => e.getBoundingClientRect().height < 5).length"
    )
    assert browser.run(hidden) == 0
    over = (
        "return Math.max(...[...document.querySelectorAll('table, svg')]"
        ".map(e => e.getBoundingClientRect().right))"
    )
    assert browser.run(over) <= PRINTED
    browser.emulate(width=1280, height=800)
    pages = len(re.findall(rb"/Type\s*/Page\b", browser.pdf()))
    assert 3 <= pages <= 9


def test_a_symbol_stands_out_from_its_badge(browser: Browser, refused: Path) -> None:
    browser.emulate(width=1280, height=800)
    browser.open(refused)
    style = "getComputedStyle(document.querySelector('.badge .icon')).getPropertyValue('{}')"
    shape, cut = (browser.run("return " + style.format(p)).strip() for p in ("--tone", "--paper"))
    ground = browser.run(
        "return getComputedStyle(document.querySelector('.badge')).getPropertyValue('--tone')"
    ).strip()
    assert cut == ground
    assert shape != ground


def test_the_printed_pages_are_few_and_begin_with_the_verdict(
    browser: Browser, promoted: Path, tmp_path: Path
) -> None:
    browser.emulate(width=1280, height=800)
    browser.open(promoted)
    pdf = browser.pdf()
    pages = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert 3 <= pages <= 16
    if shutil.which("pdftotext") is None:
        return
    (tmp_path / "report.pdf").write_bytes(pdf)
    first = subprocess.run(
        ["pdftotext", "-layout", "-l", "1", "report.pdf", "-"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    words = " ".join(first.split())
    order = [words.index(part) for part in ("PROMOTED", "The picture that decides", "better →")]
    assert order == sorted(order)


def test_the_first_tab_leads_to_the_verdict(browser: Browser, promoted: Path) -> None:
    browser.emulate(width=1280, height=800)
    browser.open(promoted)
    browser.press(TAB)
    assert browser.run("return document.activeElement.getAttribute('href')") == "#main"
    assert browser.run("return document.activeElement.getBoundingClientRect().left >= 0")


def test_the_picture_of_the_documents_can_be_taken(
    browser: Browser, promoted: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "report.png"
    script = REPOSITORY / "docs" / "pictures" / "shoot.py"
    subprocess.run([sys.executable, script, promoted, picture], check=True, timeout=120)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 300_000


@pytest.mark.parametrize("case", ["rich", "rich_held", "slice_worse", "proposed", "of_a_number"])
def test_verdict_next_step_and_every_gate_with_a_number_are_on_the_first_screen(
    browser: Browser, tmp_path: Path, case: str
) -> None:
    browser.emulate(width=1280, height=900)
    browser.open(written(tmp_path, page_of(case)))
    bottom = "return document.querySelector('{}').getBoundingClientRect().bottom"
    assert browser.run(bottom.format(".next")) < 300
    marks = (
        "return Math.max(...[...document.querySelectorAll('.decides figure:first-of-type "
        "svg.wide :is(.circle, .square, .diamond)')].map(e => e.getBoundingClientRect().bottom))"
    )
    assert 400 < browser.run(marks) < 900
    if case in ("rich_held", "slice_worse"):
        assert browser.run(bottom.format(".decides svg.wide .deciding")) < 550
