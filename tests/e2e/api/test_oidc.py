"""Tokens of an OpenID provider at every door, over HTTP, with a provider that rotates its keys and goes away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.e2e.api.conftest import OPERATOR_KEY, Caller, Client, Template
from token_issuer import AUDIENCE, Issuer, serving_issuer

pytestmark = pytest.mark.asyncio(loop_scope="module")

Opened = Callable[..., AbstractAsyncContextManager[tuple[Any, httpx.AsyncClient]]]
DOORS: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
    ("GET", "/api/v1/documents", None),
    ("POST", "/api/v1/search", {"query": "society eels"}),
    ("POST", "/api/v1/answers", {"query": "society eels", "stream": True}),
    ("GET", "/openai/v1/files", None),
    ("POST", "/openai/v1/vector_stores/vs_all/search", {"query": "society eels"}),
    ("POST", "/retrieval", {"knowledge_id": "auto", "query": "society eels", "retrieval_setting": {}}),
    ("POST", "/v1/rerank", {"model": "auto", "query": "eels", "documents": ["eels"]}),
    (
        "POST",
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {"query": "eels"}}},
    ),
)
ACCEPT = {"Accept": "application/json, text/event-stream"}


@dataclass
class Site:
    """A server that trusts a provider."""

    http: httpx.AsyncClient
    issuer: Issuer
    template: Template
    container: Any

    def client(self, name: str, **claims: Any) -> Client:
        """Return a client with a token for a tenant. It must not see words of another."""
        key = self.template.callers[name]
        token = self.issuer.token(**{"tenant": key.tenant_id, "scope": "read write", **claims})
        return Client(self.http, Caller(f"{name}-token", token, key.tenant_id, key.forbidden))

    @property
    def operator(self) -> Client:
        """The operator."""
        return Client(self.http, Caller("operator", OPERATOR_KEY))


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with serving_issuer() as serving:
        yield serving


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(template: Template, folder: Path, issuer: Issuer, open_world: Opened) -> AsyncIterator[Site]:
    settings = {"oidc_issuer": issuer.address, "oidc_audience": f"other,{AUDIENCE}", "oidc_leeway_s": 0}
    async with open_world(folder, **settings, public_url="https://rag.test") as (container, http):
        yield Site(http, issuer, template, container)


async def test_a_token_opens_every_door_for_its_tenant_only(site: Site) -> None:
    for name, own in (("alpha", "amberquoll"), ("beta", "brimwhistle")):
        client = site.client(name)  # its forbidden words are those of the other tenant
        for method, path, body in DOORS:
            response = await client.request(method, f"/{path}", headers=ACCEPT, **({} if body is None else {"json": body}))
            assert response.status_code == 200, (path, response.text)
            assert own in response.text.casefold() or "documents" in path or "files" in path or "rerank" in path, path
    assert (await site.client("alpha").data("GET", "/tenants/me"))["name"] == "alpha"
    named = site.client("alpha", tenant="alpha", sub="ben")
    assert (await named.data("GET", "/tenants/me"))["id"] == site.template.callers["alpha"].tenant_id


async def test_a_token_answers_what_a_key_answers(site: Site) -> None:
    question = {"query": "Why was the tidal barrage delayed?"}
    key = Client(site.http, site.template.callers["alpha"])
    answers = [await client.data("POST", "/answers", json=question) for client in (key, site.client("alpha"))]
    assert answers[0]["answer"] == answers[1]["answer"]
    assert answers[0]["citations"] == answers[1]["citations"]


async def test_scopes_of_a_token_are_checked(site: Site) -> None:
    reader = site.client("alpha", scope="openid read", sub="reader")
    refused = await reader.post("/documents", {"text": "x"})
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (await site.client("alpha").get("/feedback")).status_code == 403
    assert (await site.client("alpha", scope="admin").get("/feedback")).status_code == 200
    for scope in (None, "", "openid profile", ["reader"], 7):
        without = await site.client("alpha", scope=scope).get("/documents")
        assert (without.status_code, "scope 'read'" in without.text) == (403, True)
    for path in ("/tenants", "//metrics"):
        assert (await site.client("alpha", scope="admin").get(path)).status_code == 403
    named = await site.client("alpha").get("/documents", headers={"X-Tenant-Id": "beta"})
    assert named.status_code == 403
    await site.container.usage.write_ledger()
    groups = (await site.client("alpha", scope="admin").data("GET", "/usage?by=key"))["groups"]
    subjects = {group["group"] for group in groups if group["group"].startswith("oidc:")}
    assert len(subjects) == 3  # anna, ben and reader; tokens with other scopes are of the same subject
    assert all(len(subject) == 43 for subject in subjects)


async def test_every_door_refuses_a_token_of_others_and_names_the_provider(site: Site) -> None:
    now, tenant = int(time.time()), site.template.callers["alpha"].tenant_id
    refused = {
        "token_invalid": [site.issuer.token(tenant=tenant, aud="elsewhere"), site.issuer.token(tenant=tenant) + "x", "a.b.c"],
        "token_expired": [site.issuer.token(tenant=tenant, exp=now - 1)],
    }
    for code, tokens in refused.items():
        for token in tokens:
            client = Client(site.http, Caller("refused", token))
            for method, path, body in DOORS:
                await asyncio.sleep(0)
                response = await client.request(method, f"/{path}", headers=ACCEPT, **({} if body is None else {"json": body}))
                assert response.status_code == 401, path
                assert code in response.text or path == "/retrieval", path
                resource = "/mcp" if path == "/mcp" else ""
                title = code.replace("_", " ").capitalize()
                assert response.headers["www-authenticate"] == (
                    f'Bearer error="invalid_token", error_description="{title}", '
                    f'resource_metadata="https://rag.test/.well-known/oauth-protected-resource{resource}"'
                )
    nobody = await site.http.post("/mcp", json={}, headers=ACCEPT)
    challenge = 'Bearer resource_metadata="https://rag.test/.well-known/oauth-protected-resource/mcp"'
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, challenge)


async def test_clients_learn_where_to_get_a_token(site: Site) -> None:
    for path, resource in (("", "https://rag.test"), ("/mcp", "https://rag.test/mcp")):
        described = (await site.http.get(f"/.well-known/oauth-protected-resource{path}")).json()
        assert described == {
            "resource": resource,
            "authorization_servers": [site.issuer.address],
            "scopes_supported": ["read", "write", "admin"],
            "bearer_methods_supported": ["header"],
            "resource_name": "agentic-rag-backend",
        }


async def test_a_suspended_tenant_is_refused(site: Site) -> None:
    tenant = site.template.callers["beta"].tenant_id
    client = site.client("beta")
    await site.operator.data("PATCH", f"/tenants/{tenant}", json={"suspended": True})
    for method, path, body in DOORS:
        response = await client.request(method, f"/{path}", headers=ACCEPT, **({} if body is None else {"json": body}))
        assert (response.status_code, "suspended" in response.text) == (403, True), path
    await site.operator.data("PATCH", f"/tenants/{tenant}", json={"suspended": False})
    assert (await client.get("/documents")).status_code == 200


async def test_a_token_ends(site: Site) -> None:
    ends_at = int(time.time()) + 2
    client = site.client("alpha", exp=ends_at)
    assert (await client.get("/documents")).status_code == 200
    await asyncio.sleep(ends_at - time.time() + 0.1)
    assert (await client.get("/documents")).json()["code"] == "token_expired"


async def test_the_provider_rotates_its_keys_and_goes_away(site: Site) -> None:
    issuer = site.issuer
    first = site.client("alpha")
    issuer.rotate("second", 1)
    second = site.client("alpha")
    replies = await asyncio.gather(*(second.get("/documents") for _ in range(5)))
    assert {reply.status_code for reply in replies} == {200}
    assert (await first.get("/documents")).status_code == 401  # its key is no longer published
    asked = len(issuer.asked)
    issuer.status = 500
    for number in range(30):
        await asyncio.sleep(0)  # refusals in process do not give up the loop
        issuer.key_id = f"made-up-{number}"
        assert (await site.client("alpha").get("/documents")).status_code == 401
    issuer.key_id, issuer.status = "second", 500
    assert len(issuer.asked) == asked
    assert (await second.get("/documents")).status_code == 200  # the provider is away, and its keys are known
    issuer.status = 200
