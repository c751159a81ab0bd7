"""Character n-grams of scripts that are written without spaces, as terms of BM25.

Each run of such characters has its overlapping bigrams, and a run of one character has this character (as Lucene's
``CJKBigramFilter``). Bigrams need no dictionary, so a document and a query are always divided alike, in a text of any language.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter

from agentic_rag_backend.language.unspaced import UNSPACED_RUN, split_pairs


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
