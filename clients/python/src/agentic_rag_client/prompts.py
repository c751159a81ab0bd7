"""Results in the forms that Anthropic's and OpenAI's clients accept.

A passage has an address at which a person can open it, with a key of the tenant. It is below the address of the server, unless
``address`` names another one, such as PUBLIC_URL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from agentic_rag_client.model import ResponseInfo
    from agentic_rag_client.models import Citation, Claim, Result


class SearchForms:
    """Forms of a search result."""

    if TYPE_CHECKING:
        results: list[Result]
        _response: ResponseInfo | None

    def to_anthropic(self, *, address: str | None = None) -> list[dict[str, Any]]:
        """Return the passages as ``search_result`` blocks of Anthropic's Messages API, with citations enabled.

        They can be the content of a user's message or of a ``tool_result``.
        """
        return _list_search_results(self.results, address or _origin_of(self))

    def to_openai(self) -> list[dict[str, Any]]:
        """Return the passages as results of a search in a vector store of OpenAI's API."""
        return [
            {
                "file_id": result.document_id,
                "filename": result.title,
                "score": result.score,
                "attributes": {name: value for name, value in result.metadata.items() if isinstance(value, (str, int, float))},
                "content": [{"type": "text", "text": result.content}],
            }
            for result in self.results
        ]


class AnswerForms:
    """Forms of an answer."""

    if TYPE_CHECKING:
        answer: str
        citations: list[Citation]
        claims: list[Claim]
        sources: list[Result]
        _response: ResponseInfo | None

    def search_results(self, *, address: str | None = None) -> list[dict[str, Any]]:
        """Return the sources as ``search_result`` blocks, to which the citations of `to_anthropic` refer."""
        return _list_search_results(self.sources, address or _origin_of(self))

    def to_anthropic(self, *, address: str | None = None) -> list[dict[str, Any]]:
        """Return the answer as text blocks of an assistant's message, each with its citations."""
        root, end = address or _origin_of(self), 0
        blocks: list[dict[str, Any]] = []
        indices = {result.id: index for index, result in enumerate(self.sources)}
        for claim in sorted(self._claims_in_text(), key=lambda claim: claim.start_char or 0):
            start = claim.start_char or 0
            if start < end:
                continue
            blocks += [{"type": "text", "text": self.answer[end:start]}] if self.answer[end:start].strip() else []
            end = claim.end_char or start
            citations = [
                {
                    "type": "search_result_location",
                    "source": passage_address(root, citation.document_id, citation.chunk_id),
                    "title": citation.title,
                    "cited_text": citation.quote,
                    "search_result_index": indices[citation.chunk_id],
                    "start_block_index": 0,
                    "end_block_index": 1,
                }
                for citation in self.citations
                if citation.marker in claim.markers and citation.chunk_id in indices
            ]
            blocks.append({"type": "text", "text": self.answer[start:end], **({"citations": citations} if citations else {})})
        return [*blocks, *([{"type": "text", "text": self.answer[end:]}] if self.answer[end:].strip() else [])]

    def to_openai(self, *, address: str | None = None) -> dict[str, Any]:
        """Return the answer as an assistant's message with annotations, as `/openai/v1/chat/completions` returns it."""
        root, annotations = address or _origin_of(self), []
        claims = self._claims_in_text()
        for citation in self.citations:
            claim = next((claim for claim in claims if citation.marker in claim.markers), None)
            start, end = (claim.start_char or 0, claim.end_char or 0) if claim is not None else (0, len(self.answer))
            url = passage_address(root, citation.document_id, citation.chunk_id)
            citation_fields = {"url": url, "title": citation.title, "start_index": start, "end_index": end}
            annotations.append({"type": "url_citation", "url_citation": citation_fields})
        return {"role": "assistant", "content": self.answer, "annotations": annotations}

    def _claims_in_text(self) -> list[Claim]:
        return [claim for claim in self.claims if claim.start_char is not None]


def passage_address(root: str, document_id: str, chunk_id: str) -> str:
    """Return the address at which a person can open a passage."""
    return f"{root.rstrip('/')}/console/#/d/{quote(document_id, safe='')}?{urlencode({'chunk': chunk_id})}"


def _list_search_results(results: Sequence[Result], root: str) -> list[dict[str, Any]]:
    return [
        {
            "type": "search_result",
            "source": passage_address(root, result.document_id, result.id),
            "title": result.title,
            "content": [{"type": "text", "text": result.content}],
            "citations": {"enabled": True},
        }
        for result in results
    ]


def _origin_of(result: Any) -> str:
    response: ResponseInfo | None = result._response
    return response.origin if response is not None else ""
