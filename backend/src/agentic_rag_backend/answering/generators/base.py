"""The generator port: writes an answer from a brief, and checks its sentences."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from agentic_rag_backend.answering.base import Brief, CitationPolicy, CitationStyle, Refusal
from agentic_rag_backend.answering.draft import DraftEvent
from agentic_rag_backend.answering.evidence.context import PromptBudget
from agentic_rag_backend.domain.answer import CheckedClaim, Citation, Verification
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.usage import Usage

Investigate = Callable[[str], Awaitable[Brief]]
"""Retrieves passages for another question, with the strategy, filters and tenant of the answer's own question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """An answer to write.

    Args:
        question: of the user.
        brief: with a request or a text, without a refusal.
        investigate: finds passages for verification questions.
        policy: None: the generator's default.
        budget: of a prompt with the passages.
        patience_s: seconds for all calls of the model; None: the model's own limits apply.
    """

    question: str
    brief: Brief
    investigate: Investigate
    budget: PromptBudget
    policy: CitationPolicy | None = None
    style: CitationStyle = "numeric"
    patience_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A written answer.

    ``generator`` is the generator that answered, a simpler one after a failure. The trace of ``retrieval`` names failures.
    ``refusal`` is the reason if no sentence is in ``text``. ``events`` are those of a stream.
    """

    text: str
    citations: tuple[Citation, ...]
    claims: tuple[CheckedClaim, ...]
    retrieval: Retrieval
    usage: Usage
    generator: str
    model: str
    introduction: str = ""
    refusal: Refusal | None = None
    verification: Verification | None = None
    events: tuple[DraftEvent, ...] = ()

    @property
    def supported(self) -> int:
        """The number of supported sentences."""
        return sum(claim.supported for claim in self.claims)


class Generator(Protocol):
    """Writes answers. An answer never has an unsupported sentence that is not marked."""

    @property
    def name(self) -> str:
        """The name in requests."""

    async def generate(self, assignment: Assignment) -> Generated:
        """Return the whole answer.

        Raises:
            ModelUnavailable: the language model failed and there is no fallback.
        """

    def stream(self, assignment: Assignment) -> AsyncGenerator[DraftEvent | Generated, None]:
        """Yield citations and sentences when they are checked, and last the whole answer. Errors as in `generate`."""
