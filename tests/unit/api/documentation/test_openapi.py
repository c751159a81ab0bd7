"""The OpenAPI document and its page: valid, complete, with examples that match their schemas, and self-contained."""

from __future__ import annotations

import importlib
import json
import pkgutil
import re
from collections.abc import AsyncIterator, Iterator
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import pytest_asyncio
from fastapi import APIRouter
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from agentic_rag_backend.api import routers
from agentic_rag_backend.api.app import BASE_PATH, create_app
from agentic_rag_backend.api.dependencies import query_parameters
from agentic_rag_backend.container import Container
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.telemetry.metrics import REGISTRY

Operation = dict[str, Any]


def app_with(**settings: Any) -> Any:
    chosen = Settings(_env_file=None, **settings)
    return create_app(cast(Container, SimpleNamespace(settings=chosen)))


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    found: dict[str, Any] = app_with().openapi()
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, Operation]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def errors_of(document: dict[str, Any], schema: dict[str, Any], value: Any) -> list[str]:
    whole = Draft202012Validator({**schema, "components": document["components"]})
    return [error.message for error in whole.iter_errors(value)]


def test_the_document_is_valid(document: dict[str, Any]) -> None:
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    assert document["openapi"].startswith("3.1")


def test_every_success_has_a_schema_and_an_example_that_holds_to_it(document: dict[str, Any]) -> None:
    seen = 0
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if not status.startswith("2"):
                continue
            assert response["description"], name
            assert status == "204" or response.get("content"), f"{name} {status}"
            for media_type, content in response.get("content", {}).items():
                if media_type == "application/json":
                    assert content["schema"], f"{name} {status}"
                    assert content["example"], f"{name} {status}"
                    assert errors_of(document, content["schema"], content["example"]) == [], f"{name} {status}"
                    seen += 1
                elif media_type in {"text/event-stream", "text/plain"}:
                    assert content["example"], name
    assert seen > 35


def test_examples_of_lists_and_of_what_lies_deep_are_not_empty(document: dict[str, Any]) -> None:
    found = document["paths"][f"{BASE_PATH}/search"]["post"]["responses"]["200"]["content"]["application/json"]["example"]["data"]
    assert found["results"][0]["entities"][0]["name"]
    assert found["themes"][0]["summary"]
    assert found["facts"][0]["source"]["name"]


def test_every_body_has_a_schema_and_an_example_that_holds_to_it(document: dict[str, Any]) -> None:
    seen = 0
    for name, operation in operations(document):
        for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
            if media_type != "application/json":
                continue
            schema = content["schema"]
            referred = [schema, *schema.get("anyOf", [])]
            model = next(each["$ref"].rpartition("/")[2] for each in referred if "$ref" in each)
            examples = document["components"]["schemas"][model]["examples"]
            assert examples, name
            for example in examples:
                assert errors_of(document, schema, example) == [], name
            seen += 1
    assert seen > 10


def test_every_problem_is_described_with_an_example(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        if not name.partition(" ")[2].startswith(BASE_PATH):
            continue
        responses = operation["responses"]
        assert {"401", "403", "422", "429", "503", "504", "default"} <= responses.keys(), name
        for status, response in responses.items():
            if status.startswith(("4", "5")):
                content = response["content"]["application/problem+json"]
                assert response["description"], (name, status)
                assert content["example"]["status"] == int(status), (name, status)
                assert errors_of(document, content["schema"], content["example"]) == [], (name, status)
        assert responses["503"]["headers"]["Retry-After"]


@pytest_asyncio.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app_with()), base_url="http://test") as client:
        yield client


class Loaded(HTMLParser):
    """Collects the resources that a page loads, and inline scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.addresses += [str(given[name]) for name in ("src", "href") if name in given]
        self.inline += tag in {"script", "style"} and "src" not in given


async def test_the_page_loads_nothing_from_elsewhere(http: httpx.AsyncClient) -> None:
    led = await http.get("/")
    assert (led.status_code, led.headers["location"]) == (307, f"{BASE_PATH}/docs")
    page = await http.get(led.headers["location"])
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    loaded = Loaded()
    loaded.feed(page.text)
    assert len(loaded.addresses) >= 4
    assert loaded.inline == 0
    assert "//" not in page.text.replace("</", "")
    for address in loaded.addresses:
        part = await http.get(str(page.url.join(address)))
        assert part.status_code == 200, address
        assert len(part.content) > 100
        kind = {"js": "text/javascript", "css": "text/css", "png": "image/png"}[address.rpartition(".")[2]]
        assert part.headers["content-type"].partition(";")[0] == kind
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "http" not in policy
    script = await http.get(f"{BASE_PATH}/docs/start.js")
    described = re.search(r'url: "([^"]+)"', script.text)
    assert described
    assert (await http.get(str(page.url.join(described[1])))).json()["openapi"]
    assert "http" not in script.text


async def test_no_other_file_is_to_be_had(http: httpx.AsyncClient) -> None:
    for name in ("nothing.js", "redoc.standalone.js", "..%2fcore.py", "%2e%2e/core.py", "x" * 5000):
        assert (await http.get(f"{BASE_PATH}/docs/{name}")).status_code in {404, 422}, name


async def test_a_wrong_method_learns_every_right_one(http: httpx.AsyncClient) -> None:
    for path, allowed in {
        f"{BASE_PATH}/documents": "DELETE, GET, HEAD, OPTIONS, POST",
        f"{BASE_PATH}/documents/1": "DELETE, GET, HEAD, OPTIONS, PATCH",
        f"{BASE_PATH}/documents/1/chunks": "GET, HEAD, OPTIONS, POST",
        f"{BASE_PATH}/search": "OPTIONS, POST",
        f"{BASE_PATH}/tenants/import": "DELETE, GET, HEAD, OPTIONS, PATCH, POST",
        "/health/live": "GET, HEAD, OPTIONS",
    }.items():
        refused = await http.request("PUT", path)
        assert (refused.status_code, refused.headers["allow"]) == (405, allowed), path
        assert refused.json()["code"] == "method_not_allowed"
        assert refused.json()["detail"] == f"this address does not support PUT; it supports {allowed}"
        asked = await http.options(path)
        assert (asked.status_code, asked.headers["allow"], asked.content) == (204, allowed, b"")
    assert (await http.options("/nothing")).status_code == 404


async def test_head_is_get_without_its_body(http: httpx.AsyncClient) -> None:
    for path in ("/health/live", f"{BASE_PATH}/docs", f"{BASE_PATH}/nothing"):
        whole, head = await http.get(path), await http.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        assert head.headers["content-type"] == whole.headers["content-type"]
    counted = REGISTRY.get_sample_value(
        "agentic_rag_http_requests_total", {"method": "HEAD", "route": "/health/live", "status": "200", "door": "api"}
    )
    assert counted
    refused = await http.head(f"{BASE_PATH}/search")
    assert (refused.status_code, refused.headers["allow"]) == (405, "OPTIONS, POST")


PREFLIGHT = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}


async def test_pages_of_other_origins_may_call_only_where_a_setting_says_so(http: httpx.AsyncClient) -> None:
    for response in (await http.get("/health/live", headers=PREFLIGHT), await http.options("/health/live", headers=PREFLIGHT)):
        assert not [name for name in response.headers if name.startswith("access-control")]
    app = app_with(cors_origins="https://app.example, https://admin.example")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as allowing:
        asked = {**PREFLIGHT, "Access-Control-Request-Headers": "authorization, content-type, idempotency-key"}
        preflight = await allowing.options(f"{BASE_PATH}/search", headers=asked)
        assert (preflight.status_code, preflight.headers["access-control-allow-origin"]) == (200, "https://app.example")
        assert "authorization" in preflight.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in preflight.headers
        answered = await allowing.get("/health/live", headers=PREFLIGHT)
        assert answered.headers["access-control-allow-origin"] == "https://app.example"
        assert "X-Request-Id" in answered.headers["access-control-expose-headers"]
        foreign = await allowing.options(f"{BASE_PATH}/search", headers={**asked, "Origin": "https://evil.example"})
        assert foreign.status_code == 400
        assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize("origins", ["app.example", "https://app.example/path", "https://*.example", "file://x", "*, x"])
def test_invalid_origins_are_refused(origins: str) -> None:
    with pytest.raises(ValueError, match="CORS_ORIGINS"):
        Settings(_env_file=None, cors_origins=origins)  # type: ignore[call-arg]


def test_the_parameters_that_requests_are_checked_against_are_those_of_the_document(document: dict[str, Any]) -> None:
    compared = 0
    for module in pkgutil.walk_packages(routers.__path__, f"{routers.__name__}."):
        for route in getattr(importlib.import_module(module.name), "router", APIRouter()).routes:
            operations = document["paths"].get(f"{BASE_PATH}{route.path}", {})  # type: ignore[union-attr]
            for method in route.methods & {each.upper() for each in operations}:  # type: ignore[union-attr]
                listed = operations[method.lower()].get("parameters", ())
                assert query_parameters(route) == {item["name"] for item in listed if item["in"] == "query"}, (method, route.path)  # type: ignore[union-attr]
                compared += 1
    below = sum(len(methods) for path, methods in document["paths"].items() if path.startswith(BASE_PATH))
    assert compared >= below - 2, "those of the document itself"


def _ids(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids in an example, by the names of their fields."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _ids(key, part)
    elif isinstance(value, list):
        for part in value:
            yield from _ids(name, part)
    elif isinstance(value, str) and (name == "id" or name.endswith(("_id", "_ids"))):
        yield name, value


def test_ids_in_examples_have_the_form_of_real_ids(document: dict[str, Any]) -> None:
    """Ids of tenants begin with ``t_`` and ids of answers with ``a_``; others are UUIDs, or OpenAI's."""
    prefixed = r"((chatcmpl-req|a|t|vs|vsfb|resp|msg|fs)_|file-)[0-9a-f]{32}|vs_all"
    real = re.compile(rf"({prefixed}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})\Z")
    examples = [
        (name, content["example"])
        for name, operation in operations(document)
        for response in operation["responses"].values()
        for content in response.get("content", {}).values()
        if "example" in content
    ]
    examples += [
        (name, example) for name, model in document["components"]["schemas"].items() for example in model.get("examples", [])
    ]
    events = [line.removeprefix("data: ") for _, text in examples if isinstance(text, str) for line in text.splitlines()]
    examples += [("event", json.loads(line)) for line in events if line.startswith("{")]
    found = {(name, *pair) for name, example in examples for pair in _ids("", example)}
    assert len(found) > 60
    assert {each for each in found if real.match(each[2]) is None} == set()
    assert not re.search(r"'(doc|job|ent|chunk)_[0-9a-f]{8}", str(document))


def test_a_response_with_fields_has_some_parts_and_no_others(document: dict[str, Any]) -> None:
    operation = document["paths"][f"{BASE_PATH}/search"]["post"]["responses"]["200"]["content"]["application/json"]
    whole = operation["example"]
    result = whole["data"]["results"][0]
    for part, errors in (
        ({"results": [{"title": "Tidal barrage"}]}, 0),
        ({"facts": whole["data"]["facts"], "trace": {"strategy": "graph"}}, 0),
        ({"results": [{"title": 5}]}, 1),
        ({"results": [{"colour": "red"}]}, 1),
        ({"colour": "red"}, 1),
        ({}, 1),
        ({**whole["data"], "results": [{**result, "score": "much"}]}, 1),
    ):
        assert len(errors_of(document, operation["schema"], {**whole, "data": part})) == errors, part
