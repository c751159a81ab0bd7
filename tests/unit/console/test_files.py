"""The files of the console: their headers, their size, and what they must not contain."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from agentic_rag_backend import console
from agentic_rag_backend.api.responses.error_responses import install_error_handlers

MAX_BYTES = 150_000
MAX_LINES = {"core.js": 250}
MAX_LINES_OF_VIEW = 300
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser|srcdoc=|\beval\b|new Function"
    r"|\bstyle=|localStorage\.setItem\((?!THEME)|console\.(log|debug|info)|createPolicy"
)
"""Ways to make markup or scripts of strings, style attributes, and places where a key could stay."""
ADDRESSES = re.compile(r"(?:https?:)?//[a-z][\w.-]+\.[a-z]+")
NAMESPACE = "http://www.w3.org"


@pytest.fixture(scope="module")
def client() -> TestClient:
    app = FastAPI()
    install_error_handlers(app)
    app.include_router(console.router)
    return TestClient(app)


def text_of(name: str) -> str:
    return console.read_files()[name][0].decode()


def scripts() -> list[str]:
    return [name for name in console.read_files() if name.endswith(".js")]


def test_the_page_and_its_files_have_types_policies_and_tags(client: TestClient) -> None:
    page = client.get("/console/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "require-trusted-types-for 'script'" in page.headers["content-security-policy"]
    kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
    for name in console.read_files().keys() - {"index.html"}:
        file = client.get(f"/console/{name}")
        assert file.headers["content-type"].startswith(kinds[name[name.rfind(".") :]]), name
        assert file.headers["cache-control"] == "no-cache"
        assert file.headers["x-content-type-options"] == "nosniff"
        again = client.get(f"/console/{name}", headers={"If-None-Match": file.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["index.html", "__init__.py", "..%2F__init__.py", "page.js"])
def test_other_names_are_not_found(client: TestClient, name: str) -> None:
    assert client.get(f"/console/{name}").status_code == 404


def test_the_console_is_small() -> None:
    files = console.read_files()
    assert sum(len(content) for content, _ in files.values()) <= MAX_BYTES
    for name in scripts():
        assert text_of(name).count("\n") <= MAX_LINES.get(name, MAX_LINES_OF_VIEW), name


def test_no_file_makes_markup_of_strings_or_leads_elsewhere() -> None:
    for name in console.read_files():
        text = text_of(name)
        if name != "core.js":  # its check of attributes names `srcdoc` and `style`
            assert FORBIDDEN.search(text) is None, (name, FORBIDDEN.search(text))
        assert all(found.startswith(NAMESPACE) for found in ADDRESSES.findall(text)), name


def test_every_import_names_a_file_of_the_console() -> None:
    files = console.read_files()
    imports = {found for name in scripts() for found in re.findall(r"(?:from |import\()\"\./([\w.]+)\"", text_of(name))}
    assert imports <= files.keys()
    assert imports | {"shell.js"} == set(scripts())


def test_the_page_has_no_scripts_or_styles_of_its_own() -> None:
    class Page(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            given = dict(attributes)
            assert tag != "style"
            assert tag != "script" or given.get("src") == "shell.js"
            assert not any(name.startswith("on") or name == "style" for name in given)

    Page().feed(text_of("index.html"))
