"""Checks of claims in languages other than English, and of claims in another language than their passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from language_answers import CLAIMS, FURTHER_CLAIMS, PASSAGES, SUBJECTS
from language_sets import PASSAGES as OTHER_PASSAGES
from numpy.typing import NDArray

from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.generation.claims.base import Verdict
from agentic_rag_backend.generation.claims.embedding import EmbeddingVerifier
from agentic_rag_backend.generation.claims.languages.lexicon import lexicon_of
from agentic_rag_backend.generation.claims.languages.terms import alike, read_terms, same_name
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.generation.similarity import RelativeSimilarity
from agentic_rag_backend.models.embedding.base import Vectors

LEAST_KEPT = 0.9
LEAST_CAUGHT = 0.9


def passage(marker: int, text: str, title: str = "", language: str = "") -> Passage:
    return Passage(
        marker=marker,
        chunk_id=f"c{marker}",
        document_id=f"d{marker}",
        title=title,
        text=text,
        start_char=0,
        score=1.0,
        language=language,
    )


def passages_in(code: str) -> list[Passage]:
    return [passage(number, text, title) for number, (title, text) in enumerate(zip(SUBJECTS, PASSAGES[code], strict=True), 1)]


@pytest.mark.parametrize("code", ["de", "fr", "zh"])
def test_right_claims_are_kept_and_wrong_ones_dropped(code: str) -> None:
    """English roles dropped German sentences, because nouns look like names, and Chinese ones were a single word."""
    lexical = LexicalVerifier(passages_in(code))
    verdicts = [
        (kind == "right", lexical.check(Claim(text, (number + 1,))))
        for kind in CLAIMS[code]
        for number, text in CLAIMS[code][kind]
    ]
    others = OTHER_PASSAGES[code]
    for key, holds, text in FURTHER_CLAIMS[code]:
        verdicts.append((holds, LexicalVerifier([passage(1, others[key], key)]).check(Claim(text, (1,)))))
    right = [verdict.holds for holds, verdict in verdicts if holds]
    wrong = [not verdict.holds for holds, verdict in verdicts if not holds]
    assert sum(right) / len(right) >= LEAST_KEPT, [verdict for holds, verdict in verdicts if holds and not verdict.holds]
    assert sum(wrong) / len(wrong) >= LEAST_CAUGHT, [verdict for holds, verdict in verdicts if not holds and verdict.holds]


@pytest.mark.parametrize("code", ["de", "fr", "zh"])
@pytest.mark.parametrize("kind", ["number", "name", "negated", "modality"])
def test_the_reason_is_what_was_changed(code: str, kind: str) -> None:
    lexical = LexicalVerifier(passages_in(code))
    reasons = [lexical.check(Claim(text, (number + 1,))).reason for number, text in CLAIMS[code][kind]]
    # A river has an article in German, so that its name cannot be told from a noun.
    assert all(reason is not None for reason in reasons)
    assert sum(reason == kind for reason in reasons) >= len(reasons) - 1


def test_the_quote_is_verbatim_and_a_wrong_marker_is_corrected() -> None:
    lexical = LexicalVerifier(passages_in("zh"))
    verdict = lexical.check(Claim("洪特河大桥于1998年10月3日通车。", (1,)))
    assert [support.passage.marker for support in verdict.supports] == [4]
    assert verdict.supports[0].quote == "洪特河大桥长310米，于1998年10月3日通车。"


def test_quoted_words_must_be_in_the_passage() -> None:
    held = passage(1, "Der Kapitän nannte das Schiff „eine schwimmende Scheune“ und verließ es noch am selben Abend.")
    lexical = LexicalVerifier([held])
    assert lexical.check(Claim("Der Kapitän nannte das Schiff „eine schwimmende Scheune“.", (1,))).holds
    assert lexical.check(Claim("Der Kapitän nannte das Schiff „ein schwimmendes Grab“.", (1,))).reason == "quote"


def test_the_language_of_metadata_decides_for_a_passage_that_shows_none() -> None:
    text = "Strandkorbverleih Harms: Tageskarte 12 Euro, Wochenkarte 60 Euro."
    claim = Claim("Tageskarte Strandkorbverleih Harms kostet 12 Euro.", (1,))
    assert not LexicalVerifier([passage(1, text)]).check(claim).holds
    assert LexicalVerifier([passage(1, text, language="de")]).check(claim).holds


def test_passages_in_scripts_of_several_languages_are_compared_by_words() -> None:
    held = passage(1, "Маяк построили в 1887 году на острове Валаам. Его высота составляет 34 метра.")
    lexical = LexicalVerifier([held])
    assert lexical.check(Claim("Маяк на острове Валаам построили в 1887 году.", (1,))).holds
    assert lexical.check(Claim("Маяк на острове Валаам построили в 1878 году.", (1,))).reason == "number"


def test_numbers_are_compared_by_value() -> None:
    def values(text: str, code: str) -> list[str]:
        return [term.form for term in read_terms(text, lexicon_of(code)) if term.number]

    assert values("4.200 Aale, 1,2 Millionen Euro, am 3. Oktober", "de") == ["4200", "1200000", "3", "month:10"]
    assert values("4 200 anguilles et 1,2 million d'euros en octobre", "fr") == ["4200", "1200000", "month:10"]
    assert values("4200条，120万欧元，10月3日，二十五名，第一，星期天", "zh") == [
        "4200",
        "1200000",
        "month:10",
        "3",
        "25",
        "1",
        "day:7",
    ]
    assert values("4,200 eels, 1.2 million euros; it may rain in May", "en") == ["4200", "1200000", "month:5"]


def test_forms_of_one_word_are_alike_and_names_are_not() -> None:
    assert all(alike(*each) for each in (("gegrundet", "grundete"), ("etudia", "etudie")))
    assert not any(alike(*each) for each in (("detruit", "construit"), ("1887", "1878")))
    endings = lexicon_of("de").endings
    assert all(same_name(*each, endings) for each in (("petersen", "petersens"), ("haus", "hauser")))
    assert not any(same_name(*each, endings) for each in (("weser", "wesel"), ("anna", "anne")))


# --- claims in another language than their passage


class TwoLanguages:
    """An encoder that gives the sentences of one group the same direction, whatever their language."""

    def __init__(self, *groups: Sequence[str], fails: bool = False) -> None:
        self.groups = groups
        self.fails = fails

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.fails:
            raise ModelUnavailable("the embedder is away")
        return np.stack([self.vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.vector(text)

    def vector(self, text: str) -> NDArray[np.float32]:
        found = np.zeros(len(self.groups) + 1, np.float32)
        place = next(
            (number for number, group in enumerate(self.groups) if any(each in text for each in group)), len(self.groups)
        )
        found[place] = 1.0
        return found


GERMAN = passage(
    1,
    "Die Werft Harms wurde 1887 von Johann Harms in Elsfleth gegründet. Sie beschäftigt heute 340 Menschen und baut Fähren "
    "aus Stahl. Im Winter wird dort nicht gearbeitet.",
    "Werft",
)
ENCODER = TwoLanguages(
    ("gegründet", "founded"), ("340 Menschen", "employs", "employed"), ("nicht gearbeitet", "winter"), ("war", "Krieg")
)


async def verdict_of(text: str, *, encoder: TwoLanguages = ENCODER, similar: bool = True, held: Passage = GERMAN) -> Verdict:
    similarity = RelativeSimilarity(encoder) if similar else None
    (verdict,) = await EmbeddingVerifier(LexicalVerifier([held]), encoder, similarity).verify([Claim(text, (1,))])
    return verdict


async def test_a_claim_in_another_language_is_quoted() -> None:
    verdict = await verdict_of("Johann Harms founded the shipyard in Elsfleth in 1887.")
    assert [support.quote for support in verdict.supports] == [
        "Die Werft Harms wurde 1887 von Johann Harms in Elsfleth gegründet."
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Johann Harms founded the shipyard in Elsfleth in 1878.", "number"),
        ("Johann Harms founded the shipyard in Bremen in 1887.", "name"),
        ("Johann Claasen founded the shipyard in Elsfleth in 1887.", "name"),
        ("Johann Harms never founded the shipyard in Elsfleth in 1887.", "negated"),
        ("They work there in the winter.", "negated"),
        ("The shipyard was destroyed in the war.", "unsupported"),
    ],
)
async def test_a_changed_claim_in_another_language_does_not_hold(text: str, reason: str) -> None:
    assert (await verdict_of(text)).reason == reason


async def test_without_an_encoder_of_both_languages_the_reason_is_the_language() -> None:
    assert (await verdict_of("Johann Harms founded the shipyard in Elsfleth in 1887.", similar=False)).reason == "language"
    assert LexicalVerifier([GERMAN]).check(Claim("The shipyard employs 340 people.", (1,))).reason == "language"


async def test_a_failing_encoder_is_reported() -> None:
    encoder = TwoLanguages(fails=True)
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN]), encoder, RelativeSimilarity(encoder))
    (verdict,) = await verifier.verify([Claim("Johann Harms founded the shipyard in Elsfleth in 1887.", (1,))])
    assert verdict.reason == "language"
    assert verifier.failures == ("the encoder did not compare sentences: model_unavailable",)


async def test_names_in_other_letters_cannot_be_compared() -> None:
    chinese = replace(GERMAN, text=PASSAGES["zh"][0])
    encoder = TwoLanguages(("创立", "founded"), ("340", "employs"))
    assert (await verdict_of("Johann Harms founded the shipyard in 1887.", encoder=encoder, held=chinese)).reason == "name"
    assert (await verdict_of("The shipyard employs 340 people.", encoder=encoder, held=chinese)).holds


async def test_an_english_answer_cites_german_and_english_passages() -> None:
    english = passage(2, "The Tidal Array was switched on in 2011. It feeds 40 megawatts into the grid of Sund.", "Tidal Array")
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN, english]), ENCODER, RelativeSimilarity(ENCODER))
    claims = [Claim("The shipyard employs 340 people.", (1,)), Claim("The Tidal Array was switched on in 2011.", (2,))]
    verdicts = await verifier.verify(claims)
    assert [[support.passage.marker for support in verdict.supports] for verdict in verdicts] == [[1], [2]]
