"""The archive format: a tar file (ustar, plain files only) under gzip, written and read from beginning to end.

::

    manifest.json                     the description; first, so that a reader can refuse the archive early
    edits.jsonl                       the edits of the graph; absent without any
    entities.jsonl                    the graph's entities: id, name, type
    documents/00000001/record.jsonl   a document, its chunks with their computed results, its knowledge
    documents/00000001/original       the uploaded bytes
    communities.jsonl, summaries.jsonl
    tree.jsonl, tree-summaries.jsonl
    evaluation.jsonl                  datasets with their cases, feedback and submitted scores; absent without any
    end.json                          counts; an archive without it was cut off

No name in it is ever used as a path: members are recognised by their names, in this order, and never extracted. This
module reads the headers itself, because `tarfile` would follow extensions of any declared size.

One gzip stream, unpacked within limits: of the unpacked bytes, and of their ratio to the bytes that were read.

`gzip` would read a header's name and comment byte by byte in Python, without a limit, and continue with any streams that
follow the first; zlib reads the header itself and checks length and checksum at the end.
"""

from __future__ import annotations

import io
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from pydantic import TypeAdapter, ValidationError

from agentic_rag_backend.errors import InvalidRequest, PayloadTooLarge

FREE_BYTES = 16 * 1024 * 1024
"""Unpacked bytes that every archive may have, independent of its own size."""
MAX_RATIO = 200
"""Beyond that, the limit of unpacked bytes for each packed byte. Texts and vectors have a ratio of 2 to 10; gzip allows 1,032."""
_PACKED_BYTES = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class Gunzip:
    """Reads the unpacked content of a gzip file.

    Args:
        limit: maximum unpacked bytes.
    """

    def __init__(self, file: BinaryIO, *, limit: int) -> None:
        self._file = file
        self._limit = limit
        self._stream = zlib.decompressobj(_GZIP)
        self._packed = 0
        self._unpacked = 0

    def read_bytes(self, size: int) -> bytes:
        """Return up to ``size`` bytes, none at the end.

        Raises:
            InvalidRequest: it is damaged or cut off, or continues after the end of the stream.
            PayloadTooLarge: the unpacked size is above its limit.
        """
        content = b""
        while not content and not self._stream.eof:
            compressed = self._stream.unconsumed_tail or self._read_packed_bytes()
            try:
                content = self._stream.decompress(compressed, size)
            except zlib.error as error:
                raise InvalidRequest(f"the archive is damaged: {str(error)[:100]}") from None
        self._unpacked += len(content)
        self._check_size()
        if self._stream.eof and not content:
            self._finish_stream()
        return content

    def _read_packed_bytes(self) -> bytes:
        content = self._file.read(_PACKED_BYTES)
        if not content:
            raise InvalidRequest("the archive is cut off")
        self._packed += len(content)
        return content

    def _check_size(self) -> None:
        if self._unpacked > self._limit:
            raise PayloadTooLarge(f"the archive unpacks to more than {self._limit} bytes (MAX_IMPORT_MB)")
        if self._unpacked > FREE_BYTES + MAX_RATIO * self._packed:
            raise PayloadTooLarge(
                f"the first {self._packed} bytes of the archive unpack to {self._unpacked}; "
                f"the limit is {FREE_BYTES} and {MAX_RATIO} for each byte"
            )

    def _finish_stream(self) -> None:
        if self._stream.unused_data.strip(b"\0") or self._file.read(_PACKED_BYTES).strip(b"\0"):
            raise InvalidRequest("the archive continues after its end: it must be one gzip stream")


MANIFEST, ENTITIES, EDITS, COMMUNITIES, SUMMARIES, TREE, TREE_SUMMARIES, EVALUATION, END = (
    "manifest.json",
    "entities.jsonl",
    "edits.jsonl",
    "communities.jsonl",
    "summaries.jsonl",
    "tree.jsonl",
    "tree-summaries.jsonl",
    "evaluation.jsonl",
    "end.json",
)
_BLOCK = 512
_SMALL_BYTES = 1024 * 1024
_READ_BYTES = 1024 * 1024
_GZIP_LEVEL = 5
PART_LINE_BYTES = 64 * 1024 * 1024
"""Limit of every line except a document's first, which has its text."""
MAX_LINES = 4_000_000
"""Limit of lines in one member."""
_DOCUMENT = re.compile(r"documents/([0-9]{8})/(record\.jsonl|original)\Z")


def record_name(number: int) -> str:
    """Return the name of the ``number``-th document's record."""
    return f"documents/{number:08}/record.jsonl"


def original_name(number: int) -> str:
    """Return the name of the ``number``-th document's original."""
    return f"documents/{number:08}/original"


class ArchiveWriter(AbstractContextManager["ArchiveWriter"]):
    """Writes members, one after another, to a new file."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w:gz", format=tarfile.USTAR_FORMAT, compresslevel=_GZIP_LEVEL)  # noqa: SIM115

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tar.close()

    def add_member(self, name: str, content: bytes) -> None:
        """Add a member."""
        header = tarfile.TarInfo(name)
        header.size = len(content)
        self._tar.addfile(header, io.BytesIO(content))

    def add_file(self, name: str, path: Path) -> None:
        """Add a file's content as a member."""
        header = tarfile.TarInfo(name)
        header.size = path.stat().st_size
        with path.open("rb") as content:
            self._tar.addfile(header, content)


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Bytes after decompression: of an archive, of one original and of one line."""

    archive: int
    original: int

    @property
    def document_line(self) -> int:
        """Return the limit of a document's line: escaping makes a text up to six times as long, and parsers may add to it."""
        return 8 * self.original + _SMALL_BYTES


class Member:
    """One file of an archive, to be read once, before the next one."""

    def __init__(self, name: str, size: int, read_bytes: Callable[[int], bytes]) -> None:
        self.name = name
        self.size = size
        self._read = read_bytes
        self._left = size

    def read_content(self, *, limit: int) -> bytes:
        """Return the whole content.

        Raises:
            PayloadTooLarge: it has more than ``limit`` bytes.
        """
        if self.size > limit:
            raise PayloadTooLarge(f"{self.name} has {self.size} bytes; the limit is {limit}")
        return self._read_some(self._left)

    def read_lines(self, *, limit: int, first_limit: int | None = None, max_lines: int = MAX_LINES) -> Iterator[bytes]:
        """Yield its lines; the reader visits each byte once, for any line lengths.

        Args:
            limit: most bytes of a line.
            first_limit: most bytes of the first line, if different.
            max_lines: most lines.

        Raises:
            PayloadTooLarge: a line is longer, or there are more lines.
            InvalidRequest: a line is empty.
        """
        line_parts: list[bytes] = []
        size, number, allowed = 0, 1, limit if first_limit is None else first_limit
        while self._left:
            *whole_lines, line_start = self._read_some(min(_READ_BYTES, self._left)).split(b"\n")
            for part in whole_lines:
                self._check_line(number, size + len(part), allowed, max_lines)
                yield b"".join([*line_parts, part])
                line_parts, size, number, allowed = [], 0, number + 1, limit
            if line_start:
                size += len(line_start)
                self._check_line(number, size, allowed, max_lines)
                line_parts.append(line_start)
        if line_parts:
            yield b"".join(line_parts)

    def skip_content(self) -> None:
        """Leave the rest unread."""
        while self._left:
            self._read_some(min(_READ_BYTES, self._left))

    def _check_line(self, number: int, size: int, allowed: int, max_lines: int) -> None:
        if not size:
            raise InvalidRequest(f"{self.name}, line {number} is empty")
        if size > allowed:
            raise PayloadTooLarge(f"{self.name}, line {number} has more than {allowed} bytes, which is the limit")
        if number > max_lines:
            raise PayloadTooLarge(f"{self.name} has more than {max_lines} lines, which is the limit")

    def _read_some(self, size: int) -> bytes:
        content = self._read(size)
        self._left -= size
        return content


class ArchiveReader:
    """Reads an untrusted archive."""

    def __init__(self, file: BinaryIO, limits: ArchiveLimits) -> None:
        self._unpacked = Gunzip(file, limit=limits.archive)
        self._limit = limits.archive

    def read_members(self) -> Iterator[Member]:
        """Yield the members in order; read each before asking for the next.

        Raises:
            InvalidRequest: the file is not an archive, is damaged, or contains an unknown member.
            PayloadTooLarge: the unpacked size is above its limit.
        """
        while True:
            header = self._read_exactly(_BLOCK)
            if not header.strip(b"\0"):
                self._read_end()
                return
            try:
                about = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
            except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
                raise InvalidRequest(f"the archive is damaged: {type(error).__name__} in a header") from None
            if not about.isreg() or not _is_member_name(about.name) or about.size < 0:
                raise InvalidRequest(f"the archive contains the unknown member {about.name[:80]!r}")
            member = Member(about.name, about.size, self._read_exactly)
            yield member
            member.skip_content()
            self._read_exactly(-about.size % _BLOCK)

    def _read_end(self) -> None:
        """Read the padding of the file; the gzip checksum follows it."""
        while padding := self._unpacked.read_bytes(_READ_BYTES):
            if padding.strip(b"\0"):
                raise InvalidRequest("the archive continues after its end")

    def _read_exactly(self, size: int) -> bytes:
        if size > self._limit:
            raise PayloadTooLarge(f"the archive unpacks to more than {self._limit} bytes (MAX_IMPORT_MB)")
        parts, missing_bytes = [], size
        while missing_bytes:
            part = self._unpacked.read_bytes(min(missing_bytes, _READ_BYTES))
            if not part:
                raise InvalidRequest("the archive is cut off")
            parts.append(part)
            missing_bytes -= len(part)
        return b"".join(parts)


def _is_member_name(name: str) -> bool:
    return (
        name in (MANIFEST, ENTITIES, EDITS, COMMUNITIES, SUMMARIES, TREE, TREE_SUMMARIES, EVALUATION, END)
        or _DOCUMENT.match(name) is not None
    )


@contextmanager
def open_archive(path: Path, limits: ArchiveLimits) -> Iterator[ArchiveReader]:
    """Open the archive at ``path``."""
    with path.open("rb") as file:
        yield ArchiveReader(file, limits)


_ANYTHING: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


def read_small_member(member: Member) -> bytes:
    """Return the content of a member that is small."""
    return member.read_content(limit=_SMALL_BYTES)


def parse_any_object(content: bytes) -> dict[str, object]:
    """Return a JSON object of any members.

    Raises:
        InvalidRequest: it is not a JSON object.
    """
    try:
        return _ANYTHING.validate_json(content)
    except ValidationError:
        raise InvalidRequest("the archive's manifest is not a JSON object") from None
