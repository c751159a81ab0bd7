"""Streams and storages of OLE2 containers (MS-CFB), within limits on what they read altogether."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument

MAX_ENTRIES = 20_000
"""Streams and storages. A message with fifty attachments has about 2,000."""
MAX_READ_SHARE = 4
"""Bytes that are read for each byte of the file. Chains of damaged files may share sectors."""

_ENTRY_BYTES = 128
_SECTOR_BYTES = {9: 512, 12: 4096}
"""The size of a sector by the number that the header has for it."""
_SMALL_BYTES, _SMALL_SECTOR_BYTES = 4096, 64
"""Streams below this size stand in the stream of the root, in sectors of their own."""
_LAST_SECTOR = 0xFFFFFFFA
_STREAM = 2


@dataclass(frozen=True, slots=True)
class OleEntry:
    """A stream or storage: its neighbours and first child in the directory, its first sector and its size."""

    name: str
    kind: int
    before: int
    after: int
    child: int
    sector: int
    size_bytes: int


class OleContainer:
    """The tree of a container. The entry 0 is its root.

    Raises:
        UnreadableDocument: it is damaged.
        ResourceLimit: a limit of this module is exceeded.
    """

    def __init__(self, content: bytes) -> None:
        self._content, self._left = content, MAX_READ_SHARE * len(content)
        try:
            self._size = _SECTOR_BYTES[struct.unpack_from("<H", content, 30)[0]]
            self._table = self._read_table()
            directory = self._read_chain(struct.unpack_from("<I", content, 48)[0], MAX_ENTRIES * _ENTRY_BYTES + 1)
            if len(directory) > MAX_ENTRIES * _ENTRY_BYTES:
                raise ResourceLimit(f"the file has more than {MAX_ENTRIES} streams, which is the limit")
            self._entries = [_read_entry(directory, start) for start in range(0, len(directory) - _ENTRY_BYTES + 1, _ENTRY_BYTES)]
            self._small_table = self._read_numbers(self._read_chain(struct.unpack_from("<I", content, 60)[0], len(content)))
            self._small_content = self._read_chain(self._entries[0].sector, self._entries[0].size_bytes)
        except (struct.error, LookupError, ValueError):
            raise UnreadableDocument("the file is damaged: its directory of streams cannot be read") from None

    def list_children(self, number: int) -> dict[str, int]:
        """Return the names of the streams and storages in a storage, with their numbers."""
        names: dict[str, int] = {}
        waiting, visited = [self._entries[number].child], set[int]()
        while waiting:
            entry_number = waiting.pop()
            if entry_number < len(self._entries) and entry_number not in visited:
                visited.add(entry_number)
                entry = self._entries[entry_number]
                names[entry.name] = entry_number
                waiting += [entry.before, entry.after]
        return names

    def read_stream(self, number: int) -> bytes:
        """Return the bytes of a stream; those of a storage are empty."""
        entry = self._entries[number]
        if entry.kind != _STREAM:
            return b""
        if entry.size_bytes >= _SMALL_BYTES:
            return self._read_chain(entry.sector, entry.size_bytes)
        blocks: list[bytes] = []
        sector = entry.sector
        for _ in range(-(-entry.size_bytes // _SMALL_SECTOR_BYTES)):
            if sector >= len(self._small_table):
                break
            blocks.append(self._small_content[sector * _SMALL_SECTOR_BYTES : (sector + 1) * _SMALL_SECTOR_BYTES])
            sector = self._small_table[sector]
        self._count_bytes(entry.size_bytes)
        return b"".join(blocks)[: entry.size_bytes]

    def _read_table(self) -> tuple[int, ...]:
        """Return the allocation table: the next sector of each one."""
        sectors = list(struct.unpack_from("<109I", self._content, 76))
        sector = struct.unpack_from("<I", self._content, 68)[0]
        for _ in range(len(self._content) // self._size):  # further sectors of numbers, the last of which leads to the next
            if sector >= _LAST_SECTOR:
                break
            *numbers, sector = self._read_numbers(self._read_sector(sector))
            sectors += numbers
        table = b"".join(
            self._read_sector(number) for number in sectors[: len(self._content) // self._size] if number < _LAST_SECTOR
        )
        return self._read_numbers(table)

    @staticmethod
    def _read_numbers(block: bytes) -> tuple[int, ...]:
        return struct.unpack(f"<{len(block) // 4}I", block[: len(block) // 4 * 4])

    def _read_sector(self, sector: int) -> bytes:
        return self._content[(sector + 1) * self._size : (sector + 2) * self._size]

    def _read_chain(self, sector: int, size_bytes: int) -> bytes:
        blocks = list(self._iterate_chain(sector, size_bytes))
        return b"".join(blocks)[:size_bytes]

    def _iterate_chain(self, sector: int, size_bytes: int) -> Iterator[bytes]:
        for _ in range(min(-(-size_bytes // self._size), len(self._table))):
            if sector >= len(self._table):
                return
            self._count_bytes(self._size)
            yield self._read_sector(sector)
            sector = self._table[sector]

    def _count_bytes(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise ResourceLimit(f"the streams of the file have more than {MAX_READ_SHARE} times its size, which is the limit")


def _read_entry(directory: bytes, start: int) -> OleEntry:
    length, kind, _, before, after, child = struct.unpack_from("<HBBIII", directory, start + 64)
    sector, size = struct.unpack_from("<II", directory, start + 116)
    name = directory[start : start + min(max(length - 2, 0), 62)].decode("utf-16-le", "replace")
    return OleEntry(name, kind, before, after, child, sector, size)
