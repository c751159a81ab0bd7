"""Character n-grams of scripts that are written without spaces, as terms of BM25.

Each run of such characters has its overlapping bigrams, and a run of one character has this character (as Lucene's
``CJKBigramFilter``). Bigrams need no dictionary, so a document and a query are always divided alike, in a text of any language.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter

_CHARACTERS = "".join(
    (
        "\u0e00-\u0eff",  # Thai and Lao
        "\u1000-\u109f\u1780-\u17ff",  # Burmese and Khmer
        "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff",  # Japanese syllables
        "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",  # Chinese characters
        "\uac00-\ud7af",  # Korean, whose words have endings
    )
)
_RUN = re.compile(f"[{_CHARACTERS}]+")


def ngrams(text: str) -> Counter[int]:
    """Return the ids of the n-grams of a text, and how often each occurs. Empty for text in other scripts."""
    if text.isascii():
        return Counter()
    counts: Counter[str] = Counter()
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        counts.update([run] if len(run) == 1 else (run[start : start + 2] for start in range(len(run) - 1)))
    return Counter({_id(gram): count for gram, count in counts.items()})


def _id(gram: str) -> int:
    return int.from_bytes(hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=4, person=b"ngram").digest(), "big")
