"""The generator: how a model's sentences become an answer; and the events in which an answer is streamed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from agentic_rag_backend.domain.answer import Answer, Citation, Usage
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.generation.citations import Support
from agentic_rag_backend.generation.claims import Claim
from agentic_rag_backend.generation.context import Passage

CitationStyle = Literal["numeric", "title", "none"]
"""How the text refers to citations: ``[1]``, ``(Title)``, or not at all; the list of citations is the same."""
EVENT_VERSION = 1
"""The ``v`` of every streamed event."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of a claim: ``kept`` says whether it enters the answer, ``supports`` what is cited under it."""

    claim: Claim
    kept: bool
    supports: tuple[Support, ...]


class ClaimJudge(Protocol):
    """Judges the claims of one answer against its evidence, one after the other."""

    def judge(self, claim: Claim) -> Judged:
        """Decide whether a claim enters the answer, and with which citations."""


class Generator(Protocol):
    """A way to turn what a model writes into an answer."""

    @property
    def name(self) -> str:
        """The name a request asks for it by."""

    @property
    def checked(self) -> bool:
        """Whether a claim that its citations do not support is left out."""

    def judge_for(self, passages: Sequence[Passage]) -> ClaimJudge:
        """Return a judge for an answer that rests on ``passages``."""


class FindsPassages(Protocol):
    """A retriever, as answers need it."""

    async def retrieve(self, query: Query) -> Retrieval: ...


class FindsRetrievers(Protocol):
    """Strategies by name, as answers need them."""

    def get(self, name: str) -> FindsPassages: ...


@dataclass(frozen=True, slots=True)
class RetrievalEvent:
    """The results; always first."""

    retrieval: Retrieval


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """A checked sentence with its markers, and the space before it; all of them together are the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class CitationEvent:
    """A citation whose marker the next `TokenEvent` carries for the first time."""

    citation: Citation


@dataclass(frozen=True, slots=True)
class UsageEvent:
    """What the model read and wrote."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class DoneEvent:
    """The whole answer; nothing follows."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """Why there is no answer; nothing follows."""

    error: AgenticRagError


AnswerEvent = RetrievalEvent | TokenEvent | CitationEvent | UsageEvent | DoneEvent | ErrorEvent
