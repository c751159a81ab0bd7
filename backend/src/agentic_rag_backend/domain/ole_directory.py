"""Entries of OLE2 containers (MS-CFB), which show the kind of an old Office file."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import islice

SIGNATURE = b"\xd0\xcf\x11\xe0"
MAX_DIRECTORY_SECTORS = 256
"""Sectors of the directory that are read. One has four entries, or 32 in large files."""

_ENTRY_BYTES = 128
_SECTOR_BYTES = {9: 512, 12: 4096}
"""The size of a sector by the number that the header has for it."""
_TABLES_IN_HEADER = 109
_LAST_SECTOR = 0xFFFFFFFA
"""Numbers of sectors are below this."""


def list_top_entries(head: bytes) -> frozenset[str] | None:
    """Return the names of the streams and storages at the top of a container. Those of embedded files are not among them.

    Args:
        head: the beginning of the file. The directory may stand behind it.

    Returns:
        None if the directory is not in ``head``, or damaged.
    """
    try:
        entries = _read_directory(head)
        root_child = struct.unpack_from("<I", entries, 76)[0]
    except (struct.error, LookupError):
        return None
    names: set[str] = set()
    waiting, numbers = [root_child], set[int]()
    while waiting:
        number = waiting.pop()
        start = number * _ENTRY_BYTES
        if number in numbers or start + _ENTRY_BYTES > len(entries):
            continue
        numbers.add(number)
        length, _, _, before, after = struct.unpack_from("<HBBII", entries, start + 64)
        names.add(entries[start : start + min(max(length - 2, 0), 62)].decode("utf-16-le", "replace"))
        waiting += [before, after]
    return frozenset(names)


def _read_directory(head: bytes) -> bytes:
    """Return the entries of the directory that are in ``head``, at least the first one."""
    sectors = islice(_iterate_sectors(head, struct.unpack_from("<I", head, 48)[0]), MAX_DIRECTORY_SECTORS)
    entries = b"".join(sectors)
    if len(entries) < _ENTRY_BYTES:
        raise IndexError
    return entries


def _iterate_sectors(head: bytes, sector: int) -> Iterator[bytes]:
    """Yield the sectors of a chain as far as they are in ``head``, and as many as it has at most."""
    size = _SECTOR_BYTES[struct.unpack_from("<H", head, 30)[0]]
    for _ in range(len(head) // size):
        start = (sector + 1) * size
        if sector >= _LAST_SECTOR or start >= len(head):
            return
        yield head[start : start + size]
        table, index = divmod(sector, size // 4)
        table_sector = _find_table(head, table, size)
        sector = struct.unpack_from("<I", head, (table_sector + 1) * size + index * 4)[0]


def _find_table(head: bytes, table: int, size: int) -> int:
    """Return the sector of a part of the allocation table. The header has the first 109, and a chain of sectors the others."""
    if table < _TABLES_IN_HEADER:
        return int(struct.unpack_from("<I", head, 76 + 4 * table)[0])
    sector = struct.unpack_from("<I", head, 68)[0]
    hops, index = divmod(table - _TABLES_IN_HEADER, size // 4 - 1)
    for _ in range(hops):
        sector = struct.unpack_from("<I", head, (sector + 2) * size - 4)[0]
    return int(struct.unpack_from("<I", head, (sector + 1) * size + 4 * index)[0])
