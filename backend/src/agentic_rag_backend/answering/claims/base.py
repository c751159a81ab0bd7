"""The port of claim checks: a verifier decides whether passages state a claim, and which words of theirs do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.domain.answer import ClaimStatus
from agentic_rag_backend.domain.usage import Usage

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
    """The result of a check: ``supports`` in the order of the claim's markers, or the ``reason`` why the claim does not hold.

    The ``supports`` of an unverified claim are the nearest quotes of the passages that it cites, for a reader to check it.
    ``rejected``: the claim is false beyond doubt, or a model has found that the passages do not state it.
    Otherwise a ``reason`` is a suspicion: of 43 sentences that one author wrote and that seem to contradict a quote, 17 are true.
    """

    claim: Claim
    supports: tuple[SupportingSpan, ...] = ()
    reason: Reason | None = None
    rejected: bool = False

    @property
    def holds(self) -> bool:
        """Whether passages state the claim."""
        return self.reason is None

    @property
    def status(self) -> ClaimStatus:
        """The result in one word."""
        if self.reason is None:
            return "supported"
        return "contradicted" if self.rejected else "unverified"


class ClaimVerifier(Protocol):
    """Checks claims against the passages of one answer. It returns a verdict for every claim and raises no model's error.

    `verify` is called for each piece of an answer, and `settle` at its end, with the verdicts that `may_change` names.
    """

    @property
    def failures(self) -> Sequence[str]:
        """Parts of the check that failed so far, such as a model's judgement. The other parts decided then."""

    @property
    def usage(self) -> Usage:
        """Usage of the language model so far."""

    async def verify(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdicts in the order of ``claims``."""

    def may_change(self, verdict: Verdict) -> bool:
        """Return whether `settle` may change a verdict, so that a stream waits with the sentence."""

    async def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Return the final verdicts, in one call of a language model at most."""


VerifierFactory = Callable[[Sequence[Passage], str, float | None], ClaimVerifier]
"""Returns a verifier of one answer's claims, from the passages, the question and the seconds left for models (None: their own
limits)."""
