"""The evidence of a prompt: its budget, duplicates, surroundings and order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from sample_passages import passage_of as passage_at
from sample_passages import visible_of

from agentic_rag_backend.answering.evidence.context import (
    LEAST_EVIDENCE,
    Context,
    Passage,
    PromptBudget,
    build_context,
    halve_context,
    passage_of,
    size_tokens,
    turn_tokens,
)
from agentic_rag_backend.answering.evidence.expansion import AGENTIC, MAX_WIDENED, read_around, widen_context
from agentic_rag_backend.answering.rendering import at_the_ends, render_messages
from agentic_rag_backend.domain.document import ChunkSpan, ParentPassage, VisibleChunk
from agentic_rag_backend.domain.filters import ChunkSet, Comparison, Filter, LinkCondition, Not
from agentic_rag_backend.domain.location import Region
from agentic_rag_backend.domain.query import Hit, Query, Retrieval, Trace
from agentic_rag_backend.domain.tenant import Tenant, TenantId, TenantState
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.llm.base import UNKNOWN_WINDOW, Message, context_window
from agentic_rag_backend.prompts import built_in

TENANT = Tenant(TenantId.new(), "t", TenantState.ACTIVE, 1, datetime(2030, 1, 1, tzinfo=UTC))
QUERY = Query(tenant=TENANT, text="What was built?")
SENTENCES = ("The quay was built in 2023.", "It is 210 metres long.", "The pier fell in the storm.", "Nobody was hurt at all.")


def chunk(
    id: str, text: str, *, document: str = "d", start: int = 0, headings: tuple[str, ...] = (), category: str = ""
) -> VisibleChunk:
    metadata = {"category": category} if category else {}
    return visible_of(text, id, title="Title", metadata=metadata, document_id=document, start=start, headings=headings)


def found(*chunks: VisibleChunk) -> Retrieval:
    hits = tuple(Hit(visible=visible, score=1 / place) for place, visible in enumerate(chunks, 1))
    return Retrieval(hits=hits, trace=Trace(strategy="hybrid"))


def texts_of(*chunks: VisibleChunk, budget_tokens: int = 3000) -> list[str]:
    return [passage.text for passage in build_context(found(*chunks), {}, budget_tokens=budget_tokens).passages]


class Documents:
    """The two reads of the catalogue that widening needs."""

    def __init__(self, *chunks: VisibleChunk) -> None:
        self.held = {visible.chunk.id: visible for visible in chunks}
        self.reads = 0

    async def visible_chunk_ids(self, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
        assert tenant == TENANT.id
        self.reads += 1
        every = self.held.values()
        return {id: [one.chunk.id for one in every if one.chunk.document_id == id] for id in document_ids}

    async def hydrate(self, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, VisibleChunk]:
        assert tenant == TENANT.id
        self.reads += 1
        return {id: self.held[id] for id in chunk_ids if id in self.held}

    async def passages(self, tenant: TenantId, spans: Sequence[ChunkSpan]) -> dict[ChunkSpan, ParentPassage]:
        assert tenant == TENANT.id
        passages = {}
        for span in spans:
            chunks = [one.chunk for one in self.held.values() if span.first <= one.chunk.ordinal <= span.last]
            text = " ".join(chunk.text for chunk in chunks)
            passages[span] = ParentPassage.of_chunks(chunks, text, chunks[0].location.start_char)
        return passages


def row(*sections: str) -> list[VisibleChunk]:
    """Return the chunks of one document, each a sentence, in the given sections."""
    chunks, start = [], 0
    for index, (section, text) in enumerate(zip(sections, SENTENCES, strict=False)):
        chunks.append(chunk(f"c{index}", text, start=start, headings=(section,)))
        start += len(text) + 1
    return chunks


async def widen(context: Context, documents: Documents, *, budget_tokens: int = 3000, filters: Filter | None = None) -> Context:
    return await widen_context(context, replace(QUERY, filters=filters), documents, budget_tokens=budget_tokens)  # type: ignore[arg-type]


# --- duplicates and budget


def test_the_same_text_of_two_documents_is_one_passage() -> None:
    same = "The  QUAY was built\nin 2023!"
    assert texts_of(chunk("a", SENTENCES[0]), chunk("b", same, document="e")) == [SENTENCES[0]]
    other = "The quay was built in 2024."
    assert texts_of(chunk("a", SENTENCES[0]), chunk("b", other, document="e")) == [SENTENCES[0], other]


def test_the_overlap_of_two_chunks_is_in_one_passage() -> None:
    text = " ".join(SENTENCES)
    first_end, second_start = text.index(" Nobody"), text.index("The pier")
    first, second = chunk("a", text[:first_end]), chunk("b", text[second_start:], start=second_start)
    for better, worse in ((first, second), (second, first)):
        passages = build_context(found(better, worse), {}, budget_tokens=3000).passages
        assert passages[0].text == better.chunk.text
        assert " ".join(passage.text for passage in passages).count("The pier fell") == 1
        assert all(text[passage.start_char : passage.start_char + len(passage.text)] == passage.text for passage in passages)
        assert {passage.chunk_id for passage in passages} == {"a", "b"}


def test_the_budget_counts_tokens_by_script() -> None:
    chinese = [chunk(str(number), "人" * 100 + str(number), document=str(number)) for number in range(9)]
    kept = build_context(found(*chinese), {}, budget_tokens=500).passages
    assert size_tokens(kept) <= 500
    assert len(kept) == 3
    assert estimate_tokens(chinese[0].chunk.text) > 100


def test_the_evidence_fits_the_window() -> None:
    prompt, history = built_in("answer"), [Message("user", "word " * 400)]
    wide = PromptBudget(128_000, 1024, 3000).evidence_tokens(prompt, "Why?", history=history)
    small = PromptBudget(4096, 1024, 3000).evidence_tokens(prompt, "Why?", history=history)
    assert wide == 3000
    assert LEAST_EVIDENCE < small < 4096 - 1024 - 400
    assert PromptBudget(1024, 1024, 3000).evidence_tokens(prompt, "Why?", history=history) == LEAST_EVIDENCE
    assert PromptBudget(4096, 1024, 3000).evidence_tokens(prompt, "Why?") > small
    assert turn_tokens(4096) == 512
    assert turn_tokens(1_000_000) == 2000


def test_windows_are_found_by_name() -> None:
    assert context_window("gpt-4o-mini") == 128_000
    assert context_window("gpt-4-0613") == 8_192
    assert context_window("openai/gpt-4.1-mini") == 1_047_576
    assert context_window("meta-llama/Meta-Llama-3.1-8B-Instruct") == 128_000
    assert context_window("llama3") == 8_192
    assert context_window("something-new") == UNKNOWN_WINDOW
    assert context_window("gpt-4o-mini", 32_000) == 32_000


# --- surroundings


async def test_a_passage_gets_the_neighbours_of_its_section() -> None:
    chunks = row("A", "A", "A", "B")
    context = build_context(found(chunks[1]), {}, budget_tokens=3000)
    wide = await widen(context, Documents(*chunks))
    assert [(passage.marker, passage.text, passage.beside) for passage in wide.passages] == [
        (1, SENTENCES[1], None),
        (2, SENTENCES[0], 1),
        (3, SENTENCES[2], 1),
    ]
    assert (await widen(build_context(found(chunks[2]), {}, budget_tokens=3000), Documents(*chunks))).passages[1:] != ()
    alone = await widen(build_context(found(chunks[3]), {}, budget_tokens=3000), Documents(*chunks))
    assert len(alone.passages) == 1


async def test_a_neighbour_that_the_filter_excludes_is_not_read() -> None:
    inside, outside = chunk("a", SENTENCES[0], category="minutes"), chunk("b", SENTENCES[1], start=28)
    context = build_context(found(inside), {}, budget_tokens=3000)
    wide = await widen(context, Documents(inside, outside), filters=Comparison("category", "eq", "minutes"))
    assert wide == context


async def test_the_budget_bounds_the_surroundings() -> None:
    chunks = row("A", "A", "A")
    context = build_context(found(chunks[1]), {}, budget_tokens=3000)
    for budget in range(size_tokens(context.passages), 120, 4):
        assert size_tokens((await widen(context, Documents(*chunks), budget_tokens=budget)).passages) <= budget
    full = Documents(*chunks)
    assert await widen(context, full, budget_tokens=size_tokens(context.passages)) == context
    assert full.reads == 0


async def test_a_sentence_of_a_finding_becomes_its_chunk() -> None:
    whole = chunk("a", " ".join(SENTENCES))
    sentence = replace(passage_of(whole, 0, len(SENTENCES[0]), 0.5, theme=True), marker=1)
    wide = await widen(Context((sentence,)), Documents(whole))
    assert [(passage.text, passage.theme, passage.marker) for passage in wide.passages] == [(whole.chunk.text, True, 1)]
    small = size_tokens([sentence]) + 4
    assert (await widen(Context((sentence,)), Documents(whole), budget_tokens=small)).passages == (sentence,)


async def test_overlapping_neighbours_are_cut() -> None:
    text = " ".join(SENTENCES)
    middle = text.index(" The pier")
    first, second = chunk("a", text[: middle + 1 + len(SENTENCES[2])]), chunk("b", text[middle + 1 :], start=middle + 1)
    for own, other in ((first, second), (second, first)):
        wide = await widen(build_context(found(own), {}, budget_tokens=3000), Documents(first, second))
        added = wide.passages[1]
        assert text[added.start_char : added.start_char + len(added.text)] == added.text
        assert "The pier" not in added.text
        assert added.chunk_id == other.chunk.id


async def test_only_the_best_passages_are_widened() -> None:
    chunks = [
        chunk(f"{name}{at}", f"{name} {at} {SENTENCES[at]}", document=name, start=60 * at) for name in "pqrstuv" for at in (0, 1)
    ]
    wide = await widen(build_context(found(*chunks[::2]), {}, budget_tokens=3000), Documents(*chunks))
    assert sum(passage.beside is not None for passage in wide.passages) == MAX_WIDENED


def test_half_of_a_context_has_half_of_its_text() -> None:
    context = build_context(
        found(*(chunk(str(at), sentence, document=str(at)) for at, sentence in enumerate(SENTENCES))), {}, budget_tokens=300
    )
    assert [one.text for one in halve_context(context).passages] == [SENTENCES[0]]
    (whole,) = build_context(found(chunk("a", " ".join(SENTENCES))), {}, budget_tokens=300).passages
    (half,) = halve_context(Context((whole,))).passages
    assert half == replace(whole, text=" ".join(SENTENCES[:2]))
    (quarter,) = halve_context(Context((replace(whole, text=SENTENCES[0]),))).passages
    assert quarter.text == SENTENCES[0][: len(SENTENCES[0]) // 2], "a sentence is cut in the middle"


# --- order


def passage(marker: int, *, beside: int | None = None, start: int = 0) -> Passage:
    return passage_at("x", marker, "T", start=start, document_id="d", score=1 / marker, beside=beside)


def test_the_best_evidence_is_at_the_ends() -> None:
    assert [one.marker for one in at_the_ends([passage(number) for number in range(1, 6)])] == [1, 3, 5, 4, 2]
    assert at_the_ends([]) == []
    passages = [passage(1, start=50), passage(2), passage(3, beside=1, start=10), passage(4, beside=1, start=90)]
    assert [one.marker for one in at_the_ends(passages)] == [3, 1, 4, 2]


def test_markers_of_the_prompt_are_those_of_the_context() -> None:
    context = Context(tuple(passage(number) for number in (1, 2, 3)))
    user = render_messages(built_in("answer"), "Why?", context)[-1].content
    assert [user.index(f'<passage id="{marker}"') for marker in (1, 3, 2)] == sorted(
        user.index(f'<passage id="{marker}"') for marker in (1, 2, 3)
    )


def parent_of(*chunks: VisibleChunk) -> ParentPassage:
    """Return the parent of chunks that follow one another with a blank between them."""
    own = tuple(visible.chunk for visible in chunks)
    text = " ".join(each.text for each in own)
    return ParentPassage(id="s", start_char=own[0].location.start_char, end_char=own[-1].location.end_char, text=text, chunks=own)


async def test_the_parent_around_a_chunk_is_read_and_cited_by_the_chunk_that_holds_the_quote() -> None:
    chunks = row("A", "A", "A", "B")
    parent = parent_of(*chunks[:3])
    retrieval = found(chunks[1], chunks[3])
    retrieval = replace(retrieval, hits=(replace(retrieval.hits[0], parent=parent), retrieval.hits[1]))
    context = build_context(retrieval, {}, budget_tokens=3000)
    first = context.passages[0]
    assert first.text == " ".join(SENTENCES[:3])
    assert (first.chunk_id, first.start_char) == (chunks[1].chunk.id, chunks[0].chunk.location.start_char)
    places = [first.start_char + first.text.index(sentence) for sentence in SENTENCES[:3]]
    assert [first.chunk_at(place) for place in places] == [visible.chunk.id for visible in chunks[:3]]
    assert first.chunk_ids == {visible.chunk.id for visible in chunks[:3]}
    wide = await widen(context, Documents(*chunks))
    assert wide.passages == context.passages, "a parent has no neighbours, and its chunks are not added again"


def test_regions_of_a_parent_are_those_of_its_chunks() -> None:
    first, second = (chunk(name, text, start=start) for name, text, start in (("a", "One two", 0), ("b", "two three", 4)))
    regions = [(Region(0, 7, page=1),), (Region(4, 7, page=1), Region(8, 13, page=2))]
    located = [
        replace(each, chunk=replace(each.chunk, location=replace(each.chunk.location, regions=own)))
        for each, own in zip((first, second), regions, strict=True)
    ]
    parent = ParentPassage(id="s", start_char=0, end_char=13, text="One two three", chunks=tuple(each.chunk for each in located))
    retrieval = found(located[1])
    hit = replace(retrieval.hits[0], parent=parent)
    (passage,) = build_context(replace(retrieval, hits=(hit,)), {}, budget_tokens=3000).passages
    assert passage.regions == (Region(0, 7, page=1), Region(8, 13, page=2))


async def test_the_best_results_are_read_with_the_neighbours_that_the_query_may_show() -> None:
    chunks = [replace(one, chunk=replace(one.chunk, ordinal=number)) for number, one in enumerate(row("A", "A", "B", "B"))]
    documents = Documents(*chunks)

    async def read(*hits: VisibleChunk, strategy: str = "hybrid", hidden: tuple[str, ...] = ()) -> list[str]:
        filters = Not(ChunkSet(frozenset(hidden), LinkCondition("entity", "in")))
        retrieval = replace(found(*hits), trace=Trace(strategy=strategy))
        wider = await read_around(retrieval, replace(QUERY, filters=filters), documents)  # type: ignore[arg-type]
        return [hit.parent.text if hit.parent is not None else hit.visible.chunk.text for hit in wider.hits]

    assert await read(chunks[1]) == [" ".join(SENTENCES[:3])]
    assert await read(chunks[0], chunks[2]) == [" ".join(SENTENCES)]
    assert await read(chunks[1], hidden=("c2",)) == [" ".join(SENTENCES[:2])]
    assert await read(chunks[0], chunks[2], hidden=("c1",)) == [SENTENCES[0], SENTENCES[2]]
    assert await read(chunks[1], strategy=AGENTIC) == [SENTENCES[1]]
