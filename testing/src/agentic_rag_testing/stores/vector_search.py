"""Contract of every vector store for searches: legs, scores, order, limits and filters."""

from __future__ import annotations

import random
from dataclasses import replace

from agentic_rag_backend.domain.filters import Comparison, matches_filter
from agentic_rag_backend.domain.tenant import Access, TenantId
from agentic_rag_backend.stores.vector.base import (
    Legs,
    NodeKind,
    VectorPoint,
    VectorSearch,
)
from agentic_rag_testing.stores.vector_samples import (
    CHUNKS,
    NODES,
    A,
    B,
    Check,
    OpenStore,
    chunk,
    cosine,
    find,
    ids,
    node,
    point_id,
    random_chunk,
    random_filter,
    refused,
    vector,
)


async def limits_are_bounded(open_store: OpenStore) -> None:
    """A limit applies to each leg. Limits outside 1–10,000 are refused."""
    async with open_store("limits") as store:
        await store.upsert(A, CHUNKS, [chunk(number) for number in range(30)])
        for limit in (0, -1, 10_001):
            await refused(find(store, A, limit=limit))
        for limit, found in ((1, 1), (29, 29), (10_000, 30)):
            legs = await find(store, A, limit=limit)
            assert len(legs.dense) == len(legs.sparse) == found


async def ties_are_ordered_by_id(open_store: OpenStore) -> None:
    """Of many equal scores, the smallest ids are returned, in order, after all better scores."""
    async with open_store("ties") as store:
        equals = [chunk(number, dense=vector(1)) for number in range(2, 90)]
        better = chunk(200, "harbour night harbour night", dense=vector(1) * 3)
        await store.upsert(A, CHUNKS, [*reversed(equals), better])
        legs = await find(store, A, limit=7)
        smallest = sorted(point.id for point in equals)
        assert ids(legs.sparse) == [better.id, *smallest[:6]]
        assert ids(legs.dense) == sorted([*smallest, better.id])[:7]


async def legs_are_separate_and_best_first(open_store: OpenStore) -> None:
    """Cosine and BM25 scores, best first, in separate legs. Several searches are answered in order."""
    async with open_store("legs") as store:
        texts = ["harbour harbour lights", "harbour lights and a long way of many words to the sea", "an orchard"]
        await store.upsert(A, CHUNKS, [chunk(number, text) for number, text in enumerate(texts)])
        both, dense, sparse, neither = await store.search(
            A,
            CHUNKS,
            [
                VectorSearch(kind=NodeKind.CHUNK, text="the harbours", dense=vector(1)),
                VectorSearch(kind=NodeKind.CHUNK, dense=vector(1)),
                VectorSearch(kind=NodeKind.CHUNK, text="the harbours"),
                VectorSearch(kind=NodeKind.CHUNK, text="of the and"),
            ],
        )
        assert (both.dense, both.sparse) == (dense.dense, sparse.sparse)
        assert neither == Legs()
        assert dense.sparse == sparse.dense == ()
        assert ids(both.sparse) == [point_id(0), point_id(1)]
        assert all(scored.score > 0 for scored in both.sparse)
        for scored in both.dense:
            number = next(number for number in range(3) if point_id(number) == scored.id)
            assert abs(scored.score - cosine(vector(1), vector(number))) < 1e-4
        assert [scored.score for scored in both.dense] == sorted((scored.score for scored in both.dense), reverse=True)
        assert store.terms("The Harbours") == store.terms("harbour") != store.terms("orchard")
        assert store.terms("of the and") == frozenset()
        assert await store.search(A, CHUNKS, []) == []


async def scores_use_only_texts_of_the_tenant(open_store: OpenStore) -> None:
    """Scores and order are equal to the last bit with and without another tenant, in any order of writing."""
    choose = random.Random(7)  # noqa: S311 - samples, not secrets
    words = [f"word{number}q" for number in range(120)]
    own = [chunk(number, " ".join(choose.choices(words[:60], k=choose.randint(5, 40)))) for number in range(30)]
    others = [chunk(number, " ".join(choose.choices(words, k=30))) for number in range(15, 45)]
    searches = [
        VectorSearch(kind=NodeKind.CHUNK, text=" ".join(choose.choices(words, k=9)), dense=vector(n), limit=20) for n in range(5)
    ]
    found = []
    for place, order in enumerate(("A", "AB", "BA", "BAD")):
        async with open_store(f"idf{place}") as store:
            for step in order:
                if step == "D":
                    await store.delete_tenant(B)
                else:
                    await store.upsert(A if step == "A" else B, CHUNKS, own if step == "A" else others)
            found.append(await store.search(A, CHUNKS, searches))
    assert found[0] == found[1] == found[2] == found[3]


async def scores_of_a_restricted_scope_use_only_its_texts(open_store: OpenStore) -> None:
    """Legs of a key's scope are, to the last bit, those of a store that has only the points that its filter selects."""
    choose = random.Random(8)  # noqa: S311 - samples, not secrets
    words = [f"word{number}q" for number in range(60)]
    texts = [" ".join(choose.choices(words, k=choose.randint(5, 30))) for _ in range(40)]
    points = [chunk(number, text, metadata={"team": number % 2}) for number, text in enumerate(texts)]
    scope = TenantId(A.value, Access('{"team": 1}', Comparison("team", "eq", 1)))
    searches = [
        VectorSearch(kind=NodeKind.CHUNK, text=" ".join(choose.choices(words, k=9)), dense=vector(n), limit=30) for n in range(5)
    ]
    found = []
    for place, kept in (("all", points), ("readable", [point for point in points if point.metadata["team"] == 1])):
        async with open_store(f"restricted{place}") as store:
            await store.upsert(A, CHUNKS, kept)
            found.append(await store.search(scope, CHUNKS, searches))
            if place == "all":
                everything = await store.search(A, CHUNKS, searches)
                # A value that is new to the store, in a comparison that reads all values of the field.
                later = TenantId(A.value, Access('{"team": {"gt": 1}}', Comparison("team", "gt", 1)))
                assert await store.search(later, CHUNKS, searches[:1]) == [Legs()]
                await store.upsert(A, CHUNKS, [chunk(90, texts[0], metadata={"team": 2})])
                assert ids((await store.search(later, CHUNKS, searches[:1]))[0].dense) == [point_id(90)]
                await store.delete(A, CHUNKS, [point_id(90)])
                assert await store.search(A, CHUNKS, searches) == everything
    assert found[0] == found[1] != everything


async def frequencies_use_only_texts_of_the_kind(open_store: OpenStore) -> None:
    """Points of another kind, or another generation, change no score."""
    async with open_store("frequencies") as store:
        await store.upsert(A, NODES, [node(n, NodeKind.COMMUNITY, f"harbour word{n}q", generation=1) for n in range(9)])
        before = await find(store, A, NODES, kind=NodeKind.COMMUNITY, generation=1, text="harbour word3q")
        await store.upsert(A, NODES, [node(n, NodeKind.FACT, "harbour", dense=None) for n in range(20, 40)])
        await store.upsert(A, NODES, [node(n, NodeKind.COMMUNITY, "word3q", generation=2) for n in range(50, 70)])
        assert await find(store, A, NODES, kind=NodeKind.COMMUNITY, generation=1, text="harbour word3q") == before


async def filters_match_as_documented(open_store: OpenStore) -> None:
    """A filter selects exactly the points that `domain.filters.matches_filter` does, also after writes between searches."""
    choose = random.Random(11)  # noqa: S311 - samples, not secrets
    names = ["year", "a.b", 'quo"te[0]', "confidence", "ключ", "title", "document_id", "key", "unknown"]
    held: dict[str, VectorPoint] = {}
    async with open_store("filters") as store:
        for round_number in range(4):
            numbers = range(round_number * 8, round_number * 8 + 16)
            points = [random_chunk(choose, number, names[:5]) for number in numbers]
            held.update((point.id, point) for point in points)
            await store.upsert(A, CHUNKS, points)
            await store.upsert(B, CHUNKS, [replace(point, metadata={"year": 99, "a.b": "zzz"}) for point in points])
            filters = [random_filter(choose, names, [*held, point_id(900)]) for _ in range(80)]
            searches = [
                VectorSearch(kind=NodeKind.CHUNK, text="harbour", dense=vector(1), limit=100, filter=filter) for filter in filters
            ]
            for filter, legs in zip(filters, await store.search(A, CHUNKS, searches), strict=True):
                expected = {id for id, point in held.items() if matches_filter(filter, point.fields, id)}
                assert set(ids(legs.dense)) == set(ids(legs.sparse)) == expected, filter
        await refused(find(store, A, filter=Comparison("year", "like", 1)))
        await refused(store.upsert(A, CHUNKS, [chunk(900), chunk(901, metadata={"when": object()})]))
        assert await store.count(A, CHUNKS) == len(held)


CHECKS: tuple[Check, ...] = (
    limits_are_bounded,
    ties_are_ordered_by_id,
    legs_are_separate_and_best_first,
    scores_use_only_texts_of_the_tenant,
    scores_of_a_restricted_scope_use_only_its_texts,
    frequencies_use_only_texts_of_the_kind,
    filters_match_as_documented,
)
