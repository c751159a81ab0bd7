"""Every strategy during an outage of each store: the same answer, a partial one that reports it, or 503. Never a refusal."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from sampling import budget
from tests.integration.retrieval.conftest import Corpus

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.domain.tenant import KeyRequest, TenantId
from agentic_rag_backend.errors import StoreUnavailable
from agentic_rag_backend.retrieval.registry import STRATEGIES
from agentic_rag_backend.tenancy.features import DUAL_LEVEL

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANSWERED = ("Who engraved the Glass Atlas?", "What role does the Glass Atlas play?")
ABOUT_THEMES = (None, "auto", "community", "dual_level", "global") if budget(gate=1, deep=0) else (None, *STRATEGIES)
"""Strategies that are asked the second one. `make test-deep` asks all strategies."""
UNANSWERED = "What is the boiling point of tungsten?"
STORES = ("catalogue", "vectors", "graph", "blobs")
_KEPT = {"fingerprint", "terms", "close"}
"""Methods of a vector store that need no server."""


class Site:
    """Tenants with and without communities, and their requests."""

    def __init__(self, corpus: Corpus, http: httpx.AsyncClient, keys: Mapping[bool, tuple[TenantId, str]]) -> None:
        self._corpus = corpus
        self._http = http
        self._keys = keys
        self._healthy: dict[Any, httpx.Response] = {}

    async def healthy(self, path: str, question: str, *, built: bool, strategy: str | None) -> httpx.Response:
        """Return the answer without an outage. It is the same for every store."""
        asked = (path, question, built, strategy)
        if asked not in self._healthy:
            self._healthy[asked] = await self.ask(path, question, built=built, strategy=strategy)
        return self._healthy[asked]

    async def ask(self, path: str, question: str, *, built: bool, strategy: str | None = None) -> httpx.Response:
        """Search as of a time at which every document is valid, without a cached graph."""
        tenant, key = self._keys[built]
        self._forget(tenant)
        body = {"query": question, **({"strategy": strategy, "as_of": "2018"} if strategy else {})}
        return await self._http.post(f"/api/v1{path}", json=body, headers={"X-API-Key": key})

    def _forget(self, tenant: TenantId) -> None:
        self._corpus.container.graphs.forget(tenant)

    @contextmanager
    def away(self, store: str) -> Iterator[None]:
        """Make every call of a store fail that needs its server."""
        container = self._corpus.container
        at: Any = {
            "catalogue": container.catalogue.documents,
            "vectors": container.vectors,
            "graph": container.graph,
            "blobs": container.blobs,
        }[store]
        names = [name for name in dir(type(at)) if not name.startswith("_") and name not in _KEPT]
        with pytest.MonkeyPatch.context() as patch:
            for name in names:
                if callable(getattr(type(at), name)):
                    patch.setattr(type(at), name, _failing(getattr(type(at), name), store))
            yield


def _failing(method: Callable[..., Any], store: str) -> Callable[..., Any]:
    failure = f"the {store} is away"

    async def called(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable(failure)

    async def streamed(*_: Any, **__: Any) -> AsyncIterator[Any]:
        raise StoreUnavailable(failure)
        yield

    # Streams come from plain functions or generators, other results from coroutines.
    return called if method.__code__.co_flags & 0x80 else streamed


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(corpus: Corpus) -> AsyncIterator[Site]:
    keys: dict[bool, tuple[TenantId, str]] = {}
    for built in (True, False):
        tenant = await corpus.tenant(f"built {built}", communities=built)
        await corpus.container.catalogue.tenants.set_flags(tenant, {DUAL_LEVEL: True})
        issued = await corpus.container.tenants.issue_key(tenant, KeyRequest("outages"))
        keys[built] = (tenant, issued.secret)
    transport = httpx.ASGITransport(create_app(corpus.container))
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as http:
        yield Site(corpus, http, keys)


def refused(response: httpx.Response) -> bool:
    data = response.json()["data"]
    return "grounded" in data and not data["grounded"]


def told(data: dict[str, Any]) -> Any:
    """Return the content of an answer, without measured values."""
    return [
        data.get("answer", data.get("synthesized_answer")),
        [hit["id"] for hit in data.get("results", data.get("low_level_results", []))],
        [theme["id"] for theme in data.get("themes", data.get("high_level_results", []))],
    ]


def meta_of(response: httpx.Response) -> dict[str, Any]:
    body = response.json()
    return {**body.get("meta", {}), **body["data"]}


async def check(site: Site, healthy: httpx.Response, found: httpx.Response, case: str) -> None:
    if found.status_code == 503:
        assert found.json()["code"] == "store_unavailable", case
        assert int(found.headers["Retry-After"]) >= 1, case
        return
    assert found.status_code == healthy.status_code == 200, (case, found.text)
    if told(found.json()["data"]) == told(healthy.json()["data"]):
        return
    assert meta_of(found)["fallback_used"], (case, found.text)
    assert meta_of(found)["fallback_reason"], case
    assert not refused(found), (case, found.text)


@pytest.mark.sampled
@pytest.mark.parametrize("built", [True, False], ids=["communities", "none"])
@pytest.mark.parametrize("store", STORES)
async def test_an_outage_is_not_an_answer(site: Site, store: str, built: bool) -> None:
    paths = [(path, strategy) for path in ("/search", "/answers") for strategy in STRATEGIES]
    for question in (*ANSWERED, UNANSWERED):
        for path, strategy in [*paths, ("/search/dual-level", None)]:
            if question == ANSWERED[1] and strategy not in ABOUT_THEMES:
                continue
            case = f"{path} {strategy} {question!r} without {store}"
            healthy = await site.healthy(path, question, built=built, strategy=strategy)
            assert healthy.status_code == 200, (case, healthy.text)
            with site.away(store):
                found = await site.ask(path, question, built=built, strategy=strategy)
            await check(site, healthy, found, case)
            if store in ("vectors", "catalogue") and (built or strategy not in ("community", "global")):
                assert found.status_code == 503, (case, found.text)


async def test_dual_level_without_communities_and_without_vectors_is_no_refusal(site: Site) -> None:
    with site.away("vectors"):
        found = await site.ask("/search/dual-level", ANSWERED[0], built=False)
        streamed = await site.ask("/answers", ANSWERED[0], built=False, strategy="dual_level")
    for response in (found, streamed):
        assert (response.status_code, response.json()["code"]) == (503, "store_unavailable"), response.text
        assert "Retry-After" in response.headers
