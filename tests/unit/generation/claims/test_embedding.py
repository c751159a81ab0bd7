"""Paraphrases found by embeddings: only where names, numbers, denials, hedges and roles agree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.generation.claims.embedding import EmbeddingVerifier
from agentic_rag_backend.generation.claims.lexical import LexicalVerifier
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.models.embedding.base import Vectors
from agentic_rag_backend.models.embedding.bundled import BundledEmbedder

SHIP = "The huge ship sank in the harbour during the terrible storm of that winter night."
TEXT = f"{SHIP} The Institute in Sund may employ 900 cooks."
PASSAGE = Passage(marker=1, chunk_id="c1", document_id="d1", title="Cider", text=TEXT, start_char=0, score=1.0)
PARAPHRASE = Claim("The enormous vessel sank in the port during the awful storm of that winter night.", (1,))


@pytest.fixture(scope="module")
def embedder() -> BundledEmbedder:
    return BundledEmbedder()


async def test_a_paraphrase_is_quoted(embedder: BundledEmbedder) -> None:
    lexical = LexicalVerifier((PASSAGE,))
    assert lexical.check(PARAPHRASE).reason == "unsupported"
    verifier = EmbeddingVerifier(lexical, embedder)
    (verdict,) = await verifier.verify([PARAPHRASE])
    assert verdict.holds
    assert [support.quote for support in verdict.supports] == [
        "The huge ship sank in the harbour during the terrible storm of that winter night."
    ]
    assert verifier.failures == ()


@pytest.mark.parametrize(
    "text",
    [
        "The enormous vessel never sank in the port during the awful storm of that winter night.",
        "The enormous vessel sank in the port during the awful storm of that winter night in 1912.",
        "The enormous vessel of Voss sank in the port during the awful storm of that winter night.",
        # Every word of a short sentence counts.
        "The huge barge sank.",
        "Moss grows on northern slopes.",
    ],
)
async def test_a_changed_paraphrase_is_not_accepted(embedder: BundledEmbedder, text: str) -> None:
    (verdict,) = await EmbeddingVerifier(LexicalVerifier((PASSAGE,)), embedder).verify([Claim(text, (1,))])
    assert not verdict.holds


class Counted(BundledEmbedder):
    """The bundled embedder with a count of calls, and a failure if asked for."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__()
        self.calls = 0
        self.fails = fails

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.fails:
            raise ModelUnavailable("the embedder is away")
        found: NDArray[np.float32] = await super().embed(texts)
        return found


async def test_only_sentences_that_words_do_not_decide_are_embedded() -> None:
    counted = Counted()
    verifier = EmbeddingVerifier(LexicalVerifier((PASSAGE,)), counted)
    await verifier.verify(
        [
            Claim("The huge ship sank in the harbour during the terrible storm of that winter night.", (1,)),
            Claim("It has 7 cooks.", (1,)),
        ]
    )
    assert counted.calls == 0
    await verifier.verify([PARAPHRASE, PARAPHRASE])
    assert counted.calls == 1


async def test_words_decide_while_the_embedder_is_away() -> None:
    verifier = EmbeddingVerifier(LexicalVerifier((PASSAGE,)), Counted(fails=True))
    (verdict,) = await verifier.verify([PARAPHRASE])
    assert verdict.reason == "unsupported"
    assert verifier.failures == ("the encoder did not compare sentences: model_unavailable",)
