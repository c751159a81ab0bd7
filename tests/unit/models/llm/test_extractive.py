"""The extractive model: selected sentences, their order, and refusals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Evidence, ModelRequest
from agentic_rag_backend.models.llm.extractive import ExtractiveModel
from agentic_rag_backend.models.llm.selection import DIRECT_CANDIDATES, THEME_CANDIDATES, read
from agentic_rag_backend.testing.models.vectors import embed_text


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


async def test_a_theme_gets_more_sentences_than_a_fact() -> None:
    texts = [f"Tidal energy at Sund changed the {word} of the coast." for word in ("fishing", "roads", "schools", "taxes")]
    broad = await reply("How did tidal energy change the coast at Sund?", evidence(*texts, theme=True))
    narrow = await reply("When did tidal energy change the coast at Sund?", evidence(*texts, theme=True))
    assert broad.count("[") > narrow.count("[")
    assert narrow.count("[") <= 3


@pytest.mark.parametrize(("question", "most"), [("Where is Sund?", DIRECT_CANDIDATES), ("Why is Sund poor?", THEME_CANDIDATES)])
async def test_one_batch_of_bounded_size_is_embedded(question: str, most: int) -> None:
    embedder = CountingEmbedder()
    long = [" ".join(f"Sentence number {n} of {p} speaks of Sund." for n in range(50)) for p in range(20)]
    request = ModelRequest(prompt="a@1", messages=(), question=question, evidence=evidence(*long))
    await ExtractiveModel(embedder).complete(request)
    assert embedder.batches == [most]


def test_an_account_is_read_from_many_passages() -> None:
    given = evidence(*(" ".join(f"Sund is poor in place {n} of {p}." for n in range(9)) for p in range(10)))
    markers = [candidate.marker for candidate in read("Why is Sund poor?", given).candidates]
    assert max(markers.count(marker) for marker in markers) == 2


def test_headings_rows_and_lists_of_names_are_no_part_of_an_account() -> None:
    present = "Present: Mira Voss (chair), Ola Brandt, Tor Lund, Ada Finch."
    text = f"# Sund in winter\n\n{present}\n\nSUND. The harbour of Sund froze in winter."
    found = read("Why did the harbour of Sund freeze in winter?", evidence(text))
    assert [candidate.text for candidate in found.candidates] == ["The harbour of Sund froze in winter."]


async def test_the_dateline_is_not_taken_for_the_answer() -> None:
    text = "SUND.\n\nThe new quay of Sund was opened on 22 July 2023, late. It has a painted line."
    chosen = await reply("When was the new quay at Sund opened?", evidence(text, title="New quay at Sund opened"))
    assert chosen.startswith("The new quay of Sund was opened on 22 July 2023, late. [1]")


async def test_a_second_hop_is_cited_over_the_name_that_the_first_one_gives() -> None:
    given = (
        Evidence(marker=1, text="The Tidal Array of Sund was designed by Ola Brandt in spring.", title="Tidal Array", score=1.0),
        Evidence(
            marker=2, text="Ola Brandt, a designer, took a degree at the Polytechnic of Calder.", title="Ola Brandt", score=0.3
        ),
        Evidence(
            marker=3, text="Mira Voss, a designer, took a degree at the University of Hestermark.", title="Mira Voss", score=0.3
        ),
    )
    text = await reply("Where did the designer of the Tidal Array of Sund take a degree?", given)
    assert "Ola Brandt, a designer, took a degree at the Polytechnic of Calder. [2]" in text
    assert "[3]" not in text


async def test_a_number_of_something_else_does_not_answer_how_many() -> None:
    given = evidence("The ferry Saint Orrin of Sund was built in 1979 and painted in 2021.")
    assert await reply("How many passengers did the ferry Saint Orrin of Sund carry?", given) == NOT_ANSWERED
    told = evidence("The ferry Saint Orrin of Sund carried 4,100 passengers in that year.")
    assert "4,100" in await reply("How many passengers did the ferry Saint Orrin of Sund carry?", told)


async def test_no_structured_replies() -> None:
    with pytest.raises(ModelReplyInvalid, match="extractive"):
        await ExtractiveModel(CountingEmbedder()).complete(ModelRequest(prompt="x@1", messages=(), schema={"type": "object"}))
