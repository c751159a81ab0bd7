"""An answer and its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentic_rag_backend.domain.contradictions import Contradiction
from agentic_rag_backend.domain.location import Region
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.usage import Usage as Usage

ClaimStatus = Literal["supported", "unverified", "contradicted"]
"""Whether passages state a sentence. ``unverified``: nothing could decide. ``contradicted``: they state otherwise, or a language
model found that they do not state it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A checked reference: ``quote`` equals the document's visible text at ``[start_char, end_char)``, character by character.

    ``regions`` are the places of the quote in the file; empty if the file has no pages, sheets or boxes.
    """

    marker: int
    chunk_id: str
    document_id: str
    title: str
    quote: str
    start_char: int
    end_char: int
    regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """A sentence of the model and the result of its check.

    ``reason`` says why it is not supported; None if it is. ``markers`` are its citations. ``start_char`` and ``end_char`` are its
    place in the answer's text, without its markers; None if it was left out.
    """

    text: str
    status: ClaimStatus
    reason: str | None = None
    markers: tuple[int, ...] = ()
    start_char: int | None = None
    end_char: int | None = None

    @property
    def supported(self) -> bool:
        """Whether passages state it."""
        return self.status == "supported"

    @property
    def included(self) -> bool:
        """Whether it is in the answer's text."""
        return self.start_char is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedQuestion:
    """A verification question with an answer that was written without the first answer, from passages found for the question.

    ``grounded`` is false if the documents do not answer it, or if the model failed. ``citations`` are those of ``answer``.
    """

    question: str
    answer: str
    grounded: bool
    citations: tuple[Citation, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The steps between the first answer and its revision."""

    initial_answer: str
    questions: tuple[CheckedQuestion, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``text`` carries markers ``[n]``, each with a citation. ``grounded`` is false for a refusal.

    ``confidence`` in [0, 1] estimates the chance that the answer is supported; ``estimate`` is its value before a tuned scale
    (None: equal). ``claims`` are all sentences of the model, those left out included. ``grounded`` is also false if no sentence
    is supported. ``generator`` is the generator that answered.
    """

    text: str
    citations: tuple[Citation, ...]
    confidence: float
    grounded: bool
    retrieval: Retrieval
    usage: Usage = field(default_factory=Usage)
    generator: str = "attributed"
    model: str = "extractive"
    claims: tuple[CheckedClaim, ...] = ()
    verification: Verification | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    estimate: float | None = None
    contradictions: tuple[Contradiction, ...] = ()
    """Contradictions of which a cited sentence is one side."""
    nearest: tuple[Citation, ...] = ()
    """Quotations of the passages nearest to a question that is refused because nothing answers it with enough confidence."""
    id: str = field(default="", compare=False)
    """Names the answer in feedback. Empty: it is not recorded."""
    introduction: str = ""
    """Sentences at the beginning of ``text`` that state what the quoted sentences are. They have no citation."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """Sentences of the model that failed the check and are not in ``text``."""
        return tuple(claim.text for claim in self.claims if not claim.included)
