"""BM25 vectors with the engine's own analyser. Every parameter is set explicitly, because stored vectors depend on all.

Every text is analysed in the deployment's language. Two kinds of text have further terms, with ids of their own:

- a text in another language that `STEMMED` has, has its words in the form of this language. Its function words are no terms.
- a text in a script without spaces has its character bigrams.

A query has the terms of the deployment's language, its bigrams, and its words in the form of the languages that its function
words show. If they show none, it has its words in the form of every language. A term that no text of the tenant has adds nothing
to a score. So the scores of texts in the deployment's language are those of its own analysis.

Character n-grams of scripts that are written without spaces, as terms of BM25.

Each run of such characters has its overlapping bigrams, and a run of one character has this character (as Lucene's
``CJKBigramFilter``). Bigrams need no dictionary, so a document and a query are always divided alike, in a text of any language.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from qdrant_edge import Bm25, Bm25Config, SparseVector, TokenizerType

from agentic_rag_backend.language.languages import STOP_WORDS, is_mostly_latin, likely_languages
from agentic_rag_backend.language.questions.kinds import find_literals
from agentic_rag_backend.language.unspaced import UNSPACED_RUN, make_searchable, split_pairs
from agentic_rag_backend.stores.vector.base import TermWeights


def ngrams(text: str) -> Counter[int]:
    """Return the ids of the n-grams of a text, and how often each occurs. Empty for text in other scripts."""
    if text.isascii():
        return Counter()
    counts: Counter[str] = Counter()
    for run in UNSPACED_RUN.findall(unicodedata.normalize("NFKC", text)):
        counts.update(split_pairs(run))
    return Counter({_id(gram): count for gram, count in counts.items()})


def _id(gram: str) -> int:
    return int.from_bytes(hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=4, person=b"ngram").digest(), "big")


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
STEMMED: tuple[str, ...] = tuple(code for code in STOP_WORDS if code in LANGUAGES)
"""Languages that are told apart in texts and queries, and have a stemmer."""
IDENTIFIER_WEIGHT = 2.0
"""Weight of the terms of an identifier such as "KX-4471", which other words of a long question would outweigh. With it, 11 of 11
instead of 9 questions by identifier find their passage first. A higher one changes nothing; one for quoted phrases loses R@5 on
HotpotQA."""
MAX_UNCLEAR_WORDS = 24
"""Words of a query up to which it is analysed in every language if its function words show none."""
AVERAGE_NGRAMS = 230.0
"""Bigrams of a chunk of the default size in Chinese: 254 word pieces of the bundled encoder, one for a character."""
_WITHOUT_SPACES = frozenset({"chinese", "japanese"})
_WORD = re.compile(r"[^\W\d_]+")


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
        self._parameters = parameters
        self._model = _load_analyser(parameters)
        self._segments = parameters.language in _WITHOUT_SPACES
        other_codes = (code for code in STEMMED if LANGUAGES[code] != parameters.language)
        self._others = {
            code: _load_analyser(replace(parameters, language=LANGUAGES[code], tokenizer="word")) for code in other_codes
        }

    def document(self, text: str | None, language: str | None = None) -> TermWeights | None:
        """Return the saturated term frequencies of ``text``, or None if it has no term.

        Args:
            language: BCP 47 tag of the text's language, if it is known. Without a tag, the text has the deployment's language.
        """
        if not text:
            return None
        text = _read_searched(text)
        code = (language or "").casefold().replace("_", "-").partition("-")[0]
        if code not in self._others:
            return _weigh_terms({**self._ngrams(text), **_read_terms(self._model.embed_document(text))})
        plain = _remove_stems(STOP_WORDS[code], text)
        terms = _read_terms(self._others[code].embed_document(plain), code)
        return _weigh_terms({**terms, **self._ngrams(text), **_read_terms(self._model.embed_document(plain))})

    def query(self, text: str | None) -> TermWeights | None:
        """Return the distinct terms of ``text``, those of identifiers with `IDENTIFIER_WEIGHT`, others with 1. None: no term."""
        if not text:
            return None
        text = _read_searched(text)
        languages = likely_languages(text)
        unclear = text.count(" ") < MAX_UNCLEAR_WORDS and is_mostly_latin(text)
        codes = languages.codes or (self._others if unclear else ())
        plain = (
            _remove_stems(STOP_WORDS[languages.codes[0]], text)
            if languages.clear and languages.codes[0] in self._others
            else text
        )
        ids = {id for code in codes if code in self._others for id in _read_terms(self._others[code].embed_query(plain), code)}
        ids.update(self._ngrams(text), _read_terms(self._model.embed_query(plain)))
        marked = {id for part in find_literals(text).identifiers for id in _read_terms(self._model.embed_query(part))}
        return _weigh_terms({id: IDENTIFIER_WEIGHT if id in marked else 1.0 for id in sorted(ids)})

    def terms(self, text: str) -> frozenset[int]:
        """Return the terms of ``text`` in the deployment's language, and its bigrams."""
        text = _read_searched(text)
        words = frozenset(self._model.embed_query(text).indices)
        return words if self._segments else words.union(ngrams(text))

    def _ngrams(self, text: str) -> dict[int, float]:
        """Return the saturated frequencies of bigrams. None if the deployment's analyser segments such text itself."""
        counts = ngrams(text) if not self._segments else {}
        k, b = self._parameters.k, self._parameters.b
        norm = k * (1 - b + b * sum(counts.values()) / AVERAGE_NGRAMS)
        return {id: count * (k + 1) / (count + norm) for id, count in counts.items()}


def _load_analyser(parameters: Bm25Parameters) -> Bm25:
    return Bm25(
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


def _read_terms(vector: SparseVector, code: str | None = None) -> dict[int, float]:
    """Return the weights by id. With the code of a language, ids are those of this language alone."""
    mask = 0 if code is None else zlib.crc32(code.encode())
    return {id ^ mask: weight for id, weight in zip(vector.indices, vector.values, strict=True)}


def _remove_stems(words: frozenset[str], text: str) -> str:
    return _WORD.sub(lambda match: " " if match[0].casefold() in words else match[0], text)


def _weigh_terms(terms: Mapping[int, float]) -> TermWeights | None:
    return TermWeights(list(terms), list(terms.values())) if terms else None


def _read_searched(text: str) -> str:
    # A lone surrogate is a str in Python but no text to the engine, which would raise.
    return make_searchable(text.encode("utf-8", "replace").decode("utf-8"))
