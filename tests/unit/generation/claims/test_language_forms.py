"""Other forms of a word are found without comparing it with each word of the passages."""

from __future__ import annotations

import random

import pytest
from language_answers import CLAIMS, PASSAGES
from language_sets import PASSAGES as OTHER_PASSAGES

from agentic_rag_backend.generation.claims.languages import forms
from agentic_rag_backend.generation.claims.languages.forms import FormIndex
from agentic_rag_backend.generation.claims.languages.lexicon import lexicon_of
from agentic_rag_backend.generation.claims.languages.terms import alike, read_terms, same_name
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage

ENDINGS = lexicon_of("de").endings


def words_of(code: str) -> list[str]:
    texts = (*PASSAGES[code], *OTHER_PASSAGES[code].values(), *(text for kind in CLAIMS[code].values() for _, text in kind))
    return sorted({term.form for text in texts for term in read_terms(text, lexicon_of(code))})


def made_up(count: int) -> list[str]:
    """Return different words of a few syllables, many of which are alike."""
    chance = random.Random(7)
    syllables = ("ba", "ko", "ver", "ung", "schaft", "en", "lich", "te", "mar", "ge")
    found: dict[str, None] = {}
    while len(found) < count:
        found["".join(chance.choices(syllables, k=chance.randint(2, 5)))] = None
    return list(found)


@pytest.mark.parametrize("words", [words_of("de"), words_of("fr"), made_up(400)], ids=["de", "fr", "made up"])
def test_the_index_finds_the_words_that_a_comparison_with_each_finds(words: list[str]) -> None:
    index = FormIndex(words[::2])
    for word in words:
        wanted = {other for other in words[::2] if len(other) >= 4 and alike(word, other)}
        assert {other for other in index.alike_to(word) if len(other) >= 4} == wanted, word
        assert index.names(word, ENDINGS) == any(same_name(word, other, ENDINGS) for other in words[::2]), word


def test_few_words_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each word of a claim was compared with each word of the passages: 44 s for 20,000 words, on the event loop."""
    compared: list[tuple[str, str]] = []

    def counted(one: str, other: str) -> bool:
        compared.append((one, other))
        return alike(one, other)

    monkeypatch.setattr(forms, "alike", counted)
    words = made_up(3_000)
    sentence = "Der Hafen ist nicht alt, und die Stadt war für das Land mit dem Schiff. "
    held = Passage(
        marker=1, chunk_id="c", document_id="d", title="", text=sentence + " ".join(words[:2_900]), start_char=0, score=1.0
    )
    LexicalVerifier([held]).check(Claim(f"Der Hafen ist für das Land und die Stadt mit {' '.join(words[2_900:2_950])}.", (1,)))
    assert 0 < len(compared) < 0.25 * 50 * 2_900


def test_the_number_of_indexed_words_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "MAX_INDEXED", 2)
    index = FormIndex(["hafenamt", "hafenamte", "hafenamtes"])
    assert index.alike_to("hafenamts") == {"hafenamt", "hafenamte"}
    assert index.names("hafenamtes", ENDINGS)
