"""Verdicts about claims that cite passages in other languages than English."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentic_rag_backend.generation.claims.base import Reason, Verdict
from agentic_rag_backend.generation.claims.languages.across import MAX_QUOTES, Candidate, candidates
from agentic_rag_backend.generation.claims.languages.check import MAX_CLAIM_CHARACTERS, check_in_language
from agentic_rag_backend.generation.claims.languages.passages import ReadPassage, ReadText, language_of_claim
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.claims.thresholds import MIN_SUPPORT
from agentic_rag_backend.generation.context import Passage
from agentic_rag_backend.language.languages import ENGLISH, foreign_script_of

MIN_UNCITED_SUPPORT = 0.8
"""Share that another passage must cover to support a claim without valid citations."""
UNKNOWN = "und"
"""Code of a language that is written in a script of several languages."""
_MIN_LETTERS = 8
_UNDECIDED = ("unsupported", "language")
"""Reasons that are no contradictions."""


class PassageLanguages:
    """The passages of one answer by their language.

    Those that are in English, or show no language, are checked by English rules.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._read = {passage.marker: ReadPassage(passage) for passage in passages}
        for passage in self._read.values():
            if passage.language is None and foreign_script_of(passage.text, least=_MIN_LETTERS) is not None:
                passage.language = UNKNOWN
        self.others: Mapping[int, ReadPassage] = {
            marker: passage for marker, passage in self._read.items() if passage.language not in (None, ENGLISH)
        }
        """The passages in other languages, by marker."""

    def check(self, claim: Claim, english: Verdict) -> Verdict:
        """Return the verdict of a claim that passages in English do not state; ``english`` says why."""
        cited = [marker for marker in claim.markers if marker in self._read]
        passages = [passage for _, passage in self._own(claim)]
        texts = {language: ReadText(claim.text, language) for language in {passage.language for passage in passages}}
        own = [(texts[passage.language], passage) for passage in passages]
        reasons: dict[int, Reason] = {}
        named = [(text, passage) for text, passage in own if passage.passage.marker in cited]
        if named:
            supports, reason = check_in_language(named[0][0], [passage for _, passage in named], MIN_SUPPORT)
            if reason is None:
                return Verdict(claim, supports)
            reasons = {passage.passage.marker: reason for _, passage in named}
        for text, passage in own:
            supports, reason = check_in_language(text, [passage], MIN_UNCITED_SUPPORT)
            if reason is None:
                return Verdict(claim, supports)
        for marker in cited or self._read:
            if marker in reasons:
                return Verdict(claim, reason=reasons[marker])
            if marker in self.others and all(passage.passage.marker != marker for _, passage in own):
                return Verdict(claim, reason="language")
        return english

    def across(self, verdict: Verdict, covering: frozenset[int]) -> list[Candidate]:
        """Return the quotes in another language than the claim's, of cited passages first; `MAX_QUOTES` at most.

        None for a claim that contradicts a passage in its own language: an embedder does not see that names changed places.

        Args:
            covering: markers of passages in English that cover so much of the claim that it is in English.
        """
        claim = verdict.claim
        if len(claim.text) > MAX_CLAIM_CHARACTERS:
            return []
        order = sorted(self._read, key=lambda marker: (marker not in claim.markers, marker))
        languages = {marker: self._language(claim, self._read[marker]) for marker in order}
        compared = [
            marker for marker in order if marker not in covering and not _same(languages[marker], self._read[marker].language)
        ]
        if verdict.reason not in _UNDECIDED and any(marker not in compared for marker in self._asked(claim)):
            return []
        found: list[Candidate] = []
        for marker in compared:
            found += candidates(ReadText(claim.text, languages[marker]), [self._read[marker]])
        return found[:MAX_QUOTES]

    def _asked(self, claim: Claim) -> list[int]:
        """Return the markers of the passages that a claim is checked with first: those that it cites, or all."""
        return [marker for marker in claim.markers if marker in self._read] or list(self._read)

    def _own(self, claim: Claim) -> Iterator[tuple[int, ReadPassage]]:
        """Yield the passages in the claim's language, if this is not English."""
        for marker, passage in self.others.items():
            if self._language(claim, passage) == passage.language:
                yield marker, passage

    def _language(self, claim: Claim, passage: ReadPassage) -> str | None:
        """Return the language of a claim about a passage.

        The words that the passage lacks must show another language, too: "van der Rohe" is no Dutch if the passage names him.
        """
        found = language_of_claim(claim.text, passage.language)
        if _same(found, passage.language):
            return passage.language
        further = language_of_claim(passage.lacking(claim.text), passage.language)
        return passage.language if _same(further, passage.language) else found


def _same(one: str | None, other: str | None) -> bool:
    """Return whether two languages are one; a text that shows none counts as English."""
    return (one or ENGLISH) == (other or ENGLISH)
