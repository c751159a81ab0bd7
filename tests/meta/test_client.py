"""The client offers every operation of the OpenAPI description, with every field, on both clients."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any, assert_type

import httpx2
import pytest

from agentic_rag_client import AsyncClient, Client, UnexpectedReply, models
from agentic_rag_client.downloads import Download
from agentic_rag_client.pages import AsyncPages, Pages
from generator.__main__ import PACKAGE, generate
from generator.description import check_coverage, read_description
from generator.names import FIXED, LIMITS, OPERATIONS, STREAMED, WRITTEN
from generator.writer import Schema, python_name, resolve

if TYPE_CHECKING:
    from collections.abc import Coroutine

    async def check_types(client: Client, other: AsyncClient) -> None:
        """Mypy reads this: one description of the operations gives both clients their types."""
        assert_type(client.documents.get("1"), models.DocumentDetail)
        await assert_type(other.documents.get("1"), Coroutine[Any, Any, models.DocumentDetail])
        assert_type(await other.documents.upload(b"", name="a.md"), models.Submission)
        assert_type(client.documents.list(), Pages[models.Document])
        assert_type(other.documents.list(), AsyncPages[models.Document])


@pytest.fixture(scope="module")
def description() -> Schema:
    return read_description()


def test_the_modules_are_those_of_the_description(description: Schema) -> None:
    for name, code in generate(description).items():
        same = (PACKAGE / name).read_text(encoding="utf-8") == code
        assert same, f"{name} is out of date: run `make client`"


def test_a_new_route_needs_a_method(description: Schema) -> None:
    changed = deepcopy(dict(description))
    changed["paths"]["/api/v1/novelties"] = {"get": {"responses": {"200": {"content": {"application/json": {}}}}}}
    with pytest.raises(SystemExit, match="GET /api/v1/novelties"):
        check_coverage(changed)
    del changed["paths"]["/api/v1/novelties"], changed["paths"]["/api/v1/status"]
    with pytest.raises(SystemExit, match="GET /api/v1/status"):
        check_coverage(changed)


def test_every_method_has_the_parameters_of_its_route(description: Schema) -> None:
    routes = {name: (route, "application/json") for name, route in (OPERATIONS | STREAMED).items()} | WRITTEN
    with Client("http://nowhere") as client:
        for name, (route, media_type) in routes.items():
            verb, path = route.split(" ")
            operation = description["paths"][path][verb.lower()]
            expected = {parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] != "header"}
            content = operation.get("requestBody", {}).get("content", {}).get(media_type)
            if name in LIMITS:
                expected.add("limits")
            elif content is not None:
                schema = resolve(content["schema"], description["components"]["schemas"])
                expected |= set(schema.get("properties", ()))
            expected -= FIXED.get(name, {}).keys()
            expected = {python_name(member).removesuffix(".NAME") for member in expected}
            method = find_method(client, name)
            assert expected - {"file"} <= set(inspect.signature(method).parameters), name
            assert method.__doc__, name


def test_every_method_calls_its_route() -> None:
    requests: list[httpx2.Request] = []

    def record(request: httpx2.Request) -> httpx2.Response:
        request.read()
        requests.append(request)
        return httpx2.Response(500, text="recorded")

    routes = OPERATIONS | STREAMED | {name: route for name, (route, _) in WRITTEN.items()}
    with httpx2.Client(transport=httpx2.MockTransport(record)) as http:
        client = Client("http://rag.test", http=http)
        for name, route in routes.items():
            method = find_method(client, name)
            arguments = {
                parameter.name: choose_value(parameter)
                for parameter in inspect.signature(method).parameters.values()
                if parameter.default is inspect.Parameter.empty
            }
            arguments |= {"name": "a.md"} if "file" in arguments else {}
            with pytest.raises(UnexpectedReply):
                use(method(**arguments))
            verb, path = route.split(" ")
            assert requests[-1].method == verb, name
            assert re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), requests[-1].url.path), name


def choose_value(parameter: inspect.Parameter) -> Any:
    """Return a value for a required parameter."""
    if parameter.name == "path":
        return __file__
    values: Mapping[str, Any] = {"int": 1, "File": b"content", "Sequence": ["value"], "Mapping": {"name": True}}
    return next((value for kind, value in values.items() if parameter.annotation.startswith(kind)), "value")


def use(result: Any) -> None:
    """Read what a method returns, so that it is requested."""
    if isinstance(result, Download):
        result.read()
    else:
        list(result)


def find_method(client: Client | AsyncClient, name: str) -> Any:
    """Return the method of a dotted name."""
    found: Any = client
    for part in name.split("."):
        found = getattr(found, part)
    return found


async def test_both_clients_have_the_same_methods() -> None:
    def list_methods(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert list_methods(Client) == list_methods(AsyncClient)
    async with AsyncClient("http://nowhere") as client:
        for name in ("search", "documents.upload", "jobs.wait"):
            assert inspect.iscoroutinefunction(find_method(client, name))
