"""The HTML report of an evaluation run in a real browser: it shows everything on every screen, and requests nothing."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.e2e.api.conftest import World
from web_browser import CONTRASTS, OpenPage, open_browser, open_page

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONG_NAME = "<img src=x onerror=alert(1)> " + "configuration-" * 2 + "x"
CASES = [
    {"question": "Why was the tidal barrage delayed?", "kind": "fact", "gold_documents": ["tide"], "expected_answer": "years"},
    {"question": "Who counts the eels?", "kind": "fact", "tags": ["a tag"], "gold_documents": ["eels"]},
    {"question": "Who won the football world cup in 1966?", "answerable": False, "kind": "unanswerable"},
]
BOXES = """() => [...document.querySelectorAll('svg')].map(svg => {
  const box = svg.getBoundingClientRect();
  const inside = [...svg.querySelectorAll('text, circle')].map(part => part.getBoundingClientRect())
    .every(part => part.left >= box.left - 1 && part.right <= box.right + 1 && part.bottom <= box.bottom + 1);
  const text = Math.min(...[...svg.querySelectorAll('text')].map(part => part.getBoundingClientRect().height));
  return {width: box.width, height: box.height, marks: svg.querySelectorAll('circle').length, inside, text};
})"""
WIDTHS = """() => [document.documentElement.scrollWidth, innerWidth,
  ...[...document.querySelectorAll('th:first-child')].map(cell => cell.getBoundingClientRect().width)]"""


async def _report(world: World) -> httpx.Response:
    client = world.alpha
    dataset = await client.data("POST", "/evaluation/datasets", status=201, json={"name": "page", "cases": CASES})
    names = ("dense", "hybrid", LONG_NAME)
    configurations = [{"name": name, "strategy": "dense" if name == "dense" else "hybrid"} for name in names]
    body = {"dataset": dataset["id"], "configurations": configurations}
    run = await client.data("POST", "/evaluation/runs", status=202, json=body)
    await client.ended(run["job_id"])
    return await client.get(f"/evaluation/runs/{run['run_id']}/report", headers={"Accept": "text/html"})


async def _check(opened: OpenPage, width: int) -> None:
    plots: list[dict[str, Any]] = await opened.run(BOXES)
    assert len(plots) > 5
    for plot in plots:
        assert plot["marks"] == 3, plot
        assert min(plot["width"], 3 * plot["height"]) >= 250, plot
        assert plot["inside"], "texts and marks are inside their plot"
        assert plot["text"] >= 11, "texts of plots have a readable size"
    page_width, screen, *first_columns = await opened.run(WIDTHS)
    assert (page_width, screen) == (width, width), "wide tables scroll, not the page"
    assert min(first_columns) >= 90, "names of metrics are not squeezed"
    pale = [(text, round(contrast, 1)) for text, contrast in await opened.run(CONTRASTS) if contrast < 4.5]
    assert not pale, "contrast of WCAG AA"
    assert not opened.problems


async def test_the_report_is_readable_on_every_screen(world: World) -> None:
    response = await _report(world)
    async with open_browser() as browser:
        for width, dark in ((1100, False), (1100, True), (400, False)):
            async with open_page(browser, response, width=width, dark=dark) as opened:
                await _check(opened, width)
                assert LONG_NAME in await opened.page.inner_text("body"), "names are text"
                background = await opened.run("() => getComputedStyle(document.documentElement).backgroundColor")
                assert (int(background[4:].split(",")[0]) < 60) is dark
