"""Permalinks: the page is public, and what it shows needs a key."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from tests.e2e.api.conftest import World

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
