"""Words of several languages, and of scripts without spaces, in one collection."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from language_sets import PASSAGES, QUESTIONS

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.stores.vector.base import Collection, NodeKind, VectorPoint, VectorSearch
from agentic_rag_backend.stores.vector.bm25 import STEMMED, Bm25Encoder, Bm25Parameters, ngrams
from agentic_rag_backend.stores.vector.edge.store import EdgeVectorStore

ENGLISH = Bm25Encoder(Bm25Parameters())


def ids(encoder: Bm25Encoder, text: str, language: str | None = None) -> set[int]:
    found = encoder.document(text, language)
    return set(found.indices) if found is not None else set()


def asked(encoder: Bm25Encoder, text: str) -> set[int]:
    found = encoder.query(text)
    return set(found.indices) if found is not None else set()


WORDS = "the harbour lights of Carrow Bay were dimmed, at 1 café. In die hard"


@given(st.lists(st.sampled_from(WORDS.split()), max_size=9, unique=True))
def test_texts_without_a_language_keep_the_terms_of_the_deployments_language(words: list[str]) -> None:
    text = " ".join(words)
    plain, tagged = ENGLISH.document(text), ENGLISH.document(text, "en")
    assert plain == tagged
    assert ids(ENGLISH, text) == set(ENGLISH.terms(text))
    assert ids(ENGLISH, text) <= asked(ENGLISH, text)


def test_other_forms_of_a_word_are_found_in_its_language() -> None:
    for language, passage, query in [
        ("de", "Die Häuser am Hafen gehören der Stadt.", "Haus"),
        ("de-AT", "Die Häuser am Hafen gehören der Stadt.", "Wem gehört das Haus?"),
        ("fr", "Les maisons du port sont rouges.", "la maison rouge"),
        ("es", "Las casas del puerto son rojas.", "casa roja"),
        ("it", "Le barche sono nel porto.", "barca"),
        ("sv", "Båtarna ligger i hamnen.", "båt"),
    ]:
        own = ids(ENGLISH, passage, language) - ids(ENGLISH, passage)
        assert own & asked(ENGLISH, query)


def test_function_words_of_the_passages_language_are_no_terms() -> None:
    german = "Die Boote und der Kahn sind in dem Hafen."
    assert not ids(ENGLISH, german, "de") & set(ENGLISH.terms("die und der sind dem"))
    assert ids(ENGLISH, german) & set(ENGLISH.terms("die und der sind dem"))
    # A film title has one German function word. Its English terms stay.
    assert set(ENGLISH.terms("die hard")) <= asked(ENGLISH, "die hard")


def test_names_are_found_across_languages() -> None:
    german = "Mira Voss gründete das Institut und die Werft in Brennmoor."
    assert set(ENGLISH.terms("Mira Voss")) <= ids(ENGLISH, german, "de")
    assert set(ENGLISH.terms("Mira Voss")) <= asked(ENGLISH, "Who is Mira Voss?")


def test_an_english_question_is_analysed_in_english_alone() -> None:
    assert asked(ENGLISH, "Who founded the harbour museum?") == set(ENGLISH.terms("Who founded the harbour museum?"))


def test_a_deployment_in_german_finds_english_texts_by_their_forms() -> None:
    german = Bm25Encoder(Bm25Parameters.of_language("de"))
    own = ids(german, "The boats were painted.", "en") - ids(german, "The boats were painted.")
    assert own & asked(german, "who was painting the boat")
    assert len(STEMMED) > 6


@pytest.mark.parametrize("text", ["博物馆", "港口边有七座红砖房屋", "灯塔 museum 港", "เรือในท่าเรือ", "항구의 등대", "ﾐｭｰｼﾞｱﾑ"])
def test_scripts_without_spaces_have_their_bigrams(text: str) -> None:
    assert ngrams(text)
    assert set(ngrams(text)) <= asked(ENGLISH, f"… {text} …")
    assert set(ngrams(text)) <= ids(ENGLISH, f"{text}。", "zh")
    assert set(ngrams(text)) <= set(ENGLISH.terms(text))


def test_bigrams_overlap_and_single_characters_stand_alone() -> None:
    assert len(ngrams("博物馆")) == 2
    assert sum(ngrams("港港港").values()) == 2
    assert len(ngrams("港 口")) == 2
    assert not ngrams("Häuser дом بيت")
    assert not Bm25Encoder(Bm25Parameters.of_language("zh")).terms("港口") & set(ngrams("港口"))


@given(st.text(max_size=40), st.sampled_from([None, "de", "fr", "zh", "pl", "xx", ""]))
def test_any_text_has_distinct_terms_with_positive_weights(text: str, language: str | None) -> None:
    for found in (ENGLISH.document(text, language), ENGLISH.query(text)):
        assert found is None or (len(set(found.indices)) == len(found.indices) and all(value > 0 for value in found.values))


async def _first_found(folder: Path) -> dict[str, float]:
    """Return the share of questions whose passage BM25 finds first, by language, with all languages in one tenant."""
    store = await EdgeVectorStore.open(folder, dimensions=2, embedder_fingerprint="none")
    tenant = TenantId.new()
    points = [
        VectorPoint(id=f"{code}/{key}", kind=NodeKind.CHUNK, text=text, document_id=key, metadata={"language": code})
        for code, passages in PASSAGES.items()
        for key, text in passages.items()
    ]
    await store.upsert(tenant, Collection.CHUNKS, points)
    shares = {}
    for code, questions in QUESTIONS.items():
        searches = [VectorSearch(kind=NodeKind.CHUNK, text=question, limit=3) for question, _ in questions]
        legs = await store.search(tenant, Collection.CHUNKS, searches)
        first = [leg.sparse[0].id if leg.sparse else "" for leg in legs]
        shares[code] = sum(id == f"{code}/{key}" for id, (_, key) in zip(first, questions, strict=True)) / len(questions)
    await store.close()
    return shares


def test_questions_in_three_languages_find_their_passages(tmp_path: Path) -> None:
    # With English stems alone, the shares are .67 (German), .92 (French) and 0 (Chinese).
    shares = asyncio.run(_first_found(tmp_path / "vectors"))
    assert shares["de"] >= 0.9, shares
    assert shares["fr"] >= 0.9, shares
    assert shares["zh"] == 1.0, shares
