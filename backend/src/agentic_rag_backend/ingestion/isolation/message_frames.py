"""The protocol between the processes: frames of ``kind, length, payload`` over a socket, and the allowed payload values."""

from __future__ import annotations

import io
import pickle
import struct
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from enum import IntEnum
from typing import Any

from agentic_rag_backend.documents.chunking.base import Piece
from agentic_rag_backend.documents.parsing.base import Attachment, Heading, PageFrame, ParsedDocument
from agentic_rag_backend.domain.document import AttachmentOptions, Chunk, CodeName, CodeRelation, Failure
from agentic_rag_backend.domain.graph import (
    Alias,
    DocumentKnowledge,
    Entity,
    EntityMention,
    ExtractedRelationship,
    Extraction,
    Mention,
    NameDescription,
    OtherName,
    Relationship,
    RelationshipSupport,
    Support,
)
from agentic_rag_backend.domain.location import Location, Region
from agentic_rag_backend.knowledge.identity.names import DocumentNames, OwnName
from agentic_rag_backend.language.descriptions import Description

HEADER = struct.Struct("!BQ")
PROTOCOL = pickle.HIGHEST_PROTOCOL

_READABLE: Mapping[tuple[str, str], type] = {
    (value_class.__module__, value_class.__qualname__): value_class
    for value_class in (
        Alias,
        Attachment,
        AttachmentOptions,
        Chunk,
        EntityMention,
        ExtractedRelationship,
        Extraction,
        Failure,
        Heading,
        Location,
        NameDescription,
        PageFrame,
        ParsedDocument,
        Piece,
        Region,
        CodeName,
        CodeRelation,
        Description,
        DocumentKnowledge,
        DocumentNames,
        Entity,
        Mention,
        OtherName,
        OwnName,
        Relationship,
        RelationshipSupport,
        Support,
        datetime,
        timezone,
        timedelta,
    )
}


class Reply(IntEnum):
    """Kinds of a worker's replies."""

    RESULT = 0
    REFUSED = 1
    """An error for the document's owner: the name of its class and its message."""
    OUT_OF_MEMORY = 2
    FAULT = 3
    """An error of the code: its class and its traceback."""


class _Values(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _READABLE:
            raise pickle.UnpicklingError(f"a worker's reply must not hold {module}.{name}")
        return _READABLE[module, name]


def pack_value(value: object) -> bytes:
    """Return a payload of plain values and document values."""
    return pickle.dumps(value, PROTOCOL)


def unpack_value(payload: bytes | bytearray) -> Any:
    """Return the value of a payload from a worker. Only classes of document values are ever called for it.

    Raises:
        pickle.UnpicklingError: it contains another class.
    """
    return _Values(io.BytesIO(payload)).load()
