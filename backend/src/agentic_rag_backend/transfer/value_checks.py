"""Values of an archive's records: the limits of requests, and limits of computed values that no request contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, AwareDatetime, Field, StrictBool, StrictFloat, StringConstraints, TypeAdapter
from pydantic_core import PydanticCustomError

from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.chunking.registry import KNOWN, SIZES, check_options
from agentic_rag_backend.domain.document import (
    ATTACHMENT_MODES,
    MAX_ATTACHED_DEPTH,
    MAX_ATTACHMENTS,
    MAX_QUESTION_CHARACTERS,
    QUESTION_METHODS,
    Failure,
    ProcessingOptions,
)
from agentic_rag_backend.domain.graph import CommunitySummary, Extraction, Support
from agentic_rag_backend.domain.media_types import FORMATS, MAX_CHARSET_CHARACTERS
from agentic_rag_backend.domain.size_limits import (
    MAX_DOCUMENT_KEY_CHARACTERS,
    MAX_PLACE_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    printable_name,
    short_text,
)
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.ingestion.questions.base import check_options as check_question_options

T = TypeVar("T")
MAX_COUNTER = 2**30
"""Limit of counters that keep growing, such as versions: databases keep them in 31 bits."""
MAX_CHARACTERS = 20_000
"""Limit of a computed text, such as a fact or a summary."""
MAX_WORD_CHARACTERS = 200
"""Limit of names and marks, such as a fingerprint or a type: databases index them."""
MAX_ITEMS = 100_000
"""Limit of a list inside a record."""
MAX_MEMBERS = 500_000
"""Limit of a community's members."""
MAX_LEVEL = 20
MAX_DETAIL_DEPTH = 4
_FIRST, _LAST = datetime(1, 1, 3, tzinfo=UTC), datetime(9999, 12, 29, tzinfo=UTC)
"""Limits of times that every time zone can express."""

Uuid = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
Place = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PLACE_CHARACTERS)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=MAX_WORD_CHARACTERS)]
Line = Annotated[str, StringConstraints(max_length=MAX_CHARACTERS)]
QuestionRecipe = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}/[0-9a-f]{16}$")]
QuestionText = Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION_CHARACTERS)]
Packed = Annotated[str, StringConstraints(max_length=400_000)]
"""A vector: float32, little-endian, in base64."""
Count = Annotated[int, Field(ge=0, le=2**31 - 1)]
Counter = Annotated[int, Field(ge=1, le=MAX_COUNTER)]
Level = Annotated[int, Field(ge=0, le=MAX_LEVEL)]
_Points = Annotated[float, Field(ge=-1e7, le=1e7, allow_inf_nan=False)]
_REGION: TypeAdapter[Any] = TypeAdapter(
    tuple[Count, Count, Counter | None, Word | None, tuple[_Points, _Points, _Points, _Points] | None, Line | None, Word | None]
)
_REGION_FIELDS = 7


def _check_region(row: list[Any]) -> list[Any]:
    """Check a row of `domain.location.Region`. Missing values at its end are None."""
    _REGION.validate_python([*row, *[None] * (_REGION_FIELDS - len(row))], strict=False)
    return row


RegionRow = Annotated[list[Any], Field(min_length=2, max_length=_REGION_FIELDS), AfterValidator(_check_region)]
Flag = StrictBool | Annotated[StrictFloat, Field(ge=0, le=1)]
"""A boolean or a share. It is strict, because a number is not a boolean. `tenancy.features` has the type of each flag."""
Weight = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


def _validate_by(check: Callable[[T], T]) -> AfterValidator:
    """Return a validator that reports an error of ours as a validation error of the record."""

    def check_value(value: T) -> T:
        try:
            return check(value)
        except AgenticRagError as error:
            raise PydanticCustomError("limit", "{reason}", {"reason": error.message}) from None

    return AfterValidator(check_value)


def _refusal_of(reason: str) -> PydanticCustomError:
    return PydanticCustomError("limit", "{reason}", {"reason": reason})


def _check_processing(value: ProcessingOptions) -> ProcessingOptions:
    # The message omits the values of these fields; sizes are numbers, so it repeats them.
    for field, name, names in (("strategy", value.chunking.strategy, KNOWN), ("unit", value.chunking.unit, SIZES)):
        if name not in names:
            raise _refusal_of(f"the chunking {field} is not known; known are {', '.join(names)}")
    check_options(value.chunking)
    if len(value.charset or "") > MAX_CHARSET_CHARACTERS:
        raise _refusal_of(f"a charset has at most {MAX_CHARSET_CHARACTERS} characters")
    if value.questions.method not in QUESTION_METHODS:
        raise _refusal_of(f"the method of questions is not known; known are {', '.join(QUESTION_METHODS)}")
    check_question_options(value.questions)
    attachments = value.attachments
    if attachments.mode not in ATTACHMENT_MODES:
        raise _refusal_of(f"the use of attachments is not known; known are {', '.join(ATTACHMENT_MODES)}")
    if not 0 <= attachments.most <= MAX_ATTACHMENTS or not 0 <= attachments.depth <= MAX_ATTACHED_DEPTH:
        limits = f"0 to {MAX_ATTACHMENTS} attachments and a depth of 0 to {MAX_ATTACHED_DEPTH}"
        raise _refusal_of(f"a message has {limits}; it has {attachments.most} and {attachments.depth}")
    return value


def _media_type(value: str) -> str:
    if value not in FORMATS:
        raise _refusal_of(f"no document has this media type; supported are {', '.join(FORMATS)}")
    return value


def _check_key(value: str) -> str:
    if not short_text("it", value, MAX_DOCUMENT_KEY_CHARACTERS):
        raise _refusal_of("a key must not be blank")
    return value


def _check_title(value: str) -> str:
    short_text("it", value, MAX_TITLE_CHARACTERS)
    return value


def _check_time(value: datetime) -> datetime:
    """Refuse a time that some time zones cannot express."""
    if not _FIRST <= (value if value.tzinfo else value.replace(tzinfo=UTC)) <= _LAST:
        raise _refusal_of(f"a time is between {_FIRST.date().isoformat()} and {_LAST.date().isoformat()}")
    return value


_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_MOST: Mapping[str, int] = {
    "rating": 10,
    "confidence": 1,
    "fingerprint": MAX_WORD_CHARACTERS,
    "prompt_version": MAX_WORD_CHARACTERS,
    "model": MAX_WORD_CHARACTERS,
    "type": MAX_WORD_CHARACTERS,
    "source_type": MAX_WORD_CHARACTERS,
    "target_type": MAX_WORD_CHARACTERS,
    "code": MAX_WORD_CHARACTERS,
    "stage": MAX_WORD_CHARACTERS,
}
"""Unusual limits of numbers and lengths of texts, by field."""


def _check_limits(value: T) -> T:
    """Refuse a tree of dataclasses that holds a text, list or number beyond its limits."""
    problem = _find_problem(value, "")
    if problem:
        raise _refusal_of(problem)
    return value


def _find_problem(value: Any, at: str) -> str:
    if isinstance(value, str):
        limit = _MOST.get(at.rpartition(".")[2], MAX_CHARACTERS)
        return f"{at} has {len(value)} characters; the limit is {limit}" if len(value) > limit else ""
    if isinstance(value, int | float):
        limit = _MOST.get(at.rpartition(".")[2], 2**31 - 1)
        return "" if 0 <= value <= limit else f"{at} is {_show_number(value)}; it must be from 0 to {limit}"
    if isinstance(value, Support) and not (_UUID.match(value.document_id) and _UUID.match(value.chunk_id)):
        return f"{at} must be an id of a document or chunk"
    if isinstance(value, tuple | list):
        if len(value) > MAX_ITEMS:
            return f"{at} has {len(value)} items; the limit is {MAX_ITEMS}"
        return next(filter(None, (_find_problem(item, f"{at}[{number}]") for number, item in enumerate(value))), "")
    if is_dataclass(value):
        problems = (_find_problem(getattr(value, part.name), f"{at}.{part.name}".lstrip(".")) for part in fields(value))
        return next(filter(None, problems), "")
    return ""


def _show_number(value: float) -> str:
    return str(value) if not abs(value) >= 2**63 else "beyond ±2^63"


_SHAPES: Mapping[str, type | tuple[type, ...]] = {
    "basis": str,
    "changed": int,
    "coarse": list,
    "communities": int,
    "divided_under": str,
    "graph": str,
    "graph_relationships": int,
    "levels": dict,
    "mode": str,
    "modularity": (int, float),
    "nodes": int,
    "options": dict,
    "summaries_failed": list,
    "written_under": list,
}
"""Details of a generation that rebuilds and searches use."""


def _check_details(value: dict[str, Any]) -> dict[str, Any]:
    for name, detail in value.items():
        kind = _SHAPES.get(name)
        if kind is not None and (not isinstance(detail, kind) or isinstance(detail, bool)):
            raise _refusal_of(f"{name} is of another type than {kind}")
        if problem := _detail_problem(detail, MAX_DETAIL_DEPTH):
            raise _refusal_of(f"{name[:80]} {problem}")
    for pair in value.get("written_under", ()):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, str) for part in pair)):
            raise _refusal_of("written_under must have pairs of a prompt version and a model")
    if not all(isinstance(id, str) for id in value.get("coarse", ())):
        raise _refusal_of("coarse must have ids")
    return value


def _detail_problem(value: object, depth: int) -> str:
    if isinstance(value, dict | list):
        if depth == 0:
            return f"is nested more than {MAX_DETAIL_DEPTH} deep, which is the limit"
        items = [*value, *value.values()] if isinstance(value, dict) else value
        return next(filter(None, (_detail_problem(item, depth - 1) for item in items)), "")
    if isinstance(value, int | float) and not abs(value) < 2**53:
        return f"is {_show_number(value)}; numbers are within ±2^53"
    return ""


TenantNameText = Annotated[str, StringConstraints(max_length=1_000), _validate_by(printable_name)]
Key = Annotated[str, _validate_by(_check_key)]
Title = Annotated[str, _validate_by(_check_title)]
Metadata = Annotated[dict[str, Any], _validate_by(metadata_checks.check_metadata)]
MediaType = Annotated[str, _validate_by(_media_type)]
Processing = Annotated[ProcessingOptions, _validate_by(_check_processing)]
Time = Annotated[AwareDatetime, AfterValidator(_check_time)]
Validity = Annotated[datetime, AfterValidator(_check_time)]
Failed = Annotated[Failure, AfterValidator(_check_limits)]
Extracted = Annotated[Extraction, AfterValidator(_check_limits)]
Summary = Annotated[CommunitySummary, AfterValidator(_check_limits)]
Details = Annotated[dict[str, Any], AfterValidator(_check_details)]
