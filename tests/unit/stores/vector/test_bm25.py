from __future__ import annotations

from typing import get_args

import pytest

from agentic_rag_backend.settings import Settings
from agentic_rag_backend.stores.vector.bm25 import IDENTIFIER_WEIGHT, LANGUAGES, Bm25Encoder, Bm25Parameters


def test_documents_saturate_and_weigh_length_as_the_parameters_say() -> None:
    parameters = Bm25Parameters(k=1.2, b=0.5, average_tokens=4)
    vector = Bm25Encoder(parameters).document("harbour harbour lighthouse")
    assert vector is not None
    weights = sorted(vector.values)
    for weight, frequency in zip(weights, (1, 2), strict=True):
        expected = frequency * (1.2 + 1) / (frequency + 1.2 * (1 - 0.5 + 0.5 * 3 / 4))
        assert weight == pytest.approx(expected, rel=1e-5)


def test_queries_hold_each_stemmed_term_once_with_weight_1() -> None:
    encoder = Bm25Encoder(Bm25Parameters())
    query, document = encoder.query("The harbours and a harbour"), encoder.document("harbour")
    assert query is not None
    assert document is not None
    assert list(query.values) == [1.0]
    assert list(query.indices) == list(document.indices)


def test_terms_of_identifiers_weigh_more() -> None:
    found = Bm25Encoder(Bm25Parameters()).query("the seal of pump KX-4471")
    assert found is not None
    assert sorted(found.values) == [1.0, 1.0, IDENTIFIER_WEIGHT, IDENTIFIER_WEIGHT]


@pytest.mark.parametrize("text", [None, "", "  ", "the of and", "?!"])
def test_texts_without_terms_have_no_vector(text: str | None) -> None:
    encoder = Bm25Encoder(Bm25Parameters())
    assert encoder.query(text) is None
    assert encoder.document(text) is None


def test_odd_characters_are_text() -> None:
    assert Bm25Encoder(Bm25Parameters()).document("harbour\x00 \ud800 night") is not None


def test_invisible_marks_full_width_letters_and_spaced_letters_do_not_change_the_terms() -> None:
    encoder = Bm25Encoder(Bm25Parameters())
    for text, form in (
        ("har\u00adbour", "harbour"),
        ("\ufeffharbour\u200b", "harbour"),
        ("ＫＸ４４７１", "KX4471"),
        ("港 口 关 闭", "港口关闭"),
    ):
        assert encoder.document(text) == encoder.document(form)
        assert encoder.query(text) == encoder.query(form)
        assert encoder.terms(text) == encoder.terms(form)


def test_every_parameter_is_in_the_fingerprint() -> None:
    others = [
        Bm25Parameters(k=1.3), Bm25Parameters(b=0.7), Bm25Parameters(average_tokens=99), Bm25Parameters(language="german"),
        Bm25Parameters(tokenizer="multilingual"), Bm25Parameters(),
    ]  # fmt: skip
    assert len({parameters.fingerprint for parameters in others}) == len(others)


@pytest.mark.parametrize(
    "parameters", [Bm25Parameters(b=2), Bm25Parameters(average_tokens=0), Bm25Parameters(language="klingon")]
)
def test_parameters_outside_their_range_are_refused(parameters: Bm25Parameters) -> None:
    with pytest.raises(ValueError):
        Bm25Encoder(parameters)


def test_every_language_of_the_setting_has_an_analyser() -> None:
    (choices,) = [set(get_args(field.annotation)) for name, field in Settings.model_fields.items() if name == "language"]
    assert choices == set(LANGUAGES)
    prints = {Bm25Parameters.of_language(code).fingerprint for code in LANGUAGES}
    assert len(prints) == len(LANGUAGES)
    assert Bm25Parameters.of_language("en") == Bm25Parameters()
    for code in LANGUAGES:
        assert Bm25Encoder(Bm25Parameters.of_language(code)).document("Ωκεανός океан ocean 海 بحر") is not None


def test_words_without_spaces_are_told_apart() -> None:
    for code, text, word in [
        ("zh", "我们在北京大学学习", "大学"),
        ("zh", "我们在北京大学学习", "北京"),
        ("ja", "東京の海は青い", "海"),
    ]:
        encoder = Bm25Encoder(Bm25Parameters.of_language(code))
        passage, asked = encoder.document(text), encoder.query(word)
        assert passage is not None
        assert asked is not None
        assert set(asked.indices) <= set(passage.indices)
