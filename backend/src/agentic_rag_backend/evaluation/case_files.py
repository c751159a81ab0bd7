"""Cases as people write them: JSON objects, JSON Lines and CSV. An export is JSON Lines that can be uploaded again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import orjson
from pydantic import Field, ValidationError, field_validator, model_validator

from agentic_rag_backend.domain.evaluation import MAX_CASES, EvaluationCase, GoldItem
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.errors import InvalidRequest, UnsupportedMediaType
from agentic_rag_backend.retrieval.options.filters import RequestModel, Switch
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS
from agentic_rag_backend.wording import message_of

JSON_LINES = "application/x-ndjson"
CSV = "text/csv"
MAX_QUOTE_CHARACTERS = 4000
MAX_GOLD = 50
MAX_TAGS = 20
MAX_TEXTS = 20
_LISTS = frozenset({"must_say", "tags", "gold_chunk_ids", "gold_quotes", "gold_documents", "gold"})
_SPLIT = frozenset({"tags", "gold_chunk_ids", "gold_documents"})
"""List columns of CSV whose items a semicolon separates. A cell that begins with a bracket is a JSON list in every column."""

Id = Annotated[str, Field(min_length=1, max_length=512)]
Quote = Annotated[str, Field(min_length=1, max_length=MAX_QUOTE_CHARACTERS)]


class GoldRequest(RequestModel):
    """One piece of evidence: a quote, a chunk, or a document by its id or key."""

    quote: str = Field("", max_length=MAX_QUOTE_CHARACTERS)
    chunk_id: Id | None = None
    document: Id | None = None


class CaseRequest(RequestModel):
    """A question with its expected result. Evidence is given by chunk ids, quotes or documents, or as ``gold``."""

    question: str = Field(min_length=1, max_length=MAX_QUERY_CHARACTERS)
    expected_answer: str | None = Field(None, max_length=MAX_QUOTE_CHARACTERS)
    must_say: list[Quote] = Field(default_factory=list, max_length=MAX_TEXTS, description="texts that a right answer contains")
    answerable: Switch = Field(True, description="false: a refusal is the right answer")
    kind: str = Field("", max_length=64, description="kind of question, such as `fact`; results are reported by kind")
    tags: list[Annotated[str, Field(min_length=1, max_length=64)]] = Field(default_factory=list, max_length=MAX_TAGS)
    gold_chunk_ids: list[Id] = Field(default_factory=list, max_length=MAX_GOLD)
    gold_quotes: list[Quote] = Field(
        default_factory=list,
        max_length=MAX_GOLD,
        description="passages that a search should find, verbatim; with as many `gold_documents`, each in its document",
    )
    gold_documents: list[Id] = Field(default_factory=list, max_length=MAX_GOLD, description="ids or keys of documents")
    gold: list[GoldRequest] = Field(default_factory=list, max_length=MAX_GOLD, description="evidence as an export writes it")
    filters: dict[str, Any] | None = Field(None, description="filter of the search for this question")

    @field_validator("question")
    @classmethod
    def _has_words(cls, value: str) -> str:
        if not value.strip() or "\x00" in value:
            raise ValueError("must not be blank, and must not contain a NUL character")
        return value

    @model_validator(mode="after")
    def _has_pairs(self) -> CaseRequest:
        if self.gold_quotes and self.gold_documents and len(self.gold_quotes) != len(self.gold_documents):
            raise ValueError(
                f"gold_documents must have one item for each of the {len(self.gold_quotes)} gold_quotes, or none; "
                f"got {len(self.gold_documents)}"
            )
        return self

    def to_case(self) -> EvaluationCase:
        """Return the case.

        Raises:
            InvalidRequest: the filter is invalid.
        """
        parse_filter(self.filters)
        quotes: list[str | None] = [*self.gold_quotes] or [None] * len(self.gold_documents)
        documents: list[str | None] = [*self.gold_documents] or [None] * len(self.gold_quotes)
        gold = [
            *(GoldItem(chunk_id=chunk_id) for chunk_id in dict.fromkeys(self.gold_chunk_ids)),
            *(GoldItem(quote=quote or "", document=document) for quote, document in zip(quotes, documents, strict=True)),
            *(GoldItem(quote=item.quote, chunk_id=item.chunk_id, document=item.document) for item in self.gold),
        ]
        return EvaluationCase(
            question=self.question,
            expected_answer=self.expected_answer or None,
            must_say=tuple(self.must_say),
            answerable=self.answerable,
            kind=self.kind,
            tags=tuple(dict.fromkeys(self.tags)),
            gold=tuple(dict.fromkeys(item for item in gold if item != GoldItem())),
            filters=self.filters,
        )


def parse_cases(content: bytes, media_type: str) -> list[EvaluationCase]:
    """Return the cases of a file.

    Raises:
        UnsupportedMediaType: the file is neither JSON Lines nor CSV.
        InvalidRequest: a row is invalid, or there are no rows, or more than `MAX_CASES`. The message names the row.
    """
    readers = {JSON_LINES: _read_lines, "application/jsonl": _read_lines, CSV: _read_table}
    if media_type not in readers:
        raise UnsupportedMediaType(f"a dataset is {JSON_LINES} or {CSV}; got {media_type[:80] or 'no media type'}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"the file must be UTF-8; byte {error.start} is not") from None
    cases: list[EvaluationCase] = []
    for name, row in readers[media_type](text):
        if len(cases) >= MAX_CASES:
            raise InvalidRequest(f"a dataset may have at most {MAX_CASES} cases; the file has more")
        cases.append(_read_case(name, row))
    if not cases:
        raise InvalidRequest("the file has no cases; each row is one question")
    return cases


def _read_case(name: str, row: Any) -> EvaluationCase:
    try:
        return CaseRequest.model_validate(row).to_case()
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(map(str, problem["loc"]))
        raise InvalidRequest(f"{name}: {where}{': ' if where else ''}{message_of(problem)}") from None
    except InvalidRequest as error:
        raise InvalidRequest(f"{name}: {error.message}") from None


def _read_lines(text: str) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield f"line {number}", orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InvalidRequest(f"line {number} is not JSON: {error}") from None


def _read_table(text: str) -> Iterator[tuple[str, Any]]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True, restkey="")
    try:
        # Spreadsheets write empty columns without a name at the end.
        columns = [column or f"column {number}" for number, column in enumerate(rows.fieldnames or (), start=1)]
        rows.fieldnames = columns
        if "question" not in columns:
            raise InvalidRequest("the first line of a CSV dataset names its columns; the column 'question' is missing")
        repeated = next((column for column in columns if columns.count(column) > 1), None)
        if repeated is not None:
            raise InvalidRequest(f"the first line of a CSV dataset names the column {repeated[:80]!r} twice")
        for row in rows:
            name = f"line {rows.line_num}"
            if "" in row:
                raise InvalidRequest(f"{name} has more cells than the first line has columns")
            yield name, {column: _read_cell(name, column, cell) for column, cell in row.items() if cell}
    except csv.Error as error:
        raise InvalidRequest(f"line {rows.line_num} is not CSV: {error}") from None


def _read_cell(name: str, column: str, cell: str) -> Any:
    if column == "answerable":
        values = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
        return values.get(cell.strip().casefold(), cell)
    if column == "filters" or (column in _LISTS and cell.lstrip().startswith("[")):
        try:
            return orjson.loads(cell)
        except orjson.JSONDecodeError as error:
            raise InvalidRequest(f"{name}: the cell of {column!r} is not JSON: {error}") from None
    if column in _SPLIT:
        return [item.strip() for item in cell.split(";") if item.strip()]
    return [cell] if column in _LISTS else cell


def write_case(case: EvaluationCase) -> bytes:
    """Return a case as a line of JSON. `parse_cases` reads it."""
    fields: Mapping[str, Any] = {
        "question": case.question,
        "expected_answer": case.expected_answer,
        "must_say": case.must_say,
        "answerable": case.answerable,
        "kind": case.kind,
        "tags": case.tags,
        "gold": [{name: value for name, value in asdict(item).items() if value} for item in case.gold],
        "filters": case.filters,
    }
    always = ("question", "answerable")
    return orjson.dumps({name: value for name, value in fields.items() if name in always or value}) + b"\n"
