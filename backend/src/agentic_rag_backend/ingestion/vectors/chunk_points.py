"""Points of chunks and of their synthetic questions in the vector store.

Both are in the collection of chunks, because they come and go with a version of a document. Their kinds keep them apart: a
search of chunks never finds questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.documents.chunking.passages import passage_text
from agentic_rag_backend.language.titles import split_words, words_of_name
from agentic_rag_backend.stores.catalogue.base import PreparedChunk, PreparedQuestion
from agentic_rag_backend.stores.vector.base import NodeKind, VectorPoint


def add_name_words(text: str, key: str | None) -> str:
    """Return the words under which a chunk is searched: ``text``, and those of the file's name that it lacks."""
    words = words_of_name(key or "")
    known_words = set(split_words(text.casefold())) if words else set()
    new_words = [word for word in words if word.casefold() not in known_words]
    return "\n".join((text, " ".join(new_words))) if new_words else text


@dataclass(frozen=True, slots=True, kw_only=True)
class PointFields:
    """The fields that all points of a document's version share. ``key`` is the caller's key, if it gave one."""

    document_id: str
    version: int
    key: str | None
    title: str
    metadata: Mapping[str, Any]

    def make_points(self, prepared: Iterable[PreparedChunk]) -> list[VectorPoint]:
        """Return the points of chunks and of their questions."""
        points = []
        for item in prepared:
            points.append(self.make_chunk_fields(item))
            points += self.make_question_fields(item.questions.items if item.questions is not None else ())
        return points

    def make_chunk_fields(self, item: PreparedChunk) -> VectorPoint:
        """Return the point of a chunk."""
        return VectorPoint(
            id=item.chunk.id,
            kind=NodeKind.CHUNK,
            dense=item.vector,
            text=add_name_words(passage_text(self.title, item.chunk), self.key),
            document_id=self.document_id,
            version=self.version,
            key=self.key,
            title=self.title,
            metadata=self.metadata,
        )

    def make_question_fields(self, items: Iterable[PreparedQuestion]) -> list[VectorPoint]:
        """Return the points of questions, without those that the embedder refused.

        They are found by their vectors only. Their words are mostly the chunk's own, which BM25 finds in the chunk.
        """
        return [
            VectorPoint(
                id=item.question.id,
                kind=NodeKind.QUESTION,
                dense=item.vector,
                document_id=self.document_id,
                version=self.version,
                key=self.key,
                title=self.title,
                metadata=self.metadata,
            )
            for item in items
            if item.vector is not None
        ]
