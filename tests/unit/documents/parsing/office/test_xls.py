from __future__ import annotations

import random
import struct
from collections.abc import Sequence

import pytest
from office_files import lines_at, ole_file, reads_or_refuses, tables_of

from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.media_types import XLS, media_type_of
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument, UnsupportedMediaType

PARSER = parser_of(XLS)
FORMATS = ("General", "0.0%", "000000")


def record(kind: int, *parts: bytes) -> bytes:
    data = b"".join(parts)
    return struct.pack("<HH", kind, len(data)) + data


def text(value: str) -> bytes:
    return struct.pack("<HB", len(value), 1) + value.encode("utf-16-le")


def label(row: int, column: int, value: str) -> bytes:
    return record(0x204, struct.pack("<3H", row, column, 0), text(value))


def number(row: int, column: int, value: float, style: int = 0) -> bytes:
    return record(0x203, struct.pack("<3Hd", row, column, style, value))


def hidden_row(row: int) -> bytes:
    return record(0x208, struct.pack("<8H", row, 0, 9, 255, 0, 0, 0x20, 0))


def workbook(sheets: Sequence[tuple[str, int, bytes]]) -> bytes:
    """Return a workbook. A sheet has a name, a visibility (0: visible, 1: hidden, 2: very hidden) and records."""
    begin = struct.pack("<HHHHII", 0x600, 0x05, 0, 1997, 0, 6)
    head = record(0x809, begin) + record(0x42, struct.pack("<H", 1200))
    for index, code in enumerate(FORMATS):
        head += record(0x41E, struct.pack("<H", 164 + index), text(code))
    for index in range(len(FORMATS)):
        head += record(0xE0, struct.pack("<HH16x", 0, 164 + index))
    parts = [
        record(0x809, struct.pack("<HHHHII", 0x600, 0x10, 0, 1997, 0, 6)) + content + record(0x0A) for _, _, content in sheets
    ]
    start = len(head) + sum(len(record(0x85, b"12345678", name.encode())) for name, _, _ in sheets) + 4
    for (name, visibility, _), part in zip(sheets, parts, strict=True):
        head += record(0x85, struct.pack("<IBBBB", start, visibility, 0, len(name), 0), name.encode())
        start += len(part)
    return ole_file({"Workbook": head + record(0x0A) + b"".join(parts)})


BERTHS = (
    record(0x7D, struct.pack("<6H", 4, 4, 256, 0, 1, 0))
    + hidden_row(3)
    + b"".join(label(0, column, name) for column, name in enumerate(["Quay", "Berth", "Fee", "Rate", "Secret"]))
    + label(1, 0, "North") + label(1, 1, "N1") + number(1, 2, 417, 2) + number(1, 3, 0.125, 1) + label(1, 4, "s")
    + label(2, 1, "N2") + record(0xBD, struct.pack("<HHHiHiH", 2, 2, 2, 18 << 2 | 2, 0, 7 << 2 | 2, 3))
    + label(3, 0, "East") + label(3, 1, "hidden") + label(4, 0, "South") + label(4, 1, "S1")
    + record(0xE5, struct.pack("<H4H", 1, 1, 2, 0, 0))
)  # fmt: skip


def test_sheets_are_tables_with_their_spans_and_values_as_shown() -> None:
    content = workbook([("Berths", 0, BERTHS), ("Plans", 1, label(0, 0, "x")), ("Codes", 2, label(0, 0, "y"))])
    assert media_type_of(None, "berths.doc", content) == XLS
    PARSER.check(content, is_whole=True)
    parsed = PARSER.parse(content)
    assert tables_of(parsed) == [
        [
            ["Quay", "Berth", "Fee", "Rate"], ["North", "N1", "000417", "12.5%"], ["North", "N2", "000018", "7"],
            ["South", "S1", "", ""],
        ]
    ]  # fmt: skip
    assert [cells for _, cells in lines_at(parsed)] == [None, "A1:D1", "A2:D2", "A3:D3", "A5:D5"]
    assert parsed.metadata["hidden_sheets"] == ["Plans", "Codes"]
    assert parsed.warnings == (
        "not in the text: hidden rows (1: Berths!4)",
        "not in the text: hidden columns (1: Berths!E)",
        "not in the text: hidden sheets (2: Plans, Codes)",
    )


def test_the_directory_of_an_old_office_file_shows_its_kind() -> None:
    for entry, message in {
        "WordDocument": "old Word document",
        "PowerPoint Document": "old presentation",
        "EncryptedPackage": "encrypted",
        "Other": "an old Office file, or an encrypted one",
    }.items():
        with pytest.raises(UnsupportedMediaType, match=message):
            media_type_of(None, "a.xls", ole_file({entry: b"", "Workbook2": b""}))
    book = ole_file({"Workbook": struct.pack("<HHH", 0x809, 16, 0x600) + bytes(20_000)}, last_directory=True)
    assert media_type_of(None, "a.bin", book[: len(book) - 512]) == XLS
    with pytest.raises(UnsupportedMediaType, match="an old Office file"):
        media_type_of(None, "a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(3_000))


def test_sheets_that_span_too_much_and_damaged_files_are_refused() -> None:
    far = workbook([("S", 0, label(0, 0, "near") + label(65_535, 255, "far"))])
    with pytest.raises(ResourceLimit, match="spans 16777216 cells; the limit is 8000000"):
        PARSER.parse(far)
    with pytest.raises(UnreadableDocument, match="contains none"):
        PARSER.check(ole_file({"Other": b""}), is_whole=True)
    content = workbook([("Berths", 0, BERTHS)])
    chance = random.Random(7)
    results = []
    for _ in range(200):
        changed = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        results.append(reads_or_refuses(PARSER, bytes(changed)))
    assert any(results)
