"""BM25 vectors with the engine's own analyser. Every parameter is set explicitly, because stored vectors depend on all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from qdrant_edge import Bm25, Bm25Config, SparseVector, TokenizerType

from agentic_rag_backend.stores.vector.base import TermWeights

_TOKENIZERS = {
    "word": TokenizerType.Word,
    "whitespace": TokenizerType.Whitespace,
    "prefix": TokenizerType.Prefix,
    "multilingual": TokenizerType.Multilingual,
}
LANGUAGES: Mapping[str, str] = MappingProxyType(
    {
        "ar": "arabic",
        "az": "azerbaijani",
        "bn": "bengali",
        "ca": "catalan",
        "da": "danish",
        "de": "german",
        "el": "greek",
        "en": "english",
        "es": "spanish",
        "eu": "basque",
        "fi": "finnish",
        "fr": "french",
        "he": "hebrew",
        "hu": "hungarian",
        "id": "indonesian",
        "it": "italian",
        "ja": "japanese",
        "kk": "kazakh",
        "ne": "nepali",
        "nl": "dutch",
        "no": "norwegian",
        "pt": "portuguese",
        "ro": "romanian",
        "ru": "russian",
        "sl": "slovene",
        "sv": "swedish",
        "tg": "tajik",
        "tr": "turkish",
        "zh": "chinese",
    }
)
"""Every language that the engine has stop words or a stemmer for, by its ISO 639-1 code."""
_WITHOUT_SPACES = frozenset({"chinese", "japanese"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bm25Parameters:
    """Parameters that turn a text into a sparse vector.

    ``k`` ≥ 0 saturates term frequency, ``b`` in [0, 1] weighs length, ``average_tokens`` > 0 is the expected length after
    stop words; 116 is the measured average of our chunks. ``language`` chooses stemmer and stop words.
    """

    k: float = 1.2
    b: float = 0.75
    average_tokens: float = 116.0
    language: str = "english"
    tokenizer: str = "word"

    @classmethod
    def of_language(cls, code: str) -> Bm25Parameters:
        """Return the parameters for an ISO 639-1 code of `LANGUAGES`."""
        language = LANGUAGES[code]
        return cls(language=language, tokenizer="multilingual" if language in _WITHOUT_SPACES else "word")

    @property
    def fingerprint(self) -> str:
        """Return the identity of the parameters. Vectors with different parameters cannot be compared."""
        return f"bm25 k={self.k:g} b={self.b:g} avg_len={self.average_tokens:g} {self.language} {self.tokenizer}"


class Bm25Encoder:
    """Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009): the part of BM25 that needs no statistics.

    Inverse document frequency is left to the search, where the corpus is known.

    Raises:
        ValueError: a parameter outside its range, or an unknown language.
    """

    def __init__(self, parameters: Bm25Parameters) -> None:
        self._model = Bm25(
            Bm25Config(
                k=parameters.k,
                b=parameters.b,
                avg_len=parameters.average_tokens,
                language=parameters.language,
                tokenizer=_TOKENIZERS[parameters.tokenizer],
                lowercase=True,
                ascii_folding=False,
            )
        )

    def document(self, text: str | None) -> TermWeights | None:
        """Return the saturated term frequencies of ``text``, or None if it has no term."""
        return _weights(self._model.embed_document(_valid(text))) if text else None

    def query(self, text: str | None) -> TermWeights | None:
        """Return the distinct terms of ``text`` with weight 1 each, or None if it has none."""
        return _weights(self._model.embed_query(_valid(text))) if text else None


def _weights(vector: SparseVector) -> TermWeights | None:
    return TermWeights(vector.indices, vector.values) if vector.indices else None


def _valid(text: str) -> str:
    # A lone surrogate is a str in Python but no text to the engine, which would raise.
    return text.encode("utf-8", "replace").decode("utf-8")
