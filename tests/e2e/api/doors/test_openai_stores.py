"""Vector stores of OpenAI's protocol, with the client that its maker publishes."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.e2e.api.conftest import World
from tests.e2e.api.doors.conftest import QUESTION, client_for

pytestmark = pytest.mark.asyncio(loop_scope="module")


def file_of(world: World, key: str, tenant: str = "alpha") -> str:
    """Return the id of the file of a document."""
    return "file-" + str(world.documents[tenant][key]["id"]).replace("-", "")


async def files_of(client: openai.AsyncOpenAI, store: str, **query: Any) -> list[str]:
    """Return the ids of the files that a search in a store finds."""
    page = await client.vector_stores.search(store, **{"query": QUESTION, "max_num_results": 50, **query})
    return list(dict.fromkeys(result.file_id for result in page.data))


async def test_one_store_has_every_file(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    store = await client.vector_stores.retrieve("vs_all")
    assert (store.status, store.file_counts.completed, store.file_counts.total) == ("completed", 3, 3)
    assert store.usage_bytes == sum(document["size_bytes"] for document in world.documents["alpha"].values())
    assert {file.id async for file in client.vector_stores.files.list("vs_all")} == {
        file_of(world, key) for key in world.documents["alpha"]
    }
    page = await client.vector_stores.search("vs_all", query=QUESTION, max_num_results=2)
    found = (await world.alpha.post("/search", {"query": QUESTION, "strategy": "auto", "limit": 2})).json()["data"]["results"]
    assert [(item.score, item.content[0].text) for item in page.data] == [(item["score"], item["content"]) for item in found]
    assert page.data[0].filename == "Tidal barrage"
    assert page.data[0].attributes == {"category": "minutes", "rank": 0}
    assert (page.model_extra or {})["search_query"] == [QUESTION]
    added = await writer.vector_stores.files.create("vs_all", file_id=file_of(world, "tide"))
    assert added.status == "completed"
    for call in (
        writer.vector_stores.delete("vs_all"),
        writer.vector_stores.update("vs_all", name="x"),
        writer.vector_stores.files.delete(file_of(world, "tide"), vector_store_id="vs_all"),
    ):
        with pytest.raises(openai.ConflictError, match="all documents"):
            await call


async def test_a_store_has_the_files_that_are_added(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    tide, eels = file_of(world, "tide"), file_of(world, "eels")
    store = await writer.vector_stores.create(name="Eels", file_ids=[eels], metadata={"team": "b"})
    assert (store.name, store.metadata, store.file_counts.total) == ("Eels", {"team": "b"}, 1)
    assert await files_of(client, store.id) == [eels]

    attached = await writer.vector_stores.files.create_and_poll(tide, vector_store_id=store.id)
    assert (attached.status, attached.vector_store_id, attached.attributes) == (
        "completed",
        store.id,
        {"category": "minutes", "rank": 0},
    )
    assert set(await files_of(client, store.id)) == {tide, eels}
    listed = [file.id async for file in client.vector_stores.files.list(store.id, limit=1, filter="completed", order="asc")]
    assert set(listed) == {tide, eels}
    assert len(listed) == 2
    assert [file.id async for file in client.vector_stores.files.list(store.id, filter="failed")] == []

    await writer.vector_stores.files.delete(eels, vector_store_id=store.id)
    assert await files_of(client, store.id) == [tide]
    with pytest.raises(openai.NotFoundError, match=eels):
        await client.vector_stores.files.retrieve(eels, vector_store_id=store.id)
    assert (await client.files.retrieve(eels)).status == "processed"  # the file stays

    renamed = await writer.vector_stores.update(store.id, name="Barrage", metadata={})
    assert (renamed.name, renamed.metadata) == ("Barrage", {})
    assert (await writer.vector_stores.delete(store.id)).deleted
    with pytest.raises(openai.NotFoundError, match=store.id):
        await client.vector_stores.search(store.id, query=QUESTION)


async def test_an_empty_store_finds_nothing(client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    store = await writer.vector_stores.create(name="empty")
    for ranker in ("auto", "none", "mmr"):
        page = await client.vector_stores.search(store.id, query=QUESTION, ranking_options={"ranker": ranker})  # type: ignore[typeddict-item]
        assert page.data == []
    assert store.status == "completed"
    await writer.vector_stores.delete(store.id)


async def test_a_store_can_be_a_filter(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    store = await writer.vector_stores.create(name="reports", extra_body={"filter": {"category": "report"}})
    reports = {file_of(world, "eels"), file_of(world, "market")}
    assert (store.file_counts.total, (store.model_extra or {})["filter"]) == (2, {"category": "report"})
    assert set(await files_of(client, store.id)) == reports
    assert {file.id async for file in client.vector_stores.files.list(store.id)} == reports
    assert (await client.vector_stores.files.retrieve(file_of(world, "eels"), vector_store_id=store.id)).status == "completed"
    for call in (
        writer.vector_stores.files.create(store.id, file_id=file_of(world, "tide"), attributes={"category": "stolen"}),
        writer.vector_stores.files.delete(file_of(world, "eels"), vector_store_id=store.id),
    ):
        with pytest.raises(openai.ConflictError, match="filter"):
            await call
    assert (await client.vector_stores.files.retrieve(file_of(world, "tide"), vector_store_id="vs_all")).attributes == {
        "category": "minutes",
        "rank": 0,
    }
    for wrong, expected in (({"entity": "Mara Venn"}, "belongs to passages"), ({"tenant_id": "x"}, "tenant_id")):
        with pytest.raises(openai.BadRequestError, match=expected):
            await writer.vector_stores.create(name="x", extra_body={"filter": wrong})
    with pytest.raises(openai.BadRequestError, match="either"):
        await writer.vector_stores.create(name="x", file_ids=[file_of(world, "tide")], extra_body={"filter": {"a": 1}})
    await writer.vector_stores.delete(store.id)


async def test_filters_are_those_of_attributes(world: World, client: openai.AsyncOpenAI) -> None:
    tide, eels, market = (file_of(world, key) for key in ("tide", "eels", "market"))
    minutes: Any = {"type": "eq", "key": "category", "value": "minutes"}
    for filters, expected in (
        (minutes, {tide}),
        ({"type": "ne", "key": "category", "value": "minutes"}, {eels, market}),
        ({"type": "gte", "key": "rank", "value": 1}, {eels, market}),
        ({"type": "in", "key": "rank", "value": [0, 2]}, {tide, market}),
        ({"type": "nin", "key": "rank", "value": [0, 2]}, {eels}),
        ({"type": "and", "filters": [minutes, {"type": "gt", "key": "rank", "value": 0}]}, set()),
        ({"type": "or", "filters": [minutes, {"type": "eq", "key": "rank", "value": 1}]}, {tide, eels}),
        ({"type": "eq", "key": "tenant_id", "value": world.beta.caller.tenant_id}, set()),
    ):
        assert set(await files_of(client, "vs_all", filters=filters)) == expected, filters
    for filters, match in (
        ({"type": "like", "key": "a", "value": 1}, "filters"),
        ({"type": "in", "key": "a", "value": []}, "1 to 100"),
        ({"type": "and", "filters": []}, "list of filters"),
    ):
        with pytest.raises(openai.BadRequestError, match=match):
            await client.vector_stores.search("vs_all", query="x", filters=filters)  # type: ignore[arg-type]


async def test_several_queries_give_the_best_passages_of_all(client: openai.AsyncOpenAI) -> None:
    queries = [QUESTION, "When did the fish market open?"]
    single = [await client.vector_stores.search("vs_all", query=query, max_num_results=3) for query in queries]
    both = await client.vector_stores.search("vs_all", query=queries, max_num_results=4, rewrite_query=True)
    texts = [item.content[0].text for item in both.data]
    assert len(texts) == len(set(texts)) <= 4
    assert {page.data[0].content[0].text for page in single} <= set(texts)
    assert [item.score for item in both.data] == sorted((item.score for item in both.data), reverse=True)
    high = await client.vector_stores.search("vs_all", query=QUESTION, ranking_options={"score_threshold": 0.99})
    assert all(item.score >= 0.99 for item in high.data)
    for wrong, match in (
        ({"max_num_results": 51}, "50"),
        ({"query": []}, "query"),
        ({"query": ["x"] * 11}, "10"),
        ({"query": "x" * 8001}, "8000"),
        ({"ranking_options": {"ranker": "unknown"}}, "unknown reranker"),
        ({"ranking_options": {"score_threshold": 2}}, "score_threshold"),
    ):
        with pytest.raises(openai.BadRequestError, match=match):
            await client.vector_stores.search("vs_all", **{"query": "x", **wrong})


async def test_uploads_are_added_and_cut(world: World, writer: openai.AsyncOpenAI) -> None:
    store = await writer.vector_stores.create(name="uploads")
    text = " ".join(f"The zorbal lighthouse was painted for the {number}th time in {1800 + number}." for number in range(60))
    files = [("one.md", text.encode()), ("two.md", b"The zorbal harbour has two cranes.")]
    batch = await writer.vector_stores.file_batches.upload_and_poll(store.id, files=files, poll_interval_ms=50)
    assert (batch.status, batch.file_counts.completed, batch.file_counts.total) == ("completed", 2, 2)
    members = [file.id async for file in writer.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)]
    names = {(await writer.files.retrieve(id)).filename: id for id in members}
    assert names.keys() == {"one.md", "two.md"}

    cut = await writer.vector_stores.files.create_and_poll(
        names["one.md"],
        vector_store_id=store.id,
        attributes={"colour": "green", "year": 1931, "lit": True},
        chunking_strategy={"type": "static", "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 0}},
        poll_interval_ms=50,
    )
    assert (cut.status, cut.attributes) == ("completed", {"colour": "green", "year": 1931, "lit": True})
    document = await world.alpha.data("GET", f"/documents/{_dashed(names['one.md'])}")
    assert document["chunk_count"] > 7
    changed = await writer.vector_stores.files.update(
        names["one.md"],
        vector_store_id=store.id,
        attributes={"colour": None, "year": 1932},  # type: ignore[dict-item]
    )
    assert changed.attributes == {"year": 1932, "lit": True}
    for attributes, match in (({"x": "y" * 513}, "512"), ({str(n): n for n in range(17)}, "16"), ({"k" * 65: 1}, "64")):
        with pytest.raises(openai.BadRequestError, match=match):
            await writer.vector_stores.files.update(names["one.md"], vector_store_id=store.id, attributes=attributes)
    with pytest.raises(openai.BadRequestError, match="chunk_size"):
        await writer.vector_stores.files.create(
            store.id,
            file_id=names["two.md"],
            chunking_strategy={"type": "static", "static": {"max_chunk_size_tokens": 1, "chunk_overlap_tokens": 0}},
        )

    for id in members:  # a deleted file leaves its stores
        await writer.files.delete(id)
    assert (await writer.vector_stores.retrieve(store.id)).file_counts.total == 0
    with pytest.raises(openai.NotFoundError, match=batch.id):
        await writer.vector_stores.file_batches.retrieve(batch.id, vector_store_id=store.id)
    await writer.vector_stores.delete(store.id)


def _dashed(file_id: str) -> str:
    digits = file_id.removeprefix("file-")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


async def test_stores_are_listed_in_pages(client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    created = [(await writer.vector_stores.create(name=f"store {number}")).id for number in range(3)]
    for order, expected in (("asc", created), ("desc", created[::-1])):
        for limit in (1, 2, 100):
            listed = [store.id async for store in client.vector_stores.list(limit=limit, order=order)]  # type: ignore[arg-type]
            assert listed == ["vs_all", *expected]
    for id in created:
        await writer.vector_stores.delete(id)


async def test_refusals(world: World, client: openai.AsyncOpenAI, writer: openai.AsyncOpenAI) -> None:
    tide, foreign = file_of(world, "tide"), file_of(world, "tide", "beta")
    store = await writer.vector_stores.create(name="mine", file_ids=[tide])
    with pytest.raises(openai.PermissionDeniedError):
        await client.vector_stores.create(name="x")
    unknown: tuple[Any, ...] = (
        writer.vector_stores.create(name="x", file_ids=[tide, foreign]),
        writer.vector_stores.files.create(store.id, file_id=foreign),
        writer.vector_stores.files.create("vs_all", file_id=foreign),
        writer.vector_stores.file_batches.create(store.id, file_ids=[tide, foreign]),
        writer.vector_stores.files.retrieve(foreign, vector_store_id="vs_all"),
        writer.vector_stores.files.delete(foreign, vector_store_id=store.id),
    )
    for call in unknown:
        with pytest.raises(openai.NotFoundError, match=foreign):
            await call
    assert [item.name async for item in client.vector_stores.list()] == ["All documents", "mine"]
    assert (await client.vector_stores.retrieve(store.id)).file_counts.total == 1
    expiry: Any = {"anchor": "last_active_at", "days": 1}
    calls: tuple[tuple[Any, str], ...] = (
        (writer.vector_stores.create(name="x", expires_after=expiry), "do not expire"),
        (writer.vector_stores.update(store.id, expires_after=expiry), "do not expire"),
        (writer.vector_stores.list(before=store.id), "before"),
        (writer.vector_stores.file_batches.create("vs_all", file_ids=[tide]), "has all files"),
        (writer.vector_stores.file_batches.create(store.id), "either"),
        (writer.vector_stores.create(name="n" * 257), "256"),
    )
    for call, match in calls:
        with pytest.raises(openai.BadRequestError, match=match):
            await call
    async with client_for(world, world.beta) as beta:
        foreign_calls: tuple[Any, ...] = (
            beta.vector_stores.retrieve(store.id),
            beta.vector_stores.search(store.id, query=QUESTION),
            beta.vector_stores.files.list(store.id),
            beta.vector_stores.files.create(store.id, file_id=foreign),
            beta.vector_stores.delete(store.id),
        )
        for foreign_call in foreign_calls:
            with pytest.raises(openai.NotFoundError, match=store.id):
                await foreign_call
        assert [item.id async for item in beta.vector_stores.list()] == ["vs_all"]
    await writer.vector_stores.delete(store.id)
