"""Reading any bytes ends with a value or an error for the user. A small sample of `make test-deep`."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentic_rag_backend.api.requests.bodies import load_json
from agentic_rag_backend.api.schemas.documents.documents import NewDocument
from agentic_rag_backend.api.schemas.questions.questions import AnswerBody, DualLevelBody, SearchBody
from agentic_rag_backend.documents import metadata_checks
from agentic_rag_backend.documents.chunking.passages import chunks_of
from agentic_rag_backend.documents.parsing.registry import PARSERS, parser_of, title_of
from agentic_rag_backend.domain.document import ChunkingOptions
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, UnreadableDocument
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.models.embedding.tokenizer import WordPieceTokenizer
from agentic_rag_backend.transfer.archive import ArchiveLimits, ArchiveReader
from agentic_rag_backend.transfer.inspection import read_parts
from agentic_rag_backend.transfer.records import DocumentLine, Manifest, PartOfDocument, decode_record

TENANT = TenantId("t_" + "1" * 32)
TOKENIZER = WordPieceTokenizer()
FEW = settings(max_examples=50, derandomize=True)

PIECES = st.sampled_from(
    ["# ", "## ", "\n", "\r\n", " ", "\t", "```", "~~~", "===", "---", "---\n", "a: b\n", "[a](b)", "[", "](", "*", "_", "> ",
     "- ", "1. ",
     "Ada Lovelace ", "the ", "in 1999 ", "A.B. ", "(AB) ", ". ", "...", "雨。", "\u0301", "\x00", "\x07", "\ufeff",
     "&a *a", "{", "'s "]
)  # fmt: skip
DOCUMENTS = st.one_of(
    st.binary(max_size=300),
    st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=60).map(
        lambda some: "".join(some).encode("utf-8", "surrogatepass")
    ),
    st.tuples(st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1"]), st.text(max_size=80)).map(
        lambda given: given[1].encode(given[0], "replace")
    ),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12))
MEMBERS = (
    "and", "or", "not", "eq", "in", "gt", "exists", "default", "query", "limit", "filters", "options", "weights", "strategy",
    "as_of", "history", "text", "title", "metadata", "chunking", "kind", "format", "version", "low",
)  # fmt: skip
KEYS = st.one_of(
    st.sampled_from(MEMBERS),
    st.text(max_size=6),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)), max_leaves=20
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=6)


@FEW
@given(content=DOCUMENTS, media_type=st.sampled_from(sorted(PARSERS)), whole=st.booleans())
def test_documents(content: bytes, media_type: str, whole: bool) -> None:
    parser = parser_of(media_type)
    try:
        preview = parser.check(content, is_whole=whole)
        parsed = parser.parse(content)
    except UnreadableDocument:
        return
    assert parsed.text.strip()
    assert "\x00" not in parsed.text
    assert title_of(preview, None).strip()
    chunks = chunks_of(TENANT, "d", 1, parsed, ChunkingOptions(chunk_size=16, overlap=4), tokenizer=TOKENIZER)
    assert all(parsed.text[chunk.location.start_char : chunk.location.end_char] == chunk.text for chunk in chunks)
    covered = {at for chunk in chunks for at in range(chunk.location.start_char, chunk.location.end_char)}
    assert all(character.isspace() for at, character in enumerate(parsed.text) if at not in covered)
    found = RuleExtractor().extract_document("A title", chunks)
    for chunk, extraction in zip(chunks, found, strict=True):
        for mention in extraction.mentions:
            assert mention.about or chunk.text[mention.start_char : mention.end_char] == mention.name


def _text_body(value: Any) -> object:
    return NewDocument.model_validate(value)


READERS: Mapping[str, Callable[[Any], object]] = {
    "filters": parse_filter,
    "metadata": metadata_checks.check_metadata,
    "a search": SearchBody.model_validate,
    "a dual-level search": DualLevelBody.model_validate,
    "an answer": AnswerBody.model_validate,
    "a document": _text_body,
}


@pytest.mark.parametrize("reader", READERS)
@FEW
@given(value=OBJECTS)
def test_values(reader: str, value: dict[str, Any]) -> None:
    try:
        READERS[reader](value)
    except (InvalidRequest, ValidationError):
        return


@FEW
@given(raw=st.one_of(st.binary(max_size=80), st.text(alphabet='{}[]":,01eE+-.\\u nultrfas', max_size=80).map(str.encode)))
def test_json_bodies(raw: bytes) -> None:
    try:
        load_json(raw)
    except AgenticRagError:
        return


@pytest.mark.parametrize("kind", [Manifest, DocumentLine, PartOfDocument], ids=lambda kind: kind.__name__)
@FEW
@given(line=st.one_of(st.binary(max_size=80), OBJECTS.map(repr).map(str.encode), OBJECTS.map(lambda held: _json(held))))
def test_lines_of_archives(kind: Any, line: bytes) -> None:
    try:
        decode_record(kind, line, where="line 1")
    except InvalidRequest:
        return


@FEW
@given(content=st.binary(max_size=2_000))
def test_archives(content: bytes) -> None:
    limits = ArchiveLimits(archive=100_000, original=10_000)
    try:
        for _ in read_parts(ArchiveReader(io.BytesIO(content), limits), limits):
            pass
    except AgenticRagError:
        return


def _json(value: object) -> bytes:
    import json

    return json.dumps(value).encode()


def test_the_deep_runner_draws_the_same_for_the_same_seed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "tests" / "deep"))
    from hostile_input import Hostile

    one, other, third = Hostile(1), Hostile(1), Hostile(2)
    drawn = [(each.document(), each.search(), each.body()) for each in (one, other, third)]
    assert drawn[0] == drawn[1] != drawn[2]
