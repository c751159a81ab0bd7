"""Both clients and a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.client.conftest import NAMES, Either, Site

from agentic_rag_client import (
    AsyncClient,
    AuthenticationFailed,
    Client,
    DoneEvent,
    JobEndEvent,
    NotFound,
    PermissionDenied,
    PreconditionFailed,
    ProblemError,
    RetrievalEvent,
    TokenEvent,
)

QUESTION = "How wide is the corridor that the Narrows Accord of 2012 keeps open to fishing?"


async def test_a_document_from_its_upload_to_its_removal(either: Either, tmp_path: Path) -> None:
    documents, progress, stages = either.client.documents, list[tuple[int, int]](), list[str]()
    content = (f"# Lamp {type(either.client).__name__}\n\n" + "The lamp of the pier was mended in 1957.\n" * 2500).encode()
    path = tmp_path / "lamp.md"
    path.write_bytes(content)
    submission = await either.settle(
        documents.upload(
            path, key=f"lamp-{type(either.client).__name__}", progress=lambda sent, total: progress.append((sent, total))
        )
    )
    assert progress[-1] == (len(content), len(content))
    assert len(progress) > 1
    assert [sent for sent, _ in progress] == sorted(sent for sent, _ in progress)
    document = await either.settle(documents.wait(submission, progress=lambda job: stages.append(job.stage)))
    assert (document.state, document.size_bytes) == ("ready", len(content))
    assert len(stages) > 1
    with path.open("rb") as file:
        again = await either.settle(documents.upload(file, key=document.key))
    assert again.unchanged
    assert (await either.settle(documents.wait(again))).id == document.id

    saved = tmp_path / "saved"
    assert await either.settle(documents.content(document.id).save(saved)) == len(content)
    assert saved.read_bytes() == content == await either.settle(documents.content(document.id).read())
    assert b"".join(await either.collect(documents.content(document.id))) == content
    chunks = await either.collect(documents.chunks(document.id, limit=50))
    assert len({chunk.id for chunk in chunks}) == document.chunk_count > 50

    changed = await either.settle(documents.update(document.id, title="Lamps", if_match=document.response.etag))
    assert changed.title == "Lamps"
    with pytest.raises(PreconditionFailed):
        await either.settle(documents.delete(document.id, if_match=document.response.etag))
    receipt = await either.settle(either.client.jobs.wait(await either.settle(documents.delete(document.id))))
    assert receipt.state == "succeeded"
    with pytest.raises(NotFound) as raised:
        await either.settle(documents.get(document.id))
    assert raised.value.code == "not_found"


async def test_lists_are_read_page_by_page(either: Either) -> None:
    titles = [
        document.title for document in await either.collect(either.client.documents.list(limit=2, metadata={"set": "corpus"}))
    ]
    assert len(set(titles)) == len(NAMES)
    pages = await either.collect(either.client.documents.list(limit=2, metadata={"set": "corpus"}).pages())
    assert [len(page.items) for page in pages] == [2, 1]
    assert pages[0].response.request_id
    rest = await either.collect(either.client.documents.list(limit=2, cursor=pages[0].next_cursor, metadata={"set": "corpus"}))
    assert [document.title for document in rest] == titles[2:]
    listing = either.client.documents.list(filter={"key": {"prefix": "nothing"}})
    assert await either.collect(listing) == await either.collect(listing) == []


async def test_a_stream_has_the_answer_of_a_whole_response(either: Either, site: Site) -> None:
    whole = await either.settle(either.client.answers.create(QUESTION, cache=False))
    events = await either.collect(either.client.answers.stream(QUESTION, cache=False))
    assert isinstance(events[0], RetrievalEvent)
    assert isinstance(events[-1], DoneEvent)
    answer = events[-1].answer
    assert answer.answer == whole.answer == "".join(event.text for event in events if isinstance(event, TokenEvent))
    assert "400 metres" in answer.answer
    assert answer.citations == whole.citations
    request = {"model": "auto", "messages": [{"role": "user", "content": QUESTION}]}
    chat = httpx2.post(
        f"{site.url}/openai/v1/chat/completions?sources=none", json=request, headers={"Authorization": f"Bearer {site.key}"}
    )
    assert {**answer.to_openai(), "refusal": None} == chat.json()["choices"][0]["message"]


async def test_a_stream_that_is_closed_stops_the_answer(either: Either, site: Site) -> None:
    transport = Breaking(limit=10**9)
    client, http = with_transport(either, site, transport)
    if isinstance(client, Client):
        with client.answers.stream(QUESTION, cache=False) as events:
            next(iter(events))
    else:
        async with client.answers.stream(QUESTION, cache=False) as others:
            await anext(aiter(others))
    verb, address = transport.addresses[-1].split()
    assert verb == "DELETE"
    with pytest.raises(NotFound):
        await either.collect(either.client.answers.resume(address.rpartition("/")[2]))
    await close(http)


async def test_a_job_is_followed_to_its_end(either: Either) -> None:
    submission = await either.settle(either.client.documents.add(f"# Note\n\nWritten by {type(either.client).__name__}."))
    events = await either.collect(either.client.jobs.events(submission.job_id))
    assert isinstance(events[-1], JobEndEvent)
    assert events[-1].job.state == (await either.settle(either.client.jobs.wait(submission))).state == "succeeded"


async def test_a_tenant_is_moved(either: Either, site: Site, tmp_path: Path) -> None:
    kind = type(either.client)
    operator = Either(kind(site.url, site.operator_key))
    name = f"moved-{kind.__name__}"
    tenant = (await either.settle(either.client.tenant())).id
    size = await operator.settle(operator.client.tenants.export(tenant).save(tmp_path / "tenant.tgz"))
    progress: list[tuple[int, int]] = []
    accepted = await operator.settle(
        operator.client.tenants.import_archive(tmp_path / "tenant.tgz", name=name, progress=lambda *sent: progress.append(sent))
    )
    assert progress[-1] == (size, size)
    copy = Either(operator.client.with_options(tenant=name))
    assert (await copy.settle(copy.client.jobs.wait(accepted))).state == "succeeded"
    documents = await copy.collect(copy.client.documents.list(metadata={"set": "corpus"}))
    assert len(documents) == len(NAMES)
    assert (await operator.settle(operator.client.tenants.delete(accepted.tenant_id))).state == "deleted"
    await operator.settle(operator.client.close())


async def test_refusals(either: Either, site: Site, tmp_path: Path) -> None:
    def write(content: bytes, name: str) -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    with pytest.raises(PermissionDenied):
        await either.collect(either.client.tenants.list())
    with pytest.raises(ProblemError, match="damaged") as raised:
        await either.settle(either.client.documents.upload(b"%PDF-1.7 nothing", name="broken.pdf"))
    assert (raised.value.status, raised.value.code) == (422, "unreadable_document")
    refused, accepted = await either.settle(
        either.client.documents.upload_files([write(b"%PDF-1.7", "b.pdf"), write(b"# A", "a.md")])
    )
    assert (refused.error["code"], refused.job_id) == ("unreadable_document", None)
    assert (await either.settle(either.client.documents.wait(accepted))).state == "ready"
    with Client(site.url, "wrong") as stranger, pytest.raises(AuthenticationFailed):
        stranger.status()


class Breaking(httpx2.BaseTransport, httpx2.AsyncBaseTransport):
    """Transport whose first response breaks in its middle."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.addresses: list[str] = []
        self._blocking = httpx2.HTTPTransport()
        self._waiting = httpx2.AsyncHTTPTransport()

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.addresses.append(f"{request.method} {request.url.path}")
        response = self._blocking.handle_request(request)
        assert isinstance(response.stream, httpx2.SyncByteStream)
        if len(self.addresses) == 1:
            return httpx2.Response(response.status_code, headers=response.headers, stream=Broken(response.stream, self.limit))
        return response

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.addresses.append(f"{request.method} {request.url.path}")
        response = await self._waiting.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        if len(self.addresses) == 1:
            return httpx2.Response(
                response.status_code, headers=response.headers, stream=BrokenLater(response.stream, self.limit)
            )
        return response

    def close(self) -> None:
        self._blocking.close()

    async def aclose(self) -> None:
        await self._waiting.aclose()


class Broken(httpx2.SyncByteStream):
    """Body that breaks after some bytes."""

    def __init__(self, stream: httpx2.SyncByteStream, limit: int) -> None:
        self.stream, self.limit = stream, limit

    def __iter__(self) -> Iterator[bytes]:
        for block in self.stream:
            yield block[: self.limit]
            self.limit -= len(block)
            if self.limit <= 0:
                raise httpx2.ReadError("broken")

    def close(self) -> None:
        self.stream.close()


class BrokenLater(httpx2.AsyncByteStream):
    """Body that breaks after some bytes, on the event loop."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self.stream, self.limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for block in self.stream:
            yield block[: self.limit]
            self.limit -= len(block)
            if self.limit <= 0:
                raise httpx2.ReadError("broken")

    async def aclose(self) -> None:
        await self.stream.aclose()


def with_transport(either: Either, site: Site, transport: Breaking) -> tuple[Any, Any]:
    """Return a client of the same kind on a transport, and its connections."""
    http: Any = (
        httpx2.Client(transport=transport) if isinstance(either.client, Client) else httpx2.AsyncClient(transport=transport)
    )
    return type(either.client)(site.url, site.key, http=http), http


async def close(http: httpx2.Client | httpx2.AsyncClient) -> None:
    """Close connections of either kind."""
    if isinstance(http, httpx2.Client):
        http.close()
    else:
        await http.aclose()


@pytest.mark.parametrize("limit", [1, 2_000, 20_000])
async def test_a_broken_stream_goes_on_without_repetition(either: Either, site: Site, limit: int) -> None:
    expected = await either.settle(either.client.answers.create(QUESTION))
    transport = Breaking(limit)
    client, http = with_transport(either, site, transport)
    events = await either.collect(client.answers.stream(QUESTION, cache=False))
    assert "".join(event.text for event in events if isinstance(event, TokenEvent)) == expected.answer
    assert [type(event) for event in events].count(DoneEvent) == 1
    assert [type(event) for event in events].count(RetrievalEvent) == 1
    assert transport.addresses[1].startswith("GET /api/v1/answers/streams/")
    await close(http)


async def test_many_requests_at_once(site: Site) -> None:
    async with AsyncClient(site.url, site.key) as client:
        found = await asyncio.gather(*(client.search(QUESTION, limit=1) for _ in range(12)))
    assert len({result.results[0].id for result in found}) == 1
