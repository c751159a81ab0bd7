"""The console in Chromium, on a server with real data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from axe_playwright_python.base import AXE_SCRIPT
from console_pages import ConsolePage, new_tab, open_console
from http_server import OPERATOR_KEY, issue_key, running_server
from pdf_files import Page as PdfPage
from pdf_files import pdf_of
from playwright.async_api import Browser, Route
from web_browser import open_browser

pytestmark = [pytest.mark.asyncio(loop_scope="module")]
HARBOUR = """# Tidal barrage

The Harbour Authority began the tidal barrage in May 2019. Mara Venn leads the Harbour Authority.
The Eel Society objected to the barrage in June 2019, because it closes the eel passage.

## Delay

Mara Venn told the council that the barrage was delayed by two years. The delay was caused by a cracked caisson,
which Jorin Sorrel had delivered. Jorin Sorrel works for the Harbour Authority since 2017.
"""
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>"
QUESTION = "What caused the delay of the tidal barrage?"


@dataclass(frozen=True)
class Site:
    """A server with two tenants: ``key`` has documents and communities, ``empty`` has none."""

    client: httpx.Client
    key: str
    empty: str
    document: str
    pdf: str

    @property
    def origin(self) -> str:
        return str(self.client.base_url).rstrip("/")

    def request(self, key: str, method: str, path: str, **options: Any) -> Any:
        """Send a request, and return the data of its response."""
        response = self.client.request(method, f"/api/v1{path}", headers={"Authorization": f"Bearer {key}"}, **options)
        assert response.is_success, response.text
        return response.json()["data"] if response.content else None

    def follow(self, key: str, job: str) -> None:
        """Wait until a job has ended: its events end with it."""
        assert "event: done" in self.client.get(f"/api/v1/jobs/{job}/events", headers={"Authorization": f"Bearer {key}"}).text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_server(tmp_path_factory.mktemp("console"), DUAL_LEVEL_RETRIEVAL_ENABLED=True) as client:
        key, empty = issue_key(client, "harbour"), issue_key(client, "meadow")
        site = Site(client, key, empty, "", "")
        text = site.request(key, "POST", "/documents", json={"text": HARBOUR, "title": "Barrage", "key": "barrage.md"})
        pages = [
            PdfPage().column(60, 700, [f"The pilot of quay {number} is Wilm Tarn.", "He knows the sands."]) for number in (1, 2)
        ]
        file = ("quays.pdf", pdf_of(*pages, info="/Title (Quays)"), "application/pdf")
        pdf = site.request(key, "POST", "/documents", files={"file": file})["documents"][0]
        for upload in (text, pdf):
            site.follow(key, upload["job_id"])
        site.follow(key, site.request(key, "POST", "/admin/communities/rebuild", json={"mode": "full"})["job_id"])
        yield Site(client, key, empty, text["document_id"], pdf["document_id"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with open_browser() as opened:
        yield opened


async def drop_file(console: ConsolePage, name: str, text: str) -> None:
    """Drop a file on the upload area, as from a folder of the desktop."""
    script = """([name, text]) => {
      const data = new DataTransfer();
      data.items.add(new File([text], name, {type: "text/markdown"}));
      return data;
    }"""
    transfer = await console.page.evaluate_handle(script, [name, text])
    await console.page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})


async def test_a_file_is_dropped_asked_about_and_cited(site: Site, browser: Browser) -> None:
    async with open_console(browser, site.origin) as console:
        await console.sign_in(site.empty, "#/documents")
        await console.see("There are no documents yet")
        await drop_file(console, "pier.md", "# The pier\n\nThe vermilion pier at Wexcombe was opened by Ada Quill in 1907.")
        await console.page.locator(".uploads").get_by_text("succeeded").wait_for()
        await console.page.get_by_role("table", name="Documents").get_by_role("link", name="The pier").wait_for()

        await console.show("#/ask")
        await console.page.fill("#question", "Who opened the vermilion pier at Wexcombe?")
        await console.page.keyboard.press("Enter")
        await console.page.get_by_role("link", name="Open the passage").first.click()

        passage = console.page.locator("#passage")
        await passage.wait_for()
        assert "opened by Ada Quill in 1907" in await passage.locator("mark").inner_text()
        assert console.page.url.startswith(f"{site.origin}/console/#/d/")
        assert "quote=" in console.page.url
    assert console.problems == []


async def test_texts_of_documents_are_never_markup(site: Site, browser: Browser) -> None:
    """Titles, keys, texts, metadata, questions and names of entities all carry an attack."""
    uploaded = site.request(
        site.key,
        "POST",
        "/documents",
        json={
            "text": f"# Quay {ATTACK}\n\nThe {ATTACK} quay of Mara Venn {ATTACK} was built by Jorin Sorrel in 1911.",
            "title": f"{ATTACK} quay",
            "key": f"{ATTACK}.md",
            "metadata": {"author": ATTACK, "tags": [ATTACK]},
        },
    )
    site.follow(site.key, uploaded["job_id"])
    entity = site.request(site.key, "GET", "/graph/entities?name=Mara")[0]["id"]
    async with open_console(browser, site.origin) as console:
        await console.sign_in(site.key)
        for path in ("#/documents", f"#/d/{uploaded['document_id']}", f"#/d/{ATTACK}", "#/jobs", "#/themes", "#/graph"):
            await console.show(path)
            assert await console.page.locator("main img, main script, main iframe").count() == 0, path
        await console.show(f"#/graph?entity={entity}&as=table")
        await console.page.evaluate(
            "text => { location.hash = `#/ask?q=${encodeURIComponent(text)}`; }", f"Who built the {ATTACK} quay?"
        )
        await console.page.get_by_text("checked sentence").wait_for()
        assert await console.page.locator("main img, main script").count() == 0
        await console.show("#/documents")
        await drop_file(console, f"{ATTACK}.md", ATTACK)
        await console.page.locator(".uploads li").first.wait_for()
        await console.settle()
        assert await console.page.get_by_text(ATTACK).count() > 0
    assert console.problems == []
    site.request(site.key, "DELETE", f"/documents/{uploaded['document_id']}")


async def test_a_key_stays_in_its_tab(site: Site, browser: Browser) -> None:
    context = await browser.new_context()
    try:
        first, second = await new_tab(context, site.origin), await new_tab(context, site.origin)
        await first.page.goto(f"{site.origin}/console/")
        await first.page.check("input[name=remember]")
        await first.enter(site.key)
        await first.see("harbour")
        await second.sign_in(site.empty)
        await second.see("meadow")
        await first.show("#/documents")
        await first.see("Barrage")
        await second.show("#/documents")
        assert await second.page.get_by_text("Barrage").count() == 0
        await second.show(f"#/d/{site.document}")
        await second.see("not_found")  # an id of another tenant does not exist
        stores = (
            "() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, location.href])"
        )
        assert site.key in await first.page.evaluate(stores)  # in sessionStorage, as wished
        assert site.empty not in await second.page.evaluate(stores)
        assert site.key not in await first.page.evaluate("() => JSON.stringify(Object.entries(localStorage)) + location.href")
        await first.page.reload()
        await first.see("Barrage")
        await second.page.reload()
        await second.page.locator("#key").wait_for()
        for console in (first, second):
            assert not any(site.key in url or site.empty in url for url in console.requests)
            assert console.problems == []
    finally:
        await context.close()


async def test_a_revoked_key_ends_the_session(site: Site, browser: Browser) -> None:
    operator = {"Authorization": f"Bearer {OPERATOR_KEY}"}
    tenant = site.request(site.key, "GET", "/tenants/me")["id"]
    issued = site.client.post(f"/api/v1/tenants/{tenant}/keys", json={"name": "short"}, headers=operator).json()["data"]
    async with open_console(browser, site.origin) as console:
        await console.page.goto(f"{site.origin}/console/#/documents")
        await console.enter("wrong")
        await console.see("unauthenticated")
        await console.page.check("input[name=remember]")
        await console.enter(issued["key"])
        await console.see("Barrage")
        site.client.delete(f"/api/v1/tenants/{tenant}/keys/{issued['id']}", headers=operator)
        await console.page.get_by_role("button", name="Refresh").click()
        await console.see("key_revoked")
        assert await console.page.locator(".frame").count() == 0
        assert await console.page.evaluate("() => sessionStorage.length") == 0
    assert console.problems == []


async def test_errors_stay_with_their_code_and_a_slow_server_shows_that_it_loads(site: Site, browser: Browser) -> None:
    problem = {"title": "Store unavailable", "code": "store_unavailable", "detail": "the graph store is away", "status": 503}
    answers = ["fail", "slow"]

    async def serve(route: Route) -> None:
        answer = answers.pop(0) if answers else "pass"
        if answer == "fail":
            await route.fulfill(status=503, json={**problem, "requestId": "req_1"}, content_type="application/problem+json")
            return
        if answer == "slow":
            await asyncio.sleep(0.5)
        await route.continue_()

    async with open_console(browser, site.origin) as console:
        await console.sign_in(site.key)
        await console.page.route("**/api/v1/jobs?*", serve)
        await console.page.evaluate("() => { location.hash = '#/jobs'; }")
        await console.see("store_unavailable")
        await console.see("the graph store is away")
        await console.page.get_by_role("button", name="Refresh").click()
        await console.page.get_by_role("table", name="Jobs").wait_for()
        assert await console.page.get_by_role("alert").count() == 0
        await console.page.route("**/api/v1/documents?*", lambda route: route.abort())
        await console.show("#/documents")
        await console.see("The server does not respond")
    assert [text for text in console.problems if "net::ERR_FAILED" not in text] == []


async def test_the_operator_creates_a_tenant_and_looks_inside(site: Site, browser: Browser) -> None:
    async with open_console(browser, site.origin) as console:
        await console.sign_in(OPERATOR_KEY)
        await console.page.get_by_role("button", name="Create a tenant").click()
        await console.page.get_by_label("Name").fill("orchard")
        await console.page.get_by_role("button", name="Create, with a first key").click()
        await console.see("It is shown only now")
        await console.page.get_by_role("button", name="Close").click()
        row = console.page.get_by_role("row").filter(has_text="harbour")
        await row.get_by_role("button", name="Look inside").click()
        await console.page.get_by_role("link", name="Documents").click()
        await console.see("Barrage")
    assert console.problems == []


async def test_refusals_are_explained(site: Site, browser: Browser) -> None:
    async with open_console(browser, site.origin) as console:
        await console.sign_in(site.key, "#/ask?q=Who%20won%20the%20football%20world%20cup%20in%201966%3F")
        await console.see("The documents do not answer this question.")
        await console.see("Most similar passages, which do not answer it")
        await console.page.get_by_role("button", name="Why is a document missing?").click()
        await console.page.get_by_role("dialog").get_by_role("button", name="Quays").click()
        await console.see("omitted")
        await console.page.keyboard.press("Escape")
    assert console.problems == []


async def test_boxes_on_the_page_choose_passages(site: Site, browser: Browser) -> None:
    async with open_console(browser, site.origin) as console:
        await console.sign_in(site.key, f"#/d/{site.pdf}")
        await console.page.locator("svg.page rect.box").first.click()
        await console.page.locator(".chunk.chosen").wait_for()
        assert "chunk=" in console.page.url
        assert await console.page.locator("rect.box.chosen").count() > 0
        assert await console.page.locator("svg.page image").get_attribute("href") is not None
    assert console.problems == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_every_view_is_accessible_and_does_not_jump(site: Site, browser: Browser, dark: bool) -> None:
    entity = site.request(site.key, "GET", "/graph/entities?limit=1")[0]["id"]
    chunk = site.request(site.key, "GET", f"/documents/{site.document}/chunks")[0]["id"]
    paths = (
        "#/",
        "#/documents",
        f"#/d/{site.document}?chunk={chunk}",
        "#/jobs",
        "#/themes",
        "#/graph",
        f"#/graph?entity={entity}",
    )
    asked = f"#/ask?q={QUESTION.replace(' ', '%20').replace('?', '%3F')}"
    async with open_console(browser, site.origin, dark=dark) as console:
        await console.page.route("**/api/v1/**", delay)
        await console.page.goto(f"{site.origin}/console/")
        await console.page.evaluate(AXE_SCRIPT)
        assert await violations(console, colours=dark) == []
        await console.enter(site.key)
        for path in (*paths, asked, "#/evaluation", "#/requests"):
            await console.show(path)
            assert await violations(console, colours=dark) == [], path
            assert await console.shifts() == [], path
    assert console.problems == []


async def delay(route: Route) -> None:
    """Answer requests of one view at different times, so that its parts appear one after the other."""
    await asyncio.sleep(len(route.request.url) % 4 * 0.06)
    await route.continue_()


async def violations(console: ConsolePage, *, colours: bool = False) -> list[str]:
    """Return the rules of axe that the page breaks, each with its first element. ``colours``: only rules that themes decide."""
    rules = {"resultTypes": ["violations"], **({"runOnly": ["color-contrast", "link-in-text-block"]} if colours else {})}
    result = await console.page.evaluate("rules => axe.run(rules)", rules)
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:160]} {item['nodes'][0]['failureSummary'][:300]}"
        for item in result["violations"]
    ]


async def test_an_operator_issues_a_key_for_some_documents_and_suspends_a_tenant(site: Site, browser: Browser) -> None:
    async with open_console(browser, site.origin) as console:
        await console.sign_in(OPERATOR_KEY, "#/tenants")
        row = console.page.get_by_role("table", name="Tenants").get_by_role("row").filter(has_text="meadow")
        await row.get_by_role("button", name="Keys").click()
        dialog = console.page.get_by_role("dialog")
        await dialog.get_by_label("Name").fill("shop window")
        await dialog.get_by_label("Reads only").fill('{"team": ')
        await dialog.get_by_role("button", name="Issue a key").click()
        await console.see("SyntaxError")
        await dialog.get_by_label("Reads only").fill('{"team": ["sales"]}')
        await dialog.get_by_label("Ends after").fill("2099-12-31")
        await dialog.get_by_role("button", name="Issue a key").click()
        issued = dialog.get_by_role("row").filter(has_text="shop window")
        assert '{"team":["sales"]}' in await issued.inner_text()
        secret = await dialog.locator("pre, code").filter(has_text="ark_").first.inner_text()
        await issued.get_by_role("button", name="Rotate").click()
        await dialog.get_by_role("row").filter(has_text="shop window").nth(1).wait_for()
        await dialog.get_by_role("button", name="Close").click()

        await row.get_by_role("button", name="Suspend").click()
        await row.get_by_text("suspended").wait_for()
        refused = site.client.get("/api/v1/documents", headers={"Authorization": f"Bearer {secret.split()[0]}"})
        assert refused.json()["code"] == "tenant_suspended"
        await row.get_by_role("button", name="Resume").click()
        await row.get_by_text("active").wait_for()
    assert console.problems == []
