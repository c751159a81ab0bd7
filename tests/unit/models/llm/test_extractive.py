"""The extractive model: selected sentences, their order, and refusals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Evidence, ModelRequest
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.models.llm.selection import MAX_CANDIDATES, MAX_SENTENCES, read
from agentic_rag_testing.models.vectors import embed_text


class CountingEmbedder:
    fingerprint = "words-512"
    dimensions = 512

    def __init__(self) -> None:
        self.batches: list[int] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(len(texts))
        return np.array([embed_text(text, 512) for text in texts], np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return np.array(embed_text(text, 512), np.float32)

    async def close(self) -> None:
        return None


def evidence(*texts: str, theme: bool = False, title: str = "Sund") -> tuple[Evidence, ...]:
    return tuple(Evidence(marker=n, text=text, title=title, score=1 / n, theme=theme) for n, text in enumerate(texts, 1))


async def reply(question: str, given: tuple[Evidence, ...]) -> str:
    request = ModelRequest(prompt="answer@1", messages=(), question=question, evidence=given)
    return (await ExtractiveModel(CountingEmbedder()).complete(request)).text


async def test_the_sentence_that_answers_is_cited() -> None:
    text = await reply(
        "Who founded the Halden Institute?",
        evidence(
            "Tides are high in spring. The Halden Institute was founded by Mira Voss in 1994. Boats leave at noon.",
            "The harbour of Sund has three piers.",
        ),
    )
    assert text.startswith("The Halden Institute was founded by Mira Voss in 1994. [1]")
    assert "[2]" not in text


async def test_nothing_relevant_is_a_refusal() -> None:
    assert await reply("Who won the 1966 football final?", evidence("Moss grows on northern slopes.")) == NOT_ANSWERED


@pytest.mark.parametrize("given", [(), evidence(""), evidence("   \n ")])
async def test_no_evidence_is_a_refusal(given: tuple[Evidence, ...]) -> None:
    assert await reply("Who founded it?", given) == NOT_ANSWERED


async def test_bracketed_numbers_of_the_source_are_no_markers() -> None:
    text = await reply("What does the Institute measure?", evidence("The Institute measures tides [99] in Sund [3, 4]."))
    assert text == "The Institute measures tides in Sund. [1]"


async def test_a_row_without_a_full_stop_gets_one() -> None:
    assert await reply("What is the depth of Sund?", evidence("Depth of Sund 40 m")) == "Depth of Sund 40 m. [1]"


async def test_an_account_has_several_sentences() -> None:
    words = ("fishing", "roads", "schools", "taxes", "ferries", "rents", "quays")
    texts = [f"Tidal energy at Sund changed the {word} of the coast." for word in words]
    assert 1 < (await reply("How did tidal energy change the coast at Sund?", evidence(*texts))).count("[") <= MAX_SENTENCES


async def test_a_sentence_of_another_document_is_led_to_over_a_name() -> None:
    given = [
        ("The Tidal Array of Sund was delayed because Ola Brandt left in spring.", "Tidal Array", 1.0),
        ("Ola Brandt joined the Polytechnic of Calder, which delayed the array.", "Ola Brandt", 0.3),
        ("Mira Voss joined the University of Hestermark, which delayed the array.", "Mira Voss", 0.3),
    ]
    passages = [Evidence(marker=n, text=text, title=title, score=score) for n, (text, title, score) in enumerate(given, 1)]
    text = await reply("Why was the Tidal Array of Sund delayed?", tuple(passages))
    assert "[2]" in text
    assert "[3]" not in text.partition("[2]")[0]


async def test_one_batch_of_bounded_size_is_embedded() -> None:
    embedder = CountingEmbedder()
    long = [" ".join(f"Sentence number {n} of {p} speaks of Sund." for n in range(50)) for p in range(20)]
    request = ModelRequest(prompt="a@1", messages=(), question="Why is Sund poor?", evidence=evidence(*long))
    await ExtractiveModel(embedder).complete(request)
    assert embedder.batches == [MAX_CANDIDATES]


def test_an_account_is_read_from_many_passages() -> None:
    given = evidence(*(" ".join(f"Sund is poor in place {n} of {p}." for n in range(9)) for p in range(10)))
    markers = [candidate.marker for candidate in read("Why is Sund poor?", given).candidates]
    assert max(markers.count(marker) for marker in markers) == 2


def test_headings_rows_and_lists_of_names_are_no_part_of_an_account() -> None:
    present = "Present: Mira Voss (chair), Ola Brandt, Tor Lund, Ada Finch."
    text = f"# Sund in winter\n\n{present}\n\nSUND. The harbour of Sund froze in winter."
    found = read("Why did the harbour of Sund freeze in winter?", evidence(text))
    assert [candidate.text for candidate in found.candidates] == ["The harbour of Sund froze in winter."]


async def test_no_structured_replies() -> None:
    with pytest.raises(ModelReplyInvalid, match="extractive"):
        await ExtractiveModel(CountingEmbedder()).complete(ModelRequest(prompt="x@1", messages=(), schema={"type": "object"}))
