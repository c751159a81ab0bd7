"""Column types and row codecs with equal behaviour on SQLite and PostgreSQL."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import DateTime, LargeBinary, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from agentic_rag_backend.domain.document import AttachmentOptions, ChunkingOptions, Failure, ProcessingOptions, QuestionOptions
from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, NameDescription
from agentic_rag_backend.errors import InvalidRequest


def utc_now() -> datetime:
    """Return the current time, aware and in UTC."""
    return datetime.now(UTC)


def encode_json(value: Any) -> str:
    """Return ``value`` as JSON text. Dataclasses become objects, NaN and infinities become null.

    Raises:
        InvalidRequest: a part of it has no JSON form, such as an integer beyond 64 bits.
    """
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError as error:
        raise InvalidRequest(f"a value cannot be stored as JSON: {error}") from error


def plain(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``value`` in the form in which it will be read back: tuples as lists, other mappings as dicts."""
    decoded: dict[str, Any] = orjson.loads(encode_json(dict(value)))
    return decoded


class UtcDateTime(TypeDecorator[datetime]):
    """Aware time. SQLite stores no zone, so times are stored in UTC and read as UTC. Naive times are refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time needs a zone to be stored; got {value!r}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return an aware time in UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Json(TypeDecorator[Any]):
    """JSON as text on both databases: equal bytes and comparisons, encoded by orjson."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Encode."""
        return None if value is None else encode_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        """Decode."""
        return None if value is None else orjson.loads(value)


class PackedJson(TypeDecorator[Any]):
    """Deflated JSON, for long, repetitive values that only this program reads."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        """Encode."""
        return None if value is None else zlib.compress(encode_json(value).encode(), level=1)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> Any:
        """Decode."""
        return None if value is None else orjson.loads(zlib.decompress(value))


def options_to_json(options: ProcessingOptions) -> dict[str, Any]:
    """Return ``options`` as a JSON object."""
    return asdict(options)


def options_from_json(value: Mapping[str, Any]) -> ProcessingOptions:
    """Return the options that `options_to_json` encoded. Earlier releases had only the first two."""
    return ProcessingOptions(
        chunking=ChunkingOptions(**value["chunking"]),
        extraction=value["extraction"],
        charset=value.get("charset"),
        questions=QuestionOptions(**value.get("questions", {})),
        attachments=AttachmentOptions(**value.get("attachments", {})),
    )


def failures_from_json(value: list[dict[str, Any]]) -> tuple[Failure, ...]:
    """Return the failures of a row."""
    return tuple(Failure(**item) for item in value)


def extraction_from_json(value: Mapping[str, Any]) -> Extraction:
    """Return the extraction from a value of `encode_json`."""
    return Extraction(
        chunk_id=value["chunk_id"],
        mentions=tuple(EntityMention(**item) for item in value["mentions"]),
        relationships=tuple(ExtractedRelationship(**item) for item in value["relationships"]),
        aliases=tuple(Alias(**item) for item in value["aliases"]),
        descriptions=tuple(NameDescription(**item) for item in value.get("descriptions", ())),
        rejected=value.get("rejected", 0),
        failure=Failure(**value["failure"]) if value.get("failure") else None,
    )
