"""Finds other forms of a word among the words of a text, without comparing it with each of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from agentic_rag_backend.generation.claims.languages.terms import ALIKE, SHORTEST, alike, same_name, trigrams

MAX_INDEXED = 5_000
"""Different words of a text that are compared with words of another form. Further ones must be equal."""
_BEGINNING = 3


class FormIndex:
    """The words of a text by their trigrams and by their first letters."""

    def __init__(self, forms: Iterable[str]) -> None:
        ordered = dict.fromkeys(forms)
        self._forms = frozenset(ordered)
        self._by_trigram: dict[str, list[str]] = {}
        self._by_beginning: dict[str, list[str]] = {}
        self._found: dict[str, frozenset[str]] = {}
        for form in [form for form in ordered if len(form) >= _BEGINNING][:MAX_INDEXED]:
            self._by_beginning.setdefault(form[:_BEGINNING], []).append(form)
            for trigram in trigrams(form) if len(form) >= SHORTEST and form.isalpha() else ():
                self._by_trigram.setdefault(trigram, []).append(form)

    def alike_to(self, form: str) -> frozenset[str]:
        """Return the words that are `alike` to ``form``."""
        if form not in self._found:
            self._found[form] = frozenset(other for other in set(self._candidates(form)) if alike(form, other))
        return self._found[form]

    def names(self, form: str, endings: frozenset[str]) -> bool:
        """Return whether a word is `same_name` as ``form``."""
        beginning = self._by_beginning.get(form[:_BEGINNING], ())
        return form in self._forms or any(same_name(form, other, endings) for other in beginning)

    def _candidates(self, form: str) -> Iterator[str]:
        """Yield words that begin with the same letters, or have enough trigrams in common if they have one of the rarest.

        Of two sets of trigrams that are alike (Dice), the second has at least this share of the first. So a word without any of
        the remaining ones cannot be alike.
        """
        if len(form) < SHORTEST:
            return
        yield from self._by_beginning.get(form[:_BEGINNING], ())
        rarest = sorted(trigrams(form), key=lambda trigram: (len(self._by_trigram.get(trigram, ())), trigram))
        shared = max(1, math.ceil(ALIKE / (2 - ALIKE) * len(rarest) - 1e-9))
        for trigram in rarest[: len(rarest) - shared + 1]:
            yield from self._by_trigram.get(trigram, ())
