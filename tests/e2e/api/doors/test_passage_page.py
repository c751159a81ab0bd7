"""Permalinks: the page is public, and what it shows needs a key."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Route
from tests.e2e.api.conftest import World
from web_browser import open_browser

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_the_page_and_its_files_load_nothing_from_elsewhere(world: World) -> None:
    page = await world.nobody.get("//console/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "http" not in page.text.replace('charset="utf-8"', "")
    for name, kind in (("page.js", "text/javascript"), ("page.css", "text/css")):
        file = await world.nobody.get(f"//console/{name}")
        assert file.headers["content-type"].startswith(kind)
        assert f'"{name}"' in page.text
        assert "innerHTML" not in file.text
    for name in ("page.html", "__init__.py", "..%2Fapp.py"):
        assert (await world.nobody.get(f"//console/{name}")).status_code == 404


async def test_an_address_names_what_a_key_can_read(world: World) -> None:
    body = {"messages": [{"role": "user", "content": "Why was the tidal barrage delayed?"}]}
    reply = (await world.alpha_reader.post("//openai/v1/chat/completions", body)).json()
    address = urlsplit(reply["choices"][0]["message"]["annotations"][0]["url_citation"]["url"])
    assert (address.scheme, address.netloc, address.path) == ("http", "test", "/console/")
    path, _, query = address.fragment.partition("?")
    document, chunk = path.removeprefix("/d/"), parse_qs(query)["chunk"][0]
    own = await world.alpha_reader.data("GET", f"/chunks/{chunk}")
    assert own["document_id"] == document
    assert (await world.beta.get(f"/chunks/{chunk}")).status_code == 404
    assert (await world.nobody.get(f"/chunks/{chunk}")).status_code == 401


async def test_a_browser_shows_the_passage_with_a_key_and_no_markup_of_it(world: World) -> None:
    title = "<img src=x onerror=alert(1)> Quay"
    document = await world.alpha.upload("The vermilion quay <b>opened</b> in 1907.", title=title)
    chunk = (await world.alpha.data("GET", f"/documents/{document['id']}/chunks"))[0]
    problems: list[str] = []

    async def serve(route: Route) -> None:
        request, address = route.request, urlsplit(route.request.url)
        headers = {name: value for name, value in request.headers.items() if name == "authorization"}
        response = await world.nobody.http.request(request.method, address.path, headers=headers)
        kept = {name: value for name, value in response.headers.items() if name != "content-length"}
        await route.fulfill(status=response.status_code, headers=kept, body=response.content)

    async with open_browser() as browser:
        page = await browser.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        await page.route("**/*", serve)
        await page.goto(f"http://test/console/#/d/{document['id']}?chunk={chunk['id']}")
        for key, text in (("wrong", "key"), (str(world.alpha_reader.caller.key), "vermilion")):
            await page.fill("#key", key)
            await page.click("button[type=submit]")
            await page.get_by_text(text).first.wait_for()
        assert await page.text_content("#title") == title
        assert await page.text_content("#passage") == chunk["content"]
        assert await page.locator("main img, main b").count() == 0
        assert await page.locator("#login").is_hidden()
    assert problems == []
    await world.alpha.delete(f"/documents/{document['id']}")
