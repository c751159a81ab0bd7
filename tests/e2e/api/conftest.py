"""The HTTP API in process: one container per module, two tenants, and a client that checks every response.

The client checks that no response is a 5xx, that every error is a complete problem document, and that no response contains a
word that occurs only in the other tenant's documents.
"""

from __future__ import annotations

import asyncio
import copy
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from watched_loops import watched_turns

from agentic_rag_backend.api.app import create_app
from agentic_rag_backend.api.responses.error_responses import build_routes
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.settings import Settings
from agentic_rag_backend.telemetry.event_loop import WatchedLoop

BASE = "/api/v1"
DOORS = ("/openai/", "/retrieval", "/v1/", "/v2/")
"""Beginnings of addresses of other protocols, whose errors are no problems."""
OPERATOR_KEY = "the-operators-key-of-these-tests-0123456789"
DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "code", "requestId"}
ENDED = {"succeeded", "partial", "failed", "cancelled"}

CANARIES = {"alpha": ("amberquoll", "sorrelwick"), "beta": ("brimwhistle", "tindlebrae")}
"""Words that occur only in one tenant's documents."""

TIDE = """# Tidal barrage

The Harbour Authority began the tidal barrage in May 2019. Mara Venn leads the Harbour Authority.
The {society} objected to the barrage in June 2019, because it closes the eel passage.

## Delay

Mara Venn told the council that the barrage was delayed by two years. The delay was caused by a cracked caisson,
which {builder} had delivered. {builder} works for the Harbour Authority since 2017.
"""
EELS = """# Eel passage

The {society} counted 4,200 eels at the eel passage in 2018. {builder} chairs the {society}.
Fishing in the estuary rests on eels. The Harbour Authority pays the {society} for every count.
"""
MARKET = """# Fish market

The Fish Market of Port Sarn opened in 1911. Mara Venn bought the Fish Market in 2015 for the Harbour Authority.
The {society} rents two halls of the Fish Market. Energy for the halls comes from the tidal barrage.
"""
NAMES = {
    "alpha": {"society": "Amberquoll Society", "builder": "Jorin Sorrelwick"},
    "beta": {"society": "Brimwhistle Society", "builder": "Oskar Tindlebrae"},
}
DOCUMENTS = {"tide": TIDE, "eels": EELS, "market": MARKET}


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller: a name, a key, the tenant, and the words that must not appear in responses."""

    name: str
    key: str | None
    tenant_id: str = ""
    forbidden: tuple[str, ...] = ()


class Client:
    """Sends requests as one caller and checks every response."""

    def __init__(self, http: httpx.AsyncClient, caller: Caller) -> None:
        self.http = http
        self.caller = caller

    async def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request. ``path`` is relative to the base path unless it begins with ``//``."""
        headers = {**options.pop("headers", {})}
        if self.caller.key and not headers.keys() & {"Authorization", "X-API-Key"}:
            headers["Authorization"] = f"Bearer {self.caller.key}"
        target = path[1:] if path.startswith("//") else BASE + path
        response = await self.http.request(method, target, headers=headers, **options)
        self.check(response)
        return response

    def check(self, response: httpx.Response) -> None:
        """Fail on a 5xx, an invalid problem document, or another tenant's words."""
        shown = f"{response.request.method} {response.request.url} -> {response.status_code} {response.text[:500]}"
        assert response.status_code < 500, shown
        if response.status_code >= 400 and not response.request.url.path.startswith(DOORS):
            assert response.headers["content-type"] == "application/problem+json", shown
            body = response.json()
            assert body.keys() >= PROBLEM_MEMBERS, shown
            assert body["status"] == response.status_code, shown
            assert body["detail"], shown
        try:
            sent = (str(response.request.url) + response.request.content.decode("utf-8", "replace")).casefold()
        except httpx.RequestNotRead:
            sent = str(response.request.url).casefold()
        received = (response.text + str(response.headers)).casefold()
        for word in self.caller.forbidden:
            assert word in sent or word not in received, f"{word!r} reached {self.caller.name}: {shown}"

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("GET", path, **options)

    async def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return await self.request("POST", path, **({} if json is None else {"json": json}), **options)

    async def patch(self, path: str, json: Any, **options: Any) -> httpx.Response:
        return await self.request("PATCH", path, json=json, **options)

    async def delete(self, path: str, **options: Any) -> httpx.Response:
        return await self.request("DELETE", path, **options)

    async def data(self, method: str, path: str, *, status: int = 200, **options: Any) -> Any:
        """Return ``data`` of a response that must have ``status`` and a complete envelope."""
        response = await self.request(method, path, **options)
        assert response.status_code == status, response.text
        body = response.json()
        assert body.keys() == {"data", "meta"}
        assert body["meta"]["requestId"] == response.headers["x-request-id"]
        return body["data"]

    async def pages(self, path: str, *, limit: int, **params: Any) -> list[dict[str, Any]]:
        """Return the items of all pages of a list."""
        items: list[dict[str, Any]] = []
        cursor: str | None = None
        while True:
            wanted = {"limit": limit, **params, **({"cursor": cursor} if cursor else {})}
            page = (await self.get(path, params=wanted)).json()
            assert 0 < len(page["data"]) <= limit
            items += page["data"]
            cursor = page["meta"]["nextCursor"]
            if cursor is None:
                return items

    async def ended(self, job_id: str, *, within_s: float = 120) -> dict[str, Any]:
        """Wait until the job has ended and return it."""
        async with asyncio.timeout(within_s):
            while True:
                job: dict[str, Any] = await self.data("GET", f"/jobs/{job_id}")
                if job["state"] in ENDED:
                    return job
                await asyncio.sleep(0.02)

    async def upload(self, text: str, **fields: Any) -> dict[str, Any]:
        """Submit a document, wait for it, and return it as the API shows it."""
        submitted = await self.data("POST", "/documents", status=202, json={"text": text, **fields})
        job = await self.ended(submitted["job_id"])
        assert job["state"] == "succeeded", job
        document: dict[str, Any] = await self.data("GET", f"/documents/{submitted['document_id']}")
        return document

    async def rebuild(self, **body: Any) -> dict[str, Any]:
        """Rebuild communities and return the ended job."""
        accepted = await self.data("POST", "/admin/communities/rebuild", status=202, json={"mode": "full", **body})
        job = await self.ended(accepted["job_id"])
        assert job["state"] == "succeeded", job
        return job

    async def build_tree(self, **body: Any) -> dict[str, Any]:
        """Build the tree over the passages and return the ended job."""
        accepted = await self.data("POST", "/admin/raptor/rebuild", status=202, json=body)
        job = await self.ended(accepted["job_id"])
        assert job["state"] == "succeeded", job
        return job


@dataclass(slots=True)
class World:
    """The application with two tenants, each with keys of several scopes, and one caller without a key."""

    container: Container
    app: Any
    operator: Client
    nobody: Client
    alpha: Client
    alpha_writer: Client
    alpha_reader: Client
    beta: Client
    documents: dict[str, dict[str, dict[str, Any]]]

    def client(self, caller: Caller) -> Client:
        """Return a client for another caller."""
        return Client(self.operator.http, caller)

    async def tenant(self, name: str) -> Client:
        """Return an administrator of a new tenant."""
        return (await add_tenant(self.operator.http, name, "admin"))[0]

    async def held(self) -> dict[str, Any]:
        """Return everything that an incomplete request could have left behind."""
        status = await self.alpha.data("GET", "/status")
        jobs = (await self.alpha.get("/jobs", params={"limit": 100})).json()["data"]
        blobs = self.container.settings.data_dir / "blobs"
        originals = sorted(str(path.relative_to(blobs)) for path in blobs.rglob("*") if path.is_file())
        return {"counts": status["counts"], "version": status["state_version"], "jobs": len(jobs), "originals": originals}


async def fill(client: Client, tenant: str) -> dict[str, dict[str, Any]]:
    """Ingest a tenant's documents and build its communities."""
    uploads = [
        client.upload(
            text.format(**NAMES[tenant]), key=key, metadata={"category": "minutes" if key == "tide" else "report", "rank": number}
        )
        for number, (key, text) in enumerate(DOCUMENTS.items())
    ]
    documents = dict(zip(DOCUMENTS, await asyncio.gather(*uploads), strict=True))
    await client.rebuild()
    await client.build_tree()
    return documents


def settings_for(folder: Path, **more: Any) -> Settings:
    """Return the settings of a container in ``folder``, regardless of the environment."""
    chosen = {
        "data_dir": folder,
        "operator_key": OPERATOR_KEY,
        "community_auto_rebuild": False,
        "job_polling_interval_s": 0.02,
        # All requests of a test run come from one address.
        "max_wrong_keys_per_client": 0,
        **more,
    }
    return Settings(_env_file=None, **chosen)


@asynccontextmanager
async def serving(container: Container) -> AsyncIterator[httpx.AsyncClient]:
    """Serve a container in process. Meanwhile, no turn of the event loop may take long."""
    app = create_app(container)
    build_routes(app)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=60) as http:
        with watched_turns():
            yield http


async def add_tenant(http: httpx.AsyncClient, name: str, *scopes: str) -> list[Client]:
    """Create a tenant and a key for each of ``scopes``, through the API."""
    operator = Client(http, Caller("operator", OPERATOR_KEY))
    tenant = await operator.data("POST", "/tenants", status=201, json={"name": name})
    forbidden = tuple(word for other, words in CANARIES.items() if other != name for word in words)
    clients = []
    for scope in scopes:
        issued = await operator.data(
            "POST", f"/tenants/{tenant['id']}/keys", status=201, json={"name": f"{name}-{scope}", "scopes": [scope]}
        )
        clients.append(Client(http, Caller(f"{name}-{scope}", issued["key"], TenantId(tenant["id"]).value, forbidden)))
    return clients


@dataclass(frozen=True, slots=True)
class Template:
    """A folder of stores with two tenants, to be copied, and its keys and ids."""

    folder: Path
    callers: dict[str, Caller]
    documents: dict[str, dict[str, dict[str, Any]]]

    def client(self, http: httpx.AsyncClient, name: str = "alpha") -> Client:
        """Return a client of a tenant on a copy of the folder."""
        return Client(http, self.callers[name])


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Fill stores once for all modules of a test process."""
    with asyncio.Runner(loop_factory=WatchedLoop) as runner:
        return runner.run(_filled(tmp_path_factory.mktemp("template") / "data"))


async def _filled(folder: Path) -> Template:
    async with open_container(settings_for(folder)) as container, serving(container) as http:
        alpha, writer, reader = await add_tenant(http, "alpha", "admin", "write", "read")
        (beta,) = await add_tenant(http, "beta", "admin")
        callers = {"alpha": alpha.caller, "alpha_writer": writer.caller, "alpha_reader": reader.caller, "beta": beta.caller}
        documents = {"alpha": await fill(alpha, "alpha"), "beta": await fill(beta, "beta")}
    return Template(folder, callers, documents)


@pytest.fixture(scope="module")
def folder(template: Template, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the stores of two tenants, for the container that a module opens."""
    made = tmp_path_factory.mktemp("world") / "data"
    # Most of the files are sparse. A copy by Python would fill the holes.
    subprocess.run(["cp", "-a", "--sparse=always", template.folder, made], check=True)
    return made


def model_at(url: str, name: str = "cite", **more: Any) -> dict[str, Any]:
    """Return settings with which a model at ``url`` writes whatever models write, except entities."""
    named = {"llm_model": name, "llm_fast_model": name, "dual_level_synthesis_model": name}
    return {"llm": "openai", "extraction": "rules", "openai_api_key": "any", "openai_base_url": url, **named, **more}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(template: Template, folder: Path) -> AsyncIterator[World]:
    """Two tenants with documents and communities. Dual-level retrieval is off, as by default."""
    async with open_container(settings_for(folder)) as container, serving(container) as http:
        everyone = tuple(word for words in CANARIES.values() for word in words)
        yield World(
            container=container,
            app=http._transport.app,  # type: ignore[attr-defined]
            operator=Client(http, Caller("operator", OPERATOR_KEY)),
            nobody=Client(http, Caller("nobody", None, forbidden=everyone)),
            documents=copy.deepcopy(template.documents),
            **{name: Client(http, caller) for name, caller in template.callers.items()},
        )


@pytest.fixture(scope="session")
def open_world() -> Callable[..., AbstractAsyncContextManager[tuple[Container, httpx.AsyncClient]]]:
    """Return a function that opens a container in a folder and serves it."""

    @asynccontextmanager
    async def opened(folder: Path, **more: Any) -> AsyncIterator[tuple[Container, httpx.AsyncClient]]:
        async with open_container(settings_for(folder, **more)) as container, serving(container) as http:
            yield container, http

    return opened


def events_of(response: httpx.Response) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the server-sent events of a response: id, name and data."""
    events = []
    for block in response.text.replace("\r\n", "\n").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            events.append((fields["id"], fields["event"], json.loads(fields["data"])))
    return events


@pytest.fixture(scope="session")
def sse() -> Callable[[httpx.Response], list[tuple[str, str, dict[str, Any]]]]:
    """Return the parser of server-sent events."""
    return events_of


@pytest.fixture(scope="session")
def new_tenant() -> Callable[..., Any]:
    """Return a function that creates a tenant with keys."""
    return add_tenant


@pytest.fixture(scope="session")
def fill_tenant() -> Callable[..., Any]:
    """Return a function that ingests a tenant's documents and builds its communities."""
    return fill
