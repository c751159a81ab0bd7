"""Files that a Word document inserts as a whole (``altChunk``): HTML, text, RTF and Word documents."""

from __future__ import annotations

import posixpath

from agentic_rag_backend.documents.parsing.base import sniff_content
from agentic_rag_backend.documents.parsing.building import TextBuilder
from agentic_rag_backend.documents.parsing.containers import ZipContainer
from agentic_rag_backend.domain.media_types import DOCX, media_type_of
from agentic_rag_backend.errors import AgenticRagError

MAX_INSERTED = 50
"""Inserted files of a document that are read."""
_KIND = "inserted files"


class InsertedFiles:
    """Reads up to ``limit`` files that the body of a document inserts, and counts the others."""

    def __init__(self, container: ZipContainer, main_part: str, *, limit: int) -> None:
        self._container, self._left = container, limit
        folder, name = posixpath.split(main_part)
        self._names: dict[str | None, str] = {}
        relationships = f"{folder}/_rels/{name}.rels"
        if relationships in container:
            for relationship in container.read_tree(relationships):
                if relationship.get("TargetMode") != "External":
                    target = posixpath.normpath(posixpath.join("/", folder, relationship.get("Target") or "")).lstrip("/")
                    self._names[relationship.get("Id")] = target

    def add_file(self, builder: TextBuilder, relationship_id: str | None) -> None:
        """Add the text of a file; count it if it cannot be read."""
        from agentic_rag_backend.documents.parsing.office.word.docx import DocxParser  # which imports this module
        from agentic_rag_backend.documents.parsing.registry import parser_of

        name = self._names.get(relationship_id)
        self._left -= 1
        if name is None or name not in self._container or self._left < 0:
            builder.omissions.add(_KIND)
            return
        content = self._container.read_member(name)
        try:
            media_type = media_type_of(None, name, sniff_content(content))
            parser = DocxParser(inserts=False) if media_type == DOCX else parser_of(media_type)
            parsed = parser.parse(content)
            builder.size_bytes = (builder.size_bytes or 0) + len(content)
            builder.add_document(parsed, level=0)
            builder.omissions.add("parts of inserted files", count=len(parsed.warnings))
        except AgenticRagError:
            builder.omissions.add(_KIND)
