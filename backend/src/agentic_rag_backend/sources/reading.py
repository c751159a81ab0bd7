"""Reads documents one by one: files as a whole, tables row by row. Each document is compared with the earlier ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_rag_backend.domain.media_types import is_plain_text
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources.files import Source, Walk
from agentic_rag_backend.sources.fingerprints import FingerprintTable, hash_content
from agentic_rag_backend.sources.table_rows import BadRow, Columns, Row, check_table, read_rows

if TYPE_CHECKING:
    from agentic_rag_backend.sources.duplicates import DuplicateFinder

MAX_MB = 1024
"""The largest possible MAX_UPLOAD_MB. Larger files are refused without being read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingProblem:
    """The reason why a document could not be read."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceDocument:
    """The content of one document, or the problem that prevented reading it.

    Attributes:
        row: number of its row, from 1. None for a file.
        size: approximate bytes of the file or row, for progress.
    """

    path: Path
    key: str
    row: int | None = None
    content: bytes = b""
    title: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    size: int = 0
    problem: ReadingProblem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The amount to read, measured without reading it."""

    files: int
    size: int
    skipped: int
    skipped_keys: tuple[str, ...] = ()
    by_rows: bool = False


def survey_sources(walk: Walk, columns: Columns | None) -> Extent:
    """Walk the sources once, read the beginning of each table, and add up the sizes.

    Raises:
        InvalidRequest: a path selects nothing, keys collide, or a table lacks the columns.
    """
    files = size = 0
    by_rows = False
    for source in walk:
        files += 1
        try:
            size += source.path.stat().st_size
            if source.by_rows and columns is not None:
                by_rows = True
                check_table(source.path, columns)
        except OSError as error:
            if source.by_rows:
                raise InvalidRequest(f"{source.path} cannot be read: {error.strerror or error}") from None
    return Extent(files=files, size=size, skipped=walk.skipped, skipped_keys=tuple(walk.skipped_keys), by_rows=by_rows)


class SourceReader:
    """Reads sources in order. A repeated key is reported as a problem, because it would replace the earlier document.

    Args:
        columns: columns of tables whose rows are documents.
        finder: receives every document whose text is its content. The text of the others is known after parsing.
    """

    def __init__(self, sources: Iterable[Source], columns: Columns | None = None, finder: DuplicateFinder | None = None) -> None:
        self._sources = sources
        self._columns = columns
        self._finder = finder

    def __iter__(self) -> Iterator[SourceDocument]:
        """Yield each document once. Only one document is in memory.

        Raises:
            InvalidRequest: an error of `Walk`, if the sources come from it.
        """
        keys = FingerprintTable()
        for source in self._sources:
            for document in self._read_documents(source):
                if document.problem is None:
                    if keys.store_first(hash_content(document.key.encode("utf-8", errors="surrogateescape")), 0) is not None:
                        yield _repeated_key_problem(source, document)
                        continue
                    if self._finder is not None and (document.row is not None or is_plain_text(document.path.name)):
                        self._finder.add_document(document.key, document.content)
                yield document

    def _read_documents(self, source: Source) -> Iterator[SourceDocument]:
        try:
            if not source.by_rows:
                yield _read_file(source)
            elif self._columns is not None:
                for row in read_rows(source.path, source.key, self._columns):
                    yield _read_row(source, row)
        except OSError as error:
            yield _make_problem(source, "unreadable_file", error.strerror or str(error))


def _read_file(source: Source) -> SourceDocument:
    size = source.path.stat().st_size
    size_mb = size / 1024 / 1024
    if size_mb > MAX_MB:
        reason = f"a file may have at most {MAX_MB} MiB; {source.path.name} has {size_mb:.1f}"
        return _make_problem(source, "payload_too_large", reason)
    return SourceDocument(path=source.path, key=source.key, content=source.path.read_bytes(), size=size)


def _read_row(source: Source, row: Row | BadRow) -> SourceDocument:
    if isinstance(row, BadRow):
        return _make_problem(source, "bad_row", f"row {row.number}: {row.reason}", f"{source.key}#{row.number}", row.number)
    return SourceDocument(
        path=source.path,
        key=row.key,
        row=row.number,
        content=row.text.encode("utf-8", errors="surrogatepass"),
        title=row.title,
        metadata=row.metadata,
        size=row.size,
    )


def _make_problem(source: Source, code: str, message: str, key: str | None = None, row: int | None = None) -> SourceDocument:
    return SourceDocument(path=source.path, key=key or source.key, row=row, problem=ReadingProblem(code=code, message=message))


def _repeated_key_problem(source: Source, document: SourceDocument) -> SourceDocument:
    where = "" if document.row is None else f"row {document.row}: "
    return _make_problem(source, "conflict", f"{where}an earlier document has the same key", document.key, document.row)
