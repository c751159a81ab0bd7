"""Vectors and extractions of a group: the cost of one bad chunk, and an embedder that refuses everything."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_passages import chunk_of

from agentic_rag_backend.domain.document import Chunk, ProcessingOptions, content_hash
from agentic_rag_backend.domain.graph import Extraction
from agentic_rag_backend.domain.location import Location
from agentic_rag_backend.errors import AgenticRagError, ModelInputRefused, ModelRefused, ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.ingestion.isolation.calls import ReadingOptions, WorkerResources, read_file
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.knowledge.extraction.methods import ExtractionMethods
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer

RULES = RuleExtractor()


class FussyEmbedder:
    """Refuses batches with a text that contains one of its words. Counts embedded texts."""

    dimensions = 2

    def __init__(self, *words: str, error: type[AgenticRagError] = ModelInputRefused, fingerprint: str = "fussy") -> None:
        self.words = words
        self.error = error
        self.fingerprint = fingerprint
        self.calls = 0
        self.embedded: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if any(word in text for word in self.words for text in texts):
            raise self.error("HTTP 400")
        self.embedded += texts
        return np.array([[len(text), 1] for text in texts], dtype=np.float32)


class QuietExtractor:
    """Extracts nothing from every chunk, and fails on chunks with one of its words."""

    version = "quiet-1"

    def __init__(self, *words: str, error: Exception | None = None) -> None:
        self.words = words
        self.error = error or ZeroDivisionError("a fault in a rule")

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        if any(word in chunk.text for word in self.words for chunk in chunks):
            raise self.error
        return [Extraction(chunk_id=chunk.id) for chunk in chunks]


def chunks(*texts: str) -> list[Chunk]:
    return [chunk_of(text, f"c{n}", ordinal=n) for n, text in enumerate(texts)]


def computation(embedder: FussyEmbedder, extractor: QuietExtractor | None = None) -> Computation:
    return Computation(embedder=embedder, extraction=ExtractionMethods(extractor or QuietExtractor()))  # type: ignore[arg-type]


@given(bad=st.sets(st.integers(0, 39), max_size=5), size=st.integers(1, 40))
def test_only_refused_chunks_lack_a_vector(bad: set[int], size: int) -> None:
    embedder = FussyEmbedder("poison")
    group = chunks(*(f"{'poison' if n in bad else 'plain'} {n}" for n in range(size)))
    found = asyncio.run(computation(embedder).compute("", group, [f"r{n}" for n in range(size)]))
    assert [item.chunk for item in found] == group
    assert [item.recipe for item in found] == [f"r{n}" for n in range(size)]
    refused = {item.chunk.ordinal for item in found if item.vector is None}
    assert refused == {n for n in bad if n < size}
    for item in found:
        assert [failure.chunk_id for failure in item.failures] == ([item.chunk.id] if item.vector is None else [])
        assert item.vector is None or item.vector[0] == len(item.chunk.text)
    passages = [text for text in embedder.embedded if text != "text"]
    assert sorted(passages) == sorted(chunk.text for chunk in group if chunk.ordinal not in refused), "each is paid for once"
    assert embedder.calls <= 2 + 12 * len(refused)


async def test_an_embedder_that_refuses_everything_is_asked_twice() -> None:
    embedder = FussyEmbedder("")
    with pytest.raises(ModelInputRefused):
        await computation(embedder).compute("", chunks(*"abcdefgh"), list("abcdefgh"))
    assert embedder.calls == 2


@pytest.mark.parametrize("error", [ModelRefused, ModelUnavailable])
async def test_other_failures_are_the_whole_groups(error: type[AgenticRagError]) -> None:
    embedder = FussyEmbedder("poison", error=error)
    with pytest.raises(error):
        await computation(embedder).compute("", chunks("poison", "plain"), ["a", "b"])
    assert embedder.calls == 1


@pytest.mark.parametrize("error", [None, ModelReplyInvalid("no JSON"), ModelInputRefused("too long")])
async def test_a_chunk_whose_extraction_fails_keeps_its_vector(error: Exception | None) -> None:
    found = await computation(FussyEmbedder(), QuietExtractor("poison", error=error)).compute(
        "", chunks("plain", "poison", "plain too"), list("abc")
    )
    assert [bool(item.failures) for item in found] == [False, True, False]
    assert all(item.vector is not None for item in found)
    (failure,) = found[1].failures
    assert (failure.stage, failure.chunk_id) == ("extract", "c1")
    assert failure.code == (error.code if isinstance(error, AgenticRagError) else "extraction_failed")


async def test_an_extractor_whose_model_is_away_is_nobodys_failure() -> None:
    extractor = QuietExtractor("poison", error=ModelUnavailable("away"))
    with pytest.raises(ModelUnavailable):
        await computation(FussyEmbedder(), extractor).compute("", chunks("poison", "plain"), ["a", "b"])


@given(held=st.sets(st.integers(0, 5)), order=st.permutations(range(6)))
def test_the_extraction_of_a_chunk_does_not_depend_on_the_results_on_record(held: set[int], order: list[int]) -> None:
    texts = ("Keller met Brandt.", "Dr Maria Keller left.", "Brandt Ltd agreed.", "IBM stayed.", "Oslo", "It was Maria Keller.")
    group = chunks(*(texts[number] for number in order))
    whole = RULES.extract_document("Minutes", group)
    by_rules = Computation(embedder=FussyEmbedder(), extraction=ExtractionMethods(RULES))
    recipes = {chunk.id: f"r{chunk.id}" for chunk in group}
    found = asyncio.run(by_rules.complete("Minutes", group, recipes, frozenset(f"c{number}" for number in held)))
    assert [item.chunk.ordinal for item in found.prepared] == sorted(set(range(6)) - held)
    both = {each.chunk_id: each for each in (*(item.extraction for item in found.prepared), *found.renewed)}
    assert [both[each.chunk_id] for each in whole] == whole
    assert sorted(both) == sorted(recipes)


async def test_known_extractions_are_completed_like_new_ones() -> None:
    """The relations of the code in a file are added to both."""
    code, options = b"import harbour\n\n\ndef load() -> None:\n    harbour.read()\n", ReadingOptions(ProcessingOptions())
    parsed, group = read_file(WorkerResources(WordPieceTokenizer()), code, "text/x-python", ("t_" + "1" * 32, "d", 1), options)
    recipes = {chunk.id: "r" for chunk in group}
    computed = replace(computation(FussyEmbedder()), extraction=ExtractionMethods(RULES), code=parsed.code)
    known = replace(computation(FussyEmbedder(), QuietExtractor("harbour")), code=parsed.code)
    new = await computed.complete("load.py", group, recipes, frozenset())
    given_before = await known.complete("load.py", group, recipes, frozenset(), RULES.extract_document("load.py", group))
    assert [item.extraction for item in given_before.prepared] == [item.extraction for item in new.prepared]
    assert any(item.extraction.relationships for item in new.prepared)


def test_a_recipe_is_of_all_that_goes_into_a_result() -> None:
    (chunk,) = chunks("some text")
    by = computation(FussyEmbedder())
    recipe = by.make_recipe("Title", chunk)
    elsewhere = Location(start_char=5, end_char=14, start_line=2, end_line=2)
    assert recipe == by.make_recipe("Title", replace(chunk, ordinal=7, version=9, location=elsewhere))
    other_extractor = QuietExtractor()
    other_extractor.version = "quiet-2"
    others = {
        by.make_recipe("Another title", chunk),
        by.make_recipe("Title", replace(chunk, location=replace(chunk.location, headings=("Heading",)))),
        by.make_recipe("Title", replace(chunk, text="other", content_hash=content_hash("other"))),
        by.make_recipe("Title", replace(chunk, id="another occurrence")),
        computation(FussyEmbedder(fingerprint="another")).make_recipe("Title", chunk),
        computation(FussyEmbedder(), other_extractor).make_recipe("Title", chunk),
    }
    assert len(others) == 6
    assert recipe not in others
