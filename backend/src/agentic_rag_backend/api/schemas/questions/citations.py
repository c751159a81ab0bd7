"""Citations of an answer, and its checked sentences."""

from __future__ import annotations

from pydantic import Field

from agentic_rag_backend.api.schemas.base import View
from agentic_rag_backend.api.schemas.documents.places import FilePlace, file_place
from agentic_rag_backend.domain.answer import CheckedClaim, Citation, ClaimStatus


class CitationView(FilePlace):
    marker: int
    chunk_id: str
    document_id: str
    title: str
    quote: str
    start_char: int
    end_char: int

    @classmethod
    def of(cls, citation: Citation) -> CitationView:
        """Return the view of a citation."""
        return cls(
            marker=citation.marker,
            chunk_id=citation.chunk_id,
            document_id=citation.document_id,
            title=citation.title,
            quote=citation.quote,
            start_char=citation.start_char,
            end_char=citation.end_char,
            **file_place(citation.regions),
        )


class ClaimView(View):
    text: str
    supported: bool
    status: ClaimStatus = Field(
        description="`unverified`: nothing could decide; `contradicted`: the passages state otherwise, or a language model found "
        "that they do not state it"
    )
    reason: str | None = Field(
        description="why it is not supported: unsupported, negated, number, name, modality, roles, quote or language"
    )
    markers: list[int]
    start_char: int | None = Field(description="place in `answer`, without markers; null if it was left out")
    end_char: int | None

    @classmethod
    def of(cls, claim: CheckedClaim) -> ClaimView:
        """Return the view of a checked sentence."""
        return cls(
            text=claim.text,
            supported=claim.supported,
            status=claim.status,
            reason=claim.reason,
            markers=list(claim.markers),
            start_char=claim.start_char,
            end_char=claim.end_char,
        )
