"""The archive's form: a tar file (ustar, plain files only) under gzip, written and read from its beginning to its end.

::

    manifest.json                     what it is; first, so that it can be refused before anything else is read
    entities.jsonl                    the graph's entities: id, name, type
    documents/00000001/record.jsonl   a document, its chunks with what was computed for them, what it says
    documents/00000001/original       the bytes that were handed in
    communities.jsonl, summaries.jsonl
    end.json                          counts; an archive without it was cut off

Nothing in it is ever used as a path: members are recognised by their names, in this order, and never extracted. The
headers are read here, because `tarfile` would follow extensions of any declared size.
"""

from __future__ import annotations

import gzip
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

MANIFEST, ENTITIES, COMMUNITIES, SUMMARIES, TREE, TREE_SUMMARIES, END = (
    "manifest.json",
    "entities.jsonl",
    "communities.jsonl",
    "summaries.jsonl",
    "tree.jsonl",
    "tree-summaries.jsonl",
    "end.json",
)
_BLOCK = 512
_SMALL_BYTES = 1024 * 1024
_READ_BYTES = 1024 * 1024
_GZIP_LEVEL = 5
_DOCUMENT = re.compile(r"documents/([0-9]{8})/(record\.jsonl|original)\Z")


def record_name(number: int) -> str:
    """Return the name of the ``number``-th document's record."""
    return f"documents/{number:08}/record.jsonl"


def original_name(number: int) -> str:
    """Return the name of the ``number``-th document's original."""
    return f"documents/{number:08}/original"


class ArchiveWriter(AbstractContextManager["ArchiveWriter"]):
    """Writes members, one after another, to a file that is made."""

    def __init__(self, path: Path) -> None:
        self._tar = tarfile.open(path, "w:gz", format=tarfile.USTAR_FORMAT, compresslevel=_GZIP_LEVEL)  # noqa: SIM115

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._tar.close()

    def add(self, name: str, content: bytes) -> None:
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
class Limits:
    """Bytes after decompression: of an archive, of one original and of one line."""

    archive: int
    original: int

    @property
    def line(self) -> int:
        """A text may be escaped to six times its size, and its parse be longer than the original."""
        return 8 * self.original + _SMALL_BYTES


class Member:
    """One file of an archive, to be read once, before the next one."""

    def __init__(self, name: str, size: int, read: Callable[[int], bytes]) -> None:
        self.name = name
        self.size = size
        self._read = read
        self._left = size
        self._pending = b""

    def content(self, *, limit: int) -> bytes:
        """Return all of it.

        Raises:
            PayloadTooLarge: it has more than ``limit`` bytes.
        """
        if self.size > limit:
            raise PayloadTooLarge(f"{self.name} has {self.size} bytes; at most {limit} are taken in")
        return self._some(self._left)

    def lines(self, *, limit: int) -> Iterator[bytes]:
        """Yield its lines.

        Raises:
            PayloadTooLarge: one has more than ``limit`` bytes.
        """
        while self._left or self._pending:
            line, end, rest = self._pending.partition(b"\n")
            if not end and self._left:
                if len(self._pending) > limit:
                    raise PayloadTooLarge(f"a line of {self.name} has more than {limit} bytes")
                self._pending += self._some(min(_READ_BYTES, self._left))
                continue
            self._pending = rest
            if line:
                yield line

    def skip(self) -> None:
        """Leave the rest unread."""
        while self._left:
            self._some(min(_READ_BYTES, self._left))

    def _some(self, size: int) -> bytes:
        found = self._read(size)
        self._left -= size
        return found


class ArchiveReader:
    """Reads an archive that anybody may have written."""

    def __init__(self, file: BinaryIO, limits: Limits) -> None:
        self._file = file
        self._limits = limits
        self._taken = 0

    def members(self) -> Iterator[Member]:
        """Yield the members in order, each to be read before the next is asked for.

        Raises:
            InvalidRequest: it is no archive, is damaged, or holds what no archive of ours does.
            PayloadTooLarge: it unpacks to more than it may.
        """
        while True:
            header = self._exactly(_BLOCK)
            if not header.strip(b"\0"):
                self._end()
                return
            try:
                about = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
            except (tarfile.HeaderError, UnicodeDecodeError, ValueError) as error:
                raise InvalidRequest(f"the archive is damaged: {type(error).__name__} in a header") from None
            if not about.isreg() or not _known(about.name) or about.size < 0:
                raise InvalidRequest(f"the archive holds {about.name[:80]!r}, which is none of its members")
            member = Member(about.name, about.size, self._exactly)
            yield member
            member.skip()
            self._exactly(-about.size % _BLOCK)

    def _end(self) -> None:
        """Read what pads the file, at whose end its checksum is."""
        while padding := self._some(_READ_BYTES):
            if padding.strip(b"\0"):
                raise InvalidRequest("the archive goes on after its end")
            self._count(len(padding))

    def _exactly(self, size: int) -> bytes:
        self._count(size)
        parts, left = [], size
        while left:
            part = self._some(min(left, _READ_BYTES))
            if not part:
                raise InvalidRequest("the archive is cut off")
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _some(self, most: int) -> bytes:
        try:
            return self._file.read(most)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidRequest(f"the archive is damaged or cut off: {str(error)[:100]}") from None

    def _count(self, size: int) -> None:
        self._taken += size
        if self._taken > self._limits.archive:
            raise PayloadTooLarge(f"the archive unpacks to more than {self._limits.archive} bytes (MAX_IMPORT_MB)")


def _known(name: str) -> bool:
    return name in (MANIFEST, ENTITIES, COMMUNITIES, SUMMARIES, TREE, TREE_SUMMARIES, END) or _DOCUMENT.match(name) is not None


@contextmanager
def reading(path: Path, limits: Limits) -> Iterator[ArchiveReader]:
    """Open the archive at ``path``."""
    with gzip.open(path, "rb") as file:
        yield ArchiveReader(file, limits)  # type: ignore[arg-type]


_ANYTHING: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])


def small(member: Member) -> bytes:
    """Return the content of a member that is small."""
    return member.content(limit=_SMALL_BYTES)


def loosely(content: bytes) -> dict[str, object]:
    """Return a JSON object of any members.

    Raises:
        InvalidRequest: it is none.
    """
    try:
        return _ANYTHING.validate_json(content)
    except ValidationError:
        raise InvalidRequest("the archive's manifest is no JSON object") from None
