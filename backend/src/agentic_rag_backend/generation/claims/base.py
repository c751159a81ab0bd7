"""The port of claim checks: a verifier decides whether passages state a claim, and which words of theirs do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.generation.claims.reading import Claim
from agentic_rag_backend.generation.context import Passage

Reason = Literal["unsupported", "negated", "number", "name", "modality", "roles", "quote", "language"]
"""Why a claim does not hold. ``unsupported``: no passage states it. ``language``: it is in another language than the passages,
and nothing can compare the two. The others name the contradiction to the nearest passage."""


@dataclass(frozen=True, slots=True)
class SupportingSpan:
    """A verbatim span of a passage that supports a claim: ``passage.text[start:end]``; ``score`` is the share it covers."""

    passage: Passage
    start: int
    end: int
    score: float
    covered: frozenset[str]

    @property
    def quote(self) -> str:
        """The words of the document."""
        return self.passage.text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: ``supports`` in the order of the claim's markers, or the ``reason`` why the claim does not hold."""

    claim: Claim
    supports: tuple[SupportingSpan, ...] = ()
    reason: Reason | None = None

    @property
    def holds(self) -> bool:
        """Whether passages state the claim."""
        return self.reason is None


class ClaimVerifier(Protocol):
    """Checks claims against the passages of one answer. It returns a verdict for every claim and raises no model's error."""

    @property
    def whole(self) -> bool:
        """Whether all claims of an answer must be checked in one call. A stream then waits for the end of the text."""

    @property
    def failures(self) -> Sequence[str]:
        """Parts of the check that failed so far, such as a model's judgement. The other parts decided then."""

    @property
    def usage(self) -> Usage:
        """Usage of the language model so far."""

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdicts in the order of ``claims``."""


VerifierFactory = Callable[[Sequence[Passage], float | None], ClaimVerifier]
"""Returns a verifier of one answer's claims, from the passages and the seconds left for models (None: their own limits)."""
