"""Number words, units, hedges and names at the beginning of sentences, in one language and across two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sample_passages import passage_of

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.tokens import read_tokens
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.claims.verifiers.translation import EmbeddingVerifier
from agentic_rag_backend.answering.similarity import COHORT, RelativeSimilarity
from agentic_rag_backend.language.vocabulary.lexicon import language_of_code
from agentic_rag_backend.models.embedding.base import Vectors

UNRELATED = {sentence for group in COHORT.values() for sentence in group}
GERMAN = " Sie ist mit dem Hafen und der Stadt an dem Fluss."
ENGLISH = " It is in the harbour of the town and at the river."


class Agreeing:
    """An encoder to which all texts but everyday sentences are the same, so that words alone can refuse."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.vector(text) for text in texts])

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.vector(text)

    def vector(self, text: str) -> NDArray[np.float32]:
        return np.array([0.0, 1.0] if text in UNRELATED else [1.0, 0.0], np.float32)


class Silent(Agreeing):
    """An encoder to which no two texts are alike."""

    def vector(self, text: str) -> NDArray[np.float32]:
        return np.zeros(2, np.float32)


async def reason_of(text: str, claim: str) -> str | None:
    held = passage_of(text)
    verifier = EmbeddingVerifier(LexicalVerifier([held]), RelativeSimilarity(Agreeing()))
    (verdict,) = await verifier.verify([Claim(claim, (1,))])
    return verdict.reason


async def test_a_changed_detail_across_languages_is_found() -> None:
    for text, claim, reason in [
        ("Die Werft wurde 1887 von Johann Harms gegründet.", "The shipyard was no longer founded in 1887.", "negated"),
        ("Die Werft beschäftigt 340 Menschen.", "The shipyard employs fifty people.", "number"),
        ("Die Werft beschäftigt 340 Menschen.", "The shipyard employs three hundred people.", "number"),
        ("The shipyard was founded in 1887 by Johann Harms.", "Die Werft wurde 1887 kaum gegründet.", "negated"),
    ]:
        assert await reason_of(text + (ENGLISH if text.startswith("The") else GERMAN), claim) == reason


async def test_a_hedge_that_is_dropped_with_its_verb_form_is_found() -> None:
    for text, claim in [
        ("Le nouveau phare du port pourrait ouvrir en 2027.", "Le nouveau phare du port ouvre en 2027."),
        ("El nuevo faro del puerto podría abrir en 2027.", "El nuevo faro del puerto abre en 2027."),
        ("Il nuovo faro del porto potrebbe aprire nel 2027.", "Il nuovo faro del porto aprirà nel 2027."),
    ]:
        assert await reason_of(text, claim) == "modality"
        assert await reason_of(text, text) is None


async def test_a_translated_detail_is_kept() -> None:
    for text, claim in [
        ("Die Werft wurde 1887 von Johann Harms gegründet.", "Harms founded the shipyard in 1887."),
        ("Die Werft wurde 1887 von Johann Harms gegründet.", "Ferries were built there."),
        ("Die Werft wurde 1887 von Johann Harms gegründet.", "Founded in 1887, the shipyard is old."),
        ("Der Preis betrug 1,2 Millionen Euro.", "The price was €1.2 million."),
        ("Der Preis betrug 1,2 Millionen Euro.", "售价为120万欧元。"),
        ("Die Brücke wird kaum benutzt.", "The bridge is hardly used."),
        ("Die Brücke wird nicht mehr benutzt.", "The bridge is no longer used."),
        ("The shipyard was founded in 1887 by Johann Harms.", "Harms gründete die Werft 1887."),
        ("The shipyard was founded in 1887 by Johann Harms.", "Seitdem ist die Werft an dem Fluss."),
        ("The shipyard was founded in 1887 by Johann Harms.", "Gegründet wurde die Werft 1887."),
    ]:
        assert await reason_of(text + (ENGLISH if text.startswith("The") else GERMAN), claim) is None


def test_number_words_have_values() -> None:
    for code, text, values in [
        ("en", "twelve, two, and a half", ["12", "2"]),
        ("de", "zwölf, zwanzig, halben, dreimal", ["12", "20", "0.5", "3"]),
        ("fr", "douze, vingt, demi", ["12", "20", "0.5"]),
        ("zh", "二十五名，三千人，一九九八年", ["25", "3000", "1998"]),
    ]:
        assert [term.form for term in read_tokens(text, language_of_code(code)) if term.number] == values
