"""Build an answer sentence by sentence: judge each claim, number its citations, write its markers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agentic_rag_backend.domain.answer import Citation
from agentic_rag_backend.generation.base import CitationEvent, CitationStyle, Judge, TokenEvent
from agentic_rag_backend.generation.claims.base import SupportingSpan
from agentic_rag_backend.generation.claims.reading import Claim


@dataclass(slots=True)
class AnswerDraft:
    """An answer in the making. Markers count 1..n in the order of first use; one quote of one chunk has one marker."""

    judge: Judge
    style: CitationStyle = "numeric"
    citations: list[Citation] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    kept: int = 0
    _texts: list[str] = field(default_factory=list)
    _numbers: dict[tuple[str, int, int], int] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentences kept so far."""
        return "".join(self._texts)

    def add(self, claims: Iterable[Claim]) -> list[CitationEvent | TokenEvent]:
        """Judge claims and return the new events, citations before the sentence that carries their marker."""
        events: list[CitationEvent | TokenEvent] = []
        for claim in claims:
            judged = self.judge(claim)
            if not judged.kept:
                self.dropped.append(claim.text)
                continue
            before = len(self.citations)
            markers = [self._number(support) for support in judged.supports]
            events += [CitationEvent(citation) for citation in self.citations[before:]]
            separator = claim.separator if self._texts else claim.separator.lstrip()
            text = f"{separator}{' '.join(claim.text.split())}{self._written(judged.supports, markers)}"
            self.kept += 1
            self._texts.append(text)
            events.append(TokenEvent(text))
        return events

    def _number(self, support: SupportingSpan) -> int:
        passage = support.passage
        start, end = passage.start_char + support.start, passage.start_char + support.end
        place = (passage.chunk_id, start, end)
        number = self._numbers.setdefault(place, len(self._numbers) + 1)
        if number > len(self.citations):
            self.citations.append(
                Citation(
                    marker=number,
                    chunk_id=passage.chunk_id,
                    document_id=passage.document_id,
                    title=passage.title,
                    quote=support.quote,
                    start_char=start,
                    end_char=end,
                )
            )
        return number

    def _written(self, supports: Sequence[SupportingSpan], markers: Sequence[int]) -> str:
        if not markers or self.style == "none":
            return ""
        if self.style == "title":
            titles = dict.fromkeys(support.passage.title for support in supports)
            return f" ({'; '.join(titles)})"
        return " " + "".join(f"[{number}]" for number in dict.fromkeys(markers))
