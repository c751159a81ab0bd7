"""Coverage: the share of a question's words that a passage contains. Words that are rare among the passages weigh more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class QuestionCoverage(Generic[K]):
    """The question's terms that each passage contains, and the weight of each term. Weights sum to 1."""

    held: Mapping[K, frozenset[int]]
    weights: Mapping[int, float]

    def of(self, terms: Set[int]) -> float:
        """Return the weight of ``terms``, in [0, 1]."""
        return sum(self.weights[term] for term in terms)

    def weigh_added_terms(self, source: K, target: K) -> float:
        """Return the weight of the question's terms that ``target`` has and ``source`` lacks."""
        return self.of(self.held.get(target, frozenset()) - self.held.get(source, frozenset()))

    def number_passages(self, numbers: Mapping[K, int]) -> QuestionCoverage[int]:
        """Return the same coverage keyed by the passages' numbers. Passages without a number are left out."""
        return QuestionCoverage({numbers[key]: terms for key, terms in self.held.items() if key in numbers}, self.weights)


def list_terms(question: Set[int], passages: Mapping[K, NDArray[np.int64]]) -> dict[K, frozenset[int]]:
    """Return the question's terms that each passage contains. All passages are compared at once."""
    if not passages:
        return {}
    lengths = np.array([len(terms) for terms in passages.values()])
    all_terms = np.concatenate(list(passages.values()))
    positions = np.flatnonzero(np.isin(all_terms, np.array(list(question), dtype=np.int64)))
    owners = np.searchsorted(np.cumsum(lengths), positions, side="right")
    terms_of_passages: list[list[int]] = [[] for _ in passages]
    for owner, term in zip(owners.tolist(), all_terms[positions].tolist(), strict=True):
        terms_of_passages[owner].append(term)
    return {key: frozenset(terms) for key, terms in zip(passages, terms_of_passages, strict=True)}


def cover(question: frozenset[int], passages: Mapping[K, frozenset[int]]) -> QuestionCoverage[K]:
    """Weigh the question's terms by their rarity among the passages.

    The passages serve as a sample of the corpus, so no vocabulary is stored. A term that all passages contain weighs little, a
    term that no passage contains weighs most.
    """
    shared = {passage: question & terms for passage, terms in passages.items()}
    count = len(passages)
    frequency = Counter(chain.from_iterable(shared.values()))
    weight_of = {df: float(np.log1p((count - df + 0.5) / (df + 0.5))) for df in {0, *frequency.values()}}
    raw = {term: weight_of[frequency[term]] for term in question}
    total = sum(raw.values())
    return QuestionCoverage(
        shared, {term: weight / total for term, weight in raw.items()} if total > 0 else dict.fromkeys(raw, 0.0)
    )


def best_coverage(terms: Callable[[str], frozenset[int]], question: str, texts: Iterable[str]) -> float:
    """Return the largest share of the question's term weight that one text contains.

    Args:
        terms: function from a text to its BM25 terms (`VectorStore.terms`).
    """
    passages = {number: terms(text) for number, text in enumerate(texts)}
    coverage = cover(terms(question), passages)
    return max((coverage.of(terms) for terms in coverage.held.values()), default=0.0)
