"""A server with three documents of one tenant, and clients of both kinds."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from http_server import OPERATOR_KEY, issue_key, running_server

from agentic_rag_client import AsyncClient, Client

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "examples" / "corpus"
NAMES = ("narrows-accord-2012.md", "courier-2011-hearing-at-scarrow.md", "courier-2014-array-opens.md")


@dataclass(frozen=True)
class Site:
    """Address and keys of a server."""

    url: str
    key: str
    operator_key: str = OPERATOR_KEY


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Run a server with three documents."""
    with running_server(tmp_path_factory.mktemp("client")) as http:
        opened = Site(str(http.base_url), issue_key(http, "client"))
        with Client(opened.url, opened.key) as client:
            for submission in client.documents.upload_files([CORPUS / name for name in NAMES], metadata={"set": "corpus"}):
                client.documents.wait(submission)
        yield opened


class Either:
    """Calls either client in the same way: `settle` and `collect` accept what both return."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def settle(self, value: Any) -> Any:
        """Return a result."""
        return await value if inspect.isawaitable(value) else value

    async def collect(self, values: Any) -> list[Any]:
        """Return the items of an iterable."""
        return [value async for value in values] if hasattr(values, "__aiter__") else list(values)


@pytest.fixture(params=["blocking", "asynchronous"])
async def either(site: Site, request: pytest.FixtureRequest) -> Any:
    """Yield a client of each kind in turn."""
    if request.param == "blocking":
        with Client(site.url, site.key) as client:
            yield Either(client)
    else:
        async with AsyncClient(site.url, site.key) as other:
            yield Either(other)
