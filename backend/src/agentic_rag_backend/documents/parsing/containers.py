"""ZIP containers of documents: reads members with limits on what they unzip to, before any library sees the file.

The sizes that a ZIP file states are not believed: bytes are counted while they are unzipped. Members that are containers
themselves are never opened.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable

from lxml import etree

from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_MEMBERS = 10_000
"""A presentation of a thousand slides has about 4,000 members, and a long book a few hundred."""
MAX_UNZIPPED_BYTES = 256 * 1024 * 1024
"""Sum over the members that are read. Only those with text are read, never pictures. A sheet of a million rows and five
columns takes about this much. Trees of larger files do not fit into the memory of the process that reads them."""
MAX_RATIO = 200
"""Unzipped bytes for each zipped byte, of containers that unzip to more than `RATIO_FROM_BYTES`. The XML of a sheet that
repeats one row is compressed to about a fiftieth, and a bomb to a thousandth."""
RATIO_FROM_BYTES = 32 * 1024 * 1024

MAX_XML_DEPTH = 256
MAX_XML_TEXT_BYTES = 10_000_000
"""Largest text between two tags of XML. This limit and that of the depth are those of the library."""

_ENCRYPTED = 0x1
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_BLOCK_BYTES = 1024 * 1024
_ENCODED_BYTES = 200
"""XML in UTF-16 has a NUL among its first characters."""
_DOCTYPE = re.compile(rb"<\0?!\0?D\0?O\0?C\0?T\0?Y\0?P\0?E")
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, ValueError, LookupError, OSError, EOFError,
    OverflowError,
)  # fmt: skip


class ZipContainer:
    """The members of a ZIP file. One object reads one file, and its limits apply to all members that it reads.

    Raises:
        UnreadableDocument: the file is damaged, encrypted, or has members whose names are ambiguous or lead out of it.
        ResourceLimit: a limit of this module is exceeded. The message names the limit.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except _DAMAGE as error:
            raise UnreadableDocument(f"the file is damaged: its ZIP directory cannot be read ({_first_line(error)})") from None
        self._size, self._unzipped = len(content), 0
        members = self._zip.infolist()
        if len(members) > MAX_MEMBERS:
            raise ResourceLimit(f"the file has {len(members)} members; the limit is {MAX_MEMBERS}")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in members:
            if member.filename and not member.is_dir():
                self._add_member(member)

    @property
    def names(self) -> Iterable[str]:
        """The names of the members in the order of the ZIP directory, without folders."""
        return self._members.keys()

    @property
    def unzipped_bytes(self) -> int:
        """Sum of the members that were read."""
        return self._unzipped

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read_member(self, name: str) -> bytes:
        """Return a member's bytes.

        Raises:
            UnreadableDocument: there is no such member, or it is damaged.
            ResourceLimit: the container unzips to more than the limits allow.
        """
        member = self._members.get(name)
        if member is None:
            raise UnreadableDocument(f"the file is damaged: it has no member {name[:200]!r}")
        blocks: list[bytes] = []
        try:
            with self._zip.open(member) as opened:
                while block := opened.read(_BLOCK_BYTES):
                    self._count_bytes(len(block))
                    blocks.append(block)
        except _DAMAGE as error:
            raise UnreadableDocument(f"the file is damaged: {name[:200]!r} cannot be unzipped ({_first_line(error)})") from None
        return b"".join(blocks)

    def read_tree(self, name: str) -> etree._Element:
        """Return the root element of a member that is XML."""
        return xml_tree(self.read_member(name), name)

    def _add_member(self, member: zipfile.ZipInfo) -> None:
        name = member.filename
        if member.flag_bits & _ENCRYPTED:
            raise UnreadableDocument("the file is encrypted; remove its password")
        if name.startswith("/") or "\\" in name or ".." in name.split("/"):
            raise UnreadableDocument(f"the file has a member whose name leads out of it: {name[:200]!r}")
        if name in self._members:
            raise UnreadableDocument(f"the file has two members with the name {name[:200]!r}")
        if member.compress_type not in _METHODS:
            raise UnreadableDocument(f"the member {name[:200]!r} is compressed by a method other than Deflate")
        self._members[name] = member

    def _count_bytes(self, size: int) -> None:
        self._unzipped += size
        if self._unzipped > MAX_UNZIPPED_BYTES:
            raise ResourceLimit(f"the file unzips to more than {MAX_UNZIPPED_BYTES // 1024**2} MiB, which is the limit")
        if self._unzipped > max(RATIO_FROM_BYTES, MAX_RATIO * self._size):
            raise ResourceLimit(
                f"the file of {self._size} bytes unzips to at least {self._unzipped} bytes; "
                f"the limit is {MAX_RATIO} times its size"
            )


def refuse_document_type(content: bytes, name: str) -> None:
    """Refuse XML with a document type, which can define entities. Office formats do not allow one.

    Raises:
        UnreadableDocument: it has one.
    """
    if (b"<!" in content or b"\0" in content[:_ENCODED_BYTES]) and _DOCTYPE.search(content):
        raise UnreadableDocument(f"the XML of {name[:200]!r} has a document type (DOCTYPE), which is not allowed")


def xml_parser() -> etree.XMLParser:
    """Return a parser that resolves no entities, loads nothing and refuses what exceeds the limits of XML."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True
    )


def xml_tree(content: bytes, name: str) -> etree._Element:
    """Return the root element of XML without a document type.

    Raises:
        UnreadableDocument: it is not well-formed, or has a document type.
        ResourceLimit: it is nested too deep, or has too long a text without tags.
    """
    refuse_document_type(content, name)
    try:
        return etree.fromstring(content, xml_parser())
    except etree.XMLSyntaxError as error:
        raise xml_problem(error.code, str(error), f"the XML of {name[:200]!r}") from None
    except (etree.LxmlError, ValueError) as error:
        raise UnreadableDocument(f"the file is damaged: the XML of {name[:200]!r} is not valid ({_first_line(error)})") from None


def xml_problem(code: int, message: str, what: str) -> UnreadableDocument:
    """Return the error for XML that the library does not read. ``what`` names the XML.

    Args:
        code: a number of `etree.ErrorTypes`.

    Raises:
        MemoryError: the library had too little memory.
    """
    if code == etree.ErrorTypes.ERR_NO_MEMORY:
        raise MemoryError
    if code != etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return UnreadableDocument(f"the file is damaged: {what} is not valid ({_first_line(ValueError(message))})")
    if "depth" in message:
        return ResourceLimit(f"the elements of {what} are nested more than {MAX_XML_DEPTH} deep, which is the limit")
    return ResourceLimit(f"{what} has a text of more than {MAX_XML_TEXT_BYTES} bytes without tags, which is the limit")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
