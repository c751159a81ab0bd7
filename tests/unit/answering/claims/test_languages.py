"""Checks of claims in languages other than English, and of claims in another language than their passage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from language_answers import CLAIMS, FURTHER_CLAIMS, PASSAGES, SUBJECTS
from language_sets import PASSAGES as OTHER_PASSAGES
from numpy.typing import NDArray
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.base import Verdict
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.tokens import read_tokens
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.claims.verifiers.translation import MAX_QUOTES, EmbeddingVerifier, list_candidates
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.answering.similarity import RelativeSimilarity
from agentic_rag_backend.errors import ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.language.vocabulary.lexicon import language_of_code
from agentic_rag_backend.models.embedding.base import Vectors

LEAST_KEPT = 0.9
LEAST_CAUGHT = 0.9


def passages_in(code: str) -> list[Passage]:
    return [passage_of(text, number, title) for number, (title, text) in enumerate(zip(SUBJECTS, PASSAGES[code], strict=True), 1)]


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
        verdicts.append((holds, LexicalVerifier([passage_of(others[key], 1, key)]).check(Claim(text, (1,)))))
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
    held = passage_of("Der Kapitän nannte das Schiff „eine schwimmende Scheune“ und verließ es noch am selben Abend.", 1)
    lexical = LexicalVerifier([held])
    assert lexical.check(Claim("Der Kapitän nannte das Schiff „eine schwimmende Scheune“.", (1,))).holds
    assert lexical.check(Claim("Der Kapitän nannte das Schiff „ein schwimmendes Grab“.", (1,))).reason == "quote"


def test_the_language_of_metadata_decides_for_a_passage_that_shows_none() -> None:
    text = "Strandkorbverleih Harms: Tageskarte 12 Euro, Wochenkarte 60 Euro."
    claim = Claim("Tageskarte Strandkorbverleih Harms kostet 12 Euro.", (1,))
    assert not LexicalVerifier([passage_of(text, 1)]).check(claim).holds
    assert LexicalVerifier([passage_of(text, 1, language="de")]).check(claim).holds


def test_passages_in_scripts_of_several_languages_are_compared_by_words() -> None:
    held = passage_of("Маяк построили в 1887 году на острове Валаам. Его высота составляет 34 метра.", 1)
    lexical = LexicalVerifier([held])
    assert lexical.check(Claim("Маяк на острове Валаам построили в 1887 году.", (1,))).holds
    assert lexical.check(Claim("Маяк на острове Валаам построили в 1878 году.", (1,))).reason == "number"


def test_numbers_are_compared_by_value() -> None:
    def values(text: str, code: str) -> list[str]:
        return [term.form for term in read_tokens(text, language_of_code(code)) if term.number]

    assert values("4.200 Aale, 1,2 Millionen Euro, am 3. Oktober", "de") == ["4200", "1.2", "3", "month:10"]
    assert values("4 200 anguilles et 1,2 million d'euros en octobre", "fr") == ["4200", "1.2", "month:10"]
    assert values("4200条，120万欧元，10月3日，二十五名，第一，星期天", "zh") == [
        "4200",
        "120",
        "month:10",
        "3",
        "25",
        "1",
        "day:7",
    ]


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


GERMAN = passage_of(
    "Die Werft Harms wurde 1887 von Johann Harms in Elsfleth gegründet. Sie beschäftigt heute 340 Menschen und baut Fähren "
    "aus Stahl. Im Winter wird dort nicht gearbeitet.",
    1,
    "Werft",
)
ENCODER = TwoLanguages(
    ("gegründet", "founded"), ("340 Menschen", "employs", "employed"), ("nicht gearbeitet", "winter"), ("war", "Krieg")
)


async def verdict_of(text: str, *, encoder: TwoLanguages = ENCODER, similar: bool = True, held: Passage = GERMAN) -> Verdict:
    similarity = RelativeSimilarity(encoder) if similar else None
    (verdict,) = await EmbeddingVerifier(LexicalVerifier([held]), similarity).verify([Claim(text, (1,))])
    return verdict


async def test_a_claim_in_another_language_is_quoted() -> None:
    verdict = await verdict_of("Johann Harms founded the shipyard in Elsfleth in 1887.")
    assert [support.quote for support in verdict.supports] == [
        "Die Werft Harms wurde 1887 von Johann Harms in Elsfleth gegründet."
    ]


async def test_a_changed_claim_in_another_language_does_not_hold() -> None:
    for text, reason in [
        ("Johann Harms founded the shipyard in Elsfleth in 1878.", "number"),
        ("Johann Harms founded the shipyard in Bremen in 1887.", "name"),
        ("Johann Claasen founded the shipyard in Elsfleth in 1887.", "name"),
        ("Johann Harms never founded the shipyard in Elsfleth in 1887.", "negated"),
        ("They work there in the winter.", "negated"),
        ("The shipyard was destroyed in the war.", "unsupported"),
    ]:
        assert (await verdict_of(text)).reason == reason


async def test_without_an_encoder_of_both_languages_the_reason_is_the_language() -> None:
    assert (await verdict_of("Johann Harms founded the shipyard in Elsfleth in 1887.", similar=False)).reason == "language"
    assert LexicalVerifier([GERMAN]).check(Claim("The shipyard employs 340 people.", (1,))).reason == "language"


async def test_a_failing_encoder_is_reported() -> None:
    encoder = TwoLanguages(fails=True)
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN]), RelativeSimilarity(encoder))
    (verdict,) = await verifier.verify([Claim("Johann Harms founded the shipyard in Elsfleth in 1887.", (1,))])
    assert verdict.reason == "language"
    assert verifier.failures == ("the encoder did not compare sentences: model_unavailable",)


async def test_names_in_other_letters_cannot_be_compared() -> None:
    chinese = replace(GERMAN, text=PASSAGES["zh"][0])
    encoder = TwoLanguages(("创立", "founded"), ("340", "employs"))
    assert (await verdict_of("Johann Harms founded the shipyard in 1887.", encoder=encoder, held=chinese)).reason == "name"
    assert (await verdict_of("The shipyard employs 340 people.", encoder=encoder, held=chinese)).holds


async def test_an_english_answer_cites_german_and_english_passages() -> None:
    english = passage_of(
        "The Tidal Array was switched on in 2011. It feeds 40 megawatts into the grid of Sund.", 2, "Tidal Array"
    )
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN, english]), RelativeSimilarity(ENCODER))
    claims = [Claim("The shipyard employs 340 people.", (1,)), Claim("The Tidal Array was switched on in 2011.", (2,))]
    verdicts = await verifier.verify(claims)
    assert [[support.passage.marker for support in verdict.supports] for verdict in verdicts] == [[1], [2]]


async def test_an_english_sentence_with_foreign_names_is_english() -> None:
    """Two function words of another language, as in "van der Rohe", let an embedder accept a sentence that roles refuse."""
    for text, claim in [
        (
            "Ludwig van der Rohe sued Edith Farnsworth over unpaid fees.",
            "Edith Farnsworth sued Ludwig van der Rohe over unpaid fees.",
        ),
        ("Van Buren won over Clay in 1836.", "Clay won over Van Buren in 1836."),
        ("Microsoft acquired Nokia in 2013 so Nokia left phones.", "So Nokia acquired Microsoft in 2013."),
    ]:
        alike = TwoLanguages((text, claim))
        assert (await verdict_of(claim, encoder=alike, held=passage_of(text, 1))).reason == "roles"


async def test_a_claim_that_its_own_language_contradicts_is_not_accepted_across() -> None:
    """An embedder does not see that names changed places, and a passage in another language states the same event."""
    english = passage_of("Johann Harms sued Anna Petersen over unpaid fees.", 1)
    german = passage_of("Johann Harms verklagte die Kapitänin Anna Petersen wegen der Rechnungen auf dem Schiff.", 2)
    encoder = TwoLanguages(("verklagte", "sued"))
    verifier = EmbeddingVerifier(LexicalVerifier([english, german]), RelativeSimilarity(encoder))
    claims = [Claim("Anna Petersen sued Johann Harms over unpaid fees.", (1,)), Claim("Johann Harms sued the captain.", (2,))]
    wrong, right = await verifier.verify(claims)
    assert wrong.reason == "roles"
    assert [support.passage.marker for support in right.supports] == [2]


class Faulty(TwoLanguages):
    """An encoder that returns ``fault`` for one text."""

    def __init__(self, fault: float, at: str, *groups: Sequence[str]) -> None:
        super().__init__(*groups)
        self.fault, self.at = fault, at

    def vector(self, text: str) -> NDArray[np.float32]:
        found = super().vector(text)
        return np.full_like(found, self.fault) if self.at in text else found


@pytest.mark.parametrize("fault", [float("nan"), float("inf"), 1e38])
@pytest.mark.parametrize("at", ["founded", "gegründet", "It rained", "Es regnete"])
async def test_vectors_that_are_not_finite_accept_nothing(fault: float, at: str) -> None:
    encoder = Faulty(fault, at, ("gegründet", "founded"))
    similarity = RelativeSimilarity(encoder)
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN]), similarity)
    (verdict,) = await verifier.verify([Claim("Johann Harms founded the shipyard in Elsfleth in 1887.", (1,))])
    # English everyday sentences are not embedded for a German passage.
    assert verdict.holds is (at == "It rained")
    assert bool(verifier.failures) is not verdict.holds


async def test_vectors_are_brought_to_length_1() -> None:
    long = Faulty(0.0, "nowhere", ("one",))
    long.vector = lambda text: np.array([3.0, 4.0], np.float32)  # type: ignore[method-assign]
    similarity = RelativeSimilarity(long)
    for vectors in (await similarity.embed(["one"]), await similarity.cohort("de")):
        assert np.allclose(vectors, [0.6, 0.8])


async def test_one_row_is_wanted_for_each_text() -> None:
    class Short(TwoLanguages):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            return (await super().embed(texts))[1:]

    with pytest.raises(ModelReplyInvalid, match="for 2 texts"):
        await RelativeSimilarity(Short()).embed(["one", "two"])


async def test_the_claims_of_one_call_are_embedded_together() -> None:
    class Counted(TwoLanguages):
        def __init__(self, *groups: Sequence[str]) -> None:
            super().__init__(*groups)
            self.calls: list[list[str]] = []

        async def embed(self, texts: Sequence[str]) -> Vectors:
            self.calls.append(list(texts))
            return await super().embed(texts)

    encoder = Counted(*ENCODER.groups)
    verifier = EmbeddingVerifier(LexicalVerifier([GERMAN]), RelativeSimilarity(encoder))
    texts = ["The shipyard employs 340 people.", "Johann Harms founded the shipyard in Elsfleth in 1887.", "They sing there."]
    first, second, third = await verifier.verify([Claim(text, (1,)) for text in texts])
    assert first.holds
    assert second.holds
    assert not third.holds
    compared = [call for call in encoder.calls if call[0] in texts]
    assert len(compared) == 1
    assert len(set(compared[0])) == len(compared[0])


async def test_a_claim_is_compared_with_a_bounded_number_of_quotes() -> None:
    many = [replace(GERMAN, marker=number, text=f"{GERMAN.text} Das war im Jahr {number}.") for number in range(1, 30)]
    found = list_candidates(Verdict(Claim("They sing there.", (3,)), reason="language"), LexicalVerifier(many))
    assert len(found) == MAX_QUOTES
    assert found[0].support.passage.marker == 3


def test_numerals_that_are_no_number_are_characters() -> None:
    terms = read_tokens("千万不要，一半是三千万", language_of_code("zh"))
    assert [term.form for term in terms if term.number] == ["30000000"]
    assert "".join(term.raw for term in terms) == "千万不要一半是三千万"
