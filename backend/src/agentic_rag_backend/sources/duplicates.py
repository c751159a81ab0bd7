"""Finds documents that equal or resemble an earlier one, by MinHash sketches of their words.

The Jaccard similarity of two texts' sets of shingles (five words in a row) is the probability that both sets have the same first
shingle in a random order of all shingles: Broder, "On the resemblance and containment of documents", 1997. A sketch keeps
eight bits of each minimum: Li and König, "b-Bit minwise hashing", 2010. Candidates are found by bands of minima: Leskovec,
Rajaraman and Ullman, "Mining of Massive Datasets", section 3.4.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agentic_rag_backend.sources.fingerprints import FingerprintTable, hash_content

SHINGLE_WORDS = 5
MINIMA = 128
"""Number of random orders. The standard error of an estimate of 0.9 is 0.027."""
BANDS, BAND_MINIMA = 8, 6
"""Two texts of similarity 0.9 share a band with a probability of 0.998, texts of similarity 0.5 with 0.12."""
THRESHOLD = 0.9
MAX_COMPARED = 250_000
"""Number of documents remembered, at about 400 bytes each. Later documents are compared with these only."""

_SEED = 1997
_BLOCK = 512
_PIECE = 65_536
_WORDS_KEPT = 65_536
_BY_CHANCE = 1 / 256
_SCRIPTS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
"""Kana, Han and Hangul: written with few or no spaces, so each character counts as a word."""
_WORD = re.compile(f"[{_SCRIPTS}]|[^\\W{_SCRIPTS}]+")
_BREAK = re.compile(r"\s")
_MARKS = ((b"\xff\xfe\x00\x00", "utf-32"), (b"\x00\x00\xfe\xff", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
Hashes: TypeAlias = NDArray[np.uint64]
Minima: TypeAlias = NDArray[np.uint32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A document and the earlier one it resembles.

    ``similarity`` is estimated, 0 to 1. ``exact`` means equal bytes, or equal texts if parsers made them.
    """

    key: str
    of: str
    similarity: float
    exact: bool


class Sketcher:
    """Makes sketches. Sketches of different sketchers can be compared. Not thread-safe."""

    def __init__(self) -> None:
        random = np.random.default_rng(_SEED)
        self._factors: Hashes = random.integers(0, 2**64, MINIMA, dtype=np.uint64) | np.uint64(1)
        self._offsets: Hashes = random.integers(0, 2**64, MINIMA, dtype=np.uint64)
        self._words = _Words()

    def sketch_text(self, text: str) -> Minima | None:
        """Return the `MINIMA` minima of a text's shingles. None if it has no words. Case and punctuation are ignored."""
        least = np.full(MINIMA, 2**64 - 1, dtype=np.uint64)
        has_words = False
        for shingles in self._hash_shingles(text):
            for start in range(0, len(shingles), _BLOCK):
                has_words = True
                block = shingles[start : start + _BLOCK, None] * self._factors + self._offsets
                np.minimum(least, block.min(axis=0), out=least)
        return (least >> np.uint64(32)).astype(np.uint32) if has_words else None

    def _hash_shingles(self, text: str) -> Iterator[Hashes]:
        """Yield the hashes of the shingles, in pieces. A text with fewer words than a shingle gives one hash of all words."""
        before: Hashes = np.empty(0, dtype=np.uint64)
        is_whole = True
        for piece in _cut_pieces(text):
            words = _WORD.findall(piece.lower())
            word_hashes = np.array([self._words[word] for word in words], dtype=np.uint64)
            joined = np.concatenate((before, word_hashes))
            if len(joined) >= SHINGLE_WORDS:
                is_whole = False
                yield _mix_bits(_in_a_row(joined, SHINGLE_WORDS))
            before = joined[-(SHINGLE_WORDS - 1) :]
        if is_whole and len(before):
            yield _mix_bits(_in_a_row(before, len(before)))


def estimate_similarity(low_bytes: NDArray[np.uint8], other_low_bytes: NDArray[np.uint8]) -> float:
    """Return the estimated Jaccard similarity of two texts, 0 to 1, from the low bytes of their minima."""
    equal = float(np.count_nonzero(low_bytes == other_low_bytes)) / MINIMA
    return max(0.0, (equal - _BY_CHANCE) / (1 - _BY_CHANCE))


class DuplicateFinder:
    """Compares each document with the earlier ones. Keeps the first ``max_pairs`` pairs and counts all pairs."""

    def __init__(self, *, max_pairs: int, max_compared: int = MAX_COMPARED) -> None:
        self.pairs: list[Duplicate] = []
        self.found = 0
        self.compared = 0
        self._listed = max_pairs
        self._most = max_compared
        self._sketcher = Sketcher()
        self._contents = FingerprintTable()
        self._bands = FingerprintTable()
        self._sketches = bytearray()
        self._keys = bytearray()
        self._key_ends = array("Q")

    def add_document(self, key: str, content: bytes) -> Duplicate | None:
        """Return the earlier document that ``content`` resembles most, if its similarity is at least `THRESHOLD`."""
        minima = self._sketcher.sketch_text(_decode_content(content))
        if minima is None:
            return None
        self.compared += 1
        low = minima.astype(np.uint8)
        content_hash, bands = hash_content(content), _band_fingerprints(minima)
        duplicate = self._find_nearest(key, low, content_hash, bands)
        if duplicate is not None:
            self.found += 1
            if len(self.pairs) < self._listed:
                self.pairs.append(duplicate)
        if len(self._key_ends) < self._most:
            self._remember_document(key, low, content_hash, bands)
        return duplicate

    @property
    def remembered(self) -> int:
        """Number of documents that later ones are compared with."""
        return len(self._key_ends)

    def _find_nearest(self, key: str, low: NDArray[np.uint8], content_hash: int, bands: list[int]) -> Duplicate | None:
        same_content = self._contents.find_number(content_hash)
        if same_content is not None and np.array_equal(self._sketch_of(same_content), low):
            return Duplicate(key=key, of=self._key_of(same_content), similarity=1.0, exact=True)
        candidates = sorted({number for number in map(self._bands.find_number, bands) if number is not None})
        # Of equals the earliest, so that a report does not depend on how the tables lie.
        best = max(
            ((estimate_similarity(self._sketch_of(candidate), low), -candidate) for candidate in candidates), default=(0.0, 0)
        )
        if best[0] < THRESHOLD:
            return None
        return Duplicate(key=key, of=self._key_of(-best[1]), similarity=round(best[0], 3), exact=False)

    def _remember_document(self, key: str, low: NDArray[np.uint8], content_hash: int, bands: list[int]) -> None:
        number = len(self._key_ends)
        self._contents.store_first(content_hash, number)
        for band in bands:
            # The first of many alike stands for them all: a look-up never costs more than one comparison a band.
            self._bands.store_first(band, number)
        self._sketches += low.tobytes()
        self._keys += key.encode("utf-8", errors="surrogateescape")
        self._key_ends.append(len(self._keys))

    def _sketch_of(self, number: int) -> NDArray[np.uint8]:
        # A copy: a view would keep the buffer from growing.
        return np.frombuffer(bytes(self._sketches[number * MINIMA : (number + 1) * MINIMA]), dtype=np.uint8)

    def _key_of(self, number: int) -> str:
        start = self._key_ends[number - 1] if number else 0
        return self._keys[start : self._key_ends[number]].decode("utf-8", errors="surrogateescape")


class _Words(dict[str, int]):
    """Fingerprints of words, kept while they are few."""

    def __missing__(self, word: str) -> int:
        if len(self) >= _WORDS_KEPT:
            self.clear()
        word_hash = self[word] = hash_content(word.encode("utf-8", errors="surrogatepass"))
        return word_hash


def _cut_pieces(text: str) -> Iterator[str]:
    """Cut a long text at white space, so that its words are never all in memory."""
    start = 0
    while len(text) - start > _PIECE:
        break_match = _BREAK.search(text, start + _PIECE)
        end = break_match.end() if break_match else len(text)
        yield text[start:end]
        start = end
    yield text[start:]


def _in_a_row(words: Hashes, count: int) -> Hashes:
    total: Hashes = np.zeros(len(words) - count + 1, dtype=np.uint64)
    for offset in range(count):
        total = total * np.uint64(0x9E3779B97F4A7C15) + words[offset : offset + len(total)]
    return total


def _mix_bits(hashes: Hashes) -> Hashes:
    """Spread every bit over all (the finaliser of SplitMix64: Steele, Lea and Flood, 2014)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


def _band_fingerprints(minima: Minima) -> list[int]:
    rows = minima[: BANDS * BAND_MINIMA].astype(np.uint64).reshape(BANDS, BAND_MINIMA)
    total: Hashes = np.arange(1, BANDS + 1, dtype=np.uint64)
    for column in range(BAND_MINIMA):
        total = _mix_bits(total + rows[:, column])
    return [int(band) for band in total]


def _decode_content(content: bytes) -> str:
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8-sig")
    return content.decode(encoding, errors="replace")
