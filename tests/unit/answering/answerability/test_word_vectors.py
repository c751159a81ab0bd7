from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hashed_words import HashedWords
from numpy.typing import NDArray

from agentic_rag_backend.answering.answerability.evidence import PassageText
from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.answerability.selection import MAX_CANDIDATES
from agentic_rag_backend.answering.answerability.word_vectors import CachedWordEncoder, Spans
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.fairness import act_for
from agentic_rag_backend.models.embedding.base import TextVectors
from agentic_rag_backend.retrieval.caching import ENTRY_BYTES

A, B = TenantId("t_" + "a" * 32), TenantId("t_" + "b" * 32)
PASSAGES = [
    PassageText("Harbour", f"The harbour of {town} was dug in {1800 + number}. It has {number + 2} cranes.", 1.0)
    for number, town in enumerate(("Kelm", "Orsa", "Brack", "Tarn", "Ulsk", "Vard", "Wey"))
]
FIRST, OTHER = "When was the harbour of Kelm dug?", "When was the harbour of Orsa dug?"
MIB = 2**20


class Recording(HashedWords):
    """Encoder that records the texts whose words it encodes."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.passages: list[str] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.passages += texts
        return await super().embed(texts)

    async def encode_words(self, texts: Sequence[str], spans: Sequence[Spans]) -> list[TextVectors]:
        self.texts += texts
        return [
            TextVectors(self._vector(text), np.stack([self._vector(text[start:end]) for start, end in words]))
            for text, words in zip(texts, spans, strict=True)
        ]


@pytest.fixture
def recording() -> Recording:
    return Recording()


async def test_an_answer_encodes_only_sentences_that_no_earlier_one_compared(recording: Recording) -> None:
    act_for(A)
    judge = AnswerJudge(CachedWordEncoder(recording, max_bytes=MIB))
    first = await judge.judge(FIRST, PASSAGES)
    assert len(recording.texts) == len(set(recording.texts)) == MAX_CANDIDATES + 1
    assert await judge.judge(FIRST, PASSAGES) == first == await AnswerJudge(Recording()).judge(FIRST, PASSAGES)
    assert len(recording.texts) == MAX_CANDIDATES + 1, "the same question encodes nothing"
    await judge.judge(OTHER, PASSAGES)
    later = recording.texts[MAX_CANDIDATES + 1 :]
    assert later[0] == OTHER
    assert len(recording.texts) == len(set(recording.texts)), "no sentence is encoded twice"


async def test_an_account_embeds_only_passages_that_no_earlier_one_compared(recording: Recording) -> None:
    act_for(A)
    judge = AnswerJudge(CachedWordEncoder(recording, max_bytes=MIB))
    nearness = await judge.nearness(FIRST, PASSAGES[:3])
    assert nearness == await judge.nearness(FIRST, PASSAGES[:3]) == await AnswerJudge(Recording()).nearness(FIRST, PASSAGES[:3])
    assert len(recording.passages) == 4
    await judge.nearness(OTHER, PASSAGES[:5])
    assert len(recording.passages) == len(set(recording.passages)) == 7


async def test_texts_keep_their_order_and_are_known_by_their_words(recording: Recording) -> None:
    act_for(A)
    cached = CachedWordEncoder(recording, max_bytes=MIB)
    await cached.encode_words(["red barge"], [[(0, 3)]])
    texts, spans = ["blue buoy", "red barge", "red barge"], [[(0, 4)], [(0, 3)], [(4, 9)]]
    expected = await Recording().encode_words(texts, spans)
    for vectors, own in zip(await cached.encode_words(texts, spans), expected, strict=True):
        assert np.array_equal(vectors.whole, own.whole)
        assert np.array_equal(vectors.words, own.words)
        assert not vectors.words.flags.writeable
    assert recording.texts == ["red barge", "blue buoy", "red barge"], "other words of a text have other vectors"


async def test_a_tenant_does_not_profit_from_the_sentences_of_another(recording: Recording) -> None:
    cached = CachedWordEncoder(recording, max_bytes=MIB)
    for tenant in (A, B, A):
        act_for(tenant)
        await cached.encode_words(["red barge"], [[(0, 3)]])
    assert len(recording.texts) == 2
    cached.entries.forget(A)
    await cached.encode_words(["red barge"], [[(0, 3)]])
    assert len(recording.texts) == 3


async def test_without_a_tenant_or_memory_nothing_is_kept(recording: Recording) -> None:
    cached, off = CachedWordEncoder(recording, max_bytes=MIB), CachedWordEncoder(recording, max_bytes=0)
    for _ in range(2):
        await cached.encode_words(["red barge"], [[(0, 3)]])
    act_for(A)
    for _ in range(2):
        await off.encode_words(["red barge"], [[(0, 3)]])
    assert len(recording.texts) == 4
    assert cached.entries.size_bytes == off.entries.size_bytes == 0


async def test_memory_is_bounded_and_the_least_recently_used_sentence_leaves(recording: Recording) -> None:
    act_for(A)
    entry = 2 * 64 * 4 + ENTRY_BYTES
    cached = CachedWordEncoder(recording, max_bytes=4 * entry)
    texts = ["one", "two", "three", "four"]
    for text in (*texts, "one", "five", "one", "two"):
        await cached.encode_words([text], [[(0, 3)]])
        assert cached.entries.size_bytes <= 4 * entry
    assert recording.texts == [*texts, "five", "two"]
