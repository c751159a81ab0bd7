"""Messages of Outlook."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from outlook_files import Tree, container_of, properties, text_property

from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, AttachmentOptions
from agentic_rag_backend.domain.media_types import MSG, media_type_of
from agentic_rag_backend.errors import ResourceLimit, UnreadableDocument
from agentic_rag_backend.ingestion.parsing.base import sniff_content
from agentic_rag_backend.ingestion.parsing.mail.outlook import decompress_rtf
from agentic_rag_backend.ingestion.parsing.registry import attachments_of, parser_of

SENT = int((datetime(2024, 3, 5, 9, tzinfo=UTC) - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
PARSER = parser_of(MSG)
APART = AttachmentOptions(mode="documents")


def person(name: str, address: str, kind: int) -> Tree:
    return {**text_property(0x3001, name), **text_property(0x39FE, address), **properties(8, p0C15=kind)}


def attached(name: str, content: bytes) -> Tree:
    return {**text_property(0x3707, name), "__substg1.0_37010102": content, **properties(8)}


def letter(header_bytes: int = 32, **attachments: Tree) -> Tree:
    return {
        **properties(header_bytes, p0039=SENT),
        **text_property(0x0037, "Lock times"),
        **text_property(0x0042, "Jürgen Lund"),
        **text_property(0x5D02, "lund@example.org"),
        **text_property(0x1000, "The lock closes at 21:40.\r\n"),
        "__recip_version1.0_#00000000": person("Bo", "bo@example.org", 1),
        "__recip_version1.0_#00000001": person("Nils", "nils@example.org", 2),
        **{f"__attach_version1.0_{name}": tree for name, tree in attachments.items()},
    }


def test_a_message_is_read_with_its_people_and_attachments() -> None:
    inner = {"__substg1.0_3701000D": letter(24), **properties(8)}
    content = container_of(letter(a=attached("tolls.txt", b"A boat pays 9 crowns. " * 300), b=inner))
    assert media_type_of(None, "mail", sniff_content(content)) == MSG
    assert PARSER.check(content, is_whole=True).title == "Lock times"
    parsed = parser_of(MSG, attachments=APART).parse(content)
    headers = (
        "From: Jürgen Lund <lund@example.org>\nTo: Bo <bo@example.org>\nCc: Nils <nils@example.org>\n"
        "Date: Tue, 05 Mar 2024 09:00:00 +0000\nSubject: Lock times"
    )
    assert parsed.text.startswith(f"{headers}\n\nThe lock closes at 21:40.\n\nAttachment tolls.txt: a document of its own")
    assert parsed.metadata["from"] == "Jürgen Lund <lund@example.org>"
    for _ in range(2):
        files = attachments_of(MSG).read(content, APART)
        assert [(file.name, len(file.content)) for file in files] == [
            ("tolls.txt", 6600),
            ("Lock times.eml", len(files[1].content)),
        ]
        assert parsed.attachments == len(files)
        assert files == attachments_of(MSG).read(content, APART)
    page = {
        **letter(),
        "__substg1.0_10130102": b"<p>The Sable Lock closes for repairs in June.</p>",
        **text_property(0x1000, " "),
    }
    assert PARSER.parse(container_of(page)).text.endswith("\n\nThe Sable Lock closes for repairs in June.")


def test_items_of_outlook_state_their_times_and_places() -> None:
    entries = {"__substg1.0_00030102": struct.pack("<IHHIHHIHH", 0x820D, 2, 5, 0x8208, 2, 6, 0x8232, 2, 7)}
    meeting = {
        **letter(),
        **properties(32, p8005=SENT, p8007=8),
        **text_property(0x001A, "IPM.Appointment"),
        **text_property(0x8006, "The lock house"),
        "__nameid_version1.0": entries,
    }
    assert PARSER.parse(container_of(meeting)).text.endswith("\n\nStart: 2024-03-05 09:00 UTC\nLocation: The lock house")
    contact = {**letter(), **text_property(0x001A, "IPM.Contact"), **text_property(0x3A08, "555 0101")}
    assert PARSER.parse(container_of(contact)).text.endswith("21:40.\n\nTelephone: 555 0101")
    assert "555" not in PARSER.parse(container_of({**contact, **text_property(0x001A, "IPM.Note")})).text


def test_texts_in_8_bits_have_the_code_page_of_the_message_or_of_its_body_or_the_detected_one() -> None:
    body = "Шлюз закрывается в 21:40, сообщает начальник порта."
    ansi = {name: content for name, content in letter().items() if not name.endswith("001F")}
    ansi["__recip_version1.0_#00000000"] = {"__substg1.0_3001001E": "Лоцман, порт".encode("cp1251"), **properties(8, p0C15=1)}
    for fixed in ({"p3FFD": 1251}, {"p3FDE": 1251}, {"p3FDE": 65001}):
        streams = {"__substg1.0_1000001E": body.encode("cp1251"), "__substg1.0_0042001E": "Порт".encode("cp1251")}
        parsed = PARSER.parse(container_of({**ansi, **streams, **properties(32, **fixed)}))
        assert (parsed.text.partition("\n\n")[2], parsed.metadata["from"]) == (body, "Порт")
        assert parsed.metadata["to"] == '"Лоцман, порт"'
    page = '<meta charset="big5"><p>人人生而自由,在尊嚴和權利上一律平等。</p>'
    for name, content in (("001F", page.encode("utf-16-le")), ("001E", page.encode("big5"))):
        parsed = PARSER.parse(container_of({**ansi, f"__substg1.0_1013{name}": content, **properties(32, p3FDE=950)}))
        assert (parsed.text.splitlines()[-1], parsed.warnings) == ("人人生而自由,在尊嚴和權利上一律平等。", ())


def test_the_author_has_the_address_of_the_received_headers() -> None:
    colleague = {**letter(), **text_property(0x5D02, "/O=PORT/CN=LUND"), **text_property(0x0042, "Lund, Jürgen")}
    assert PARSER.parse(container_of(colleague)).metadata["from"] == "Lund, Jürgen"
    headers = text_property(0x007D, "Received: from a\r\n by b\r\nFrom: Somebody\r\n <lund@example.org>\r\n\r\n")
    assert PARSER.parse(container_of({**colleague, **headers})).metadata["from"] == '"Lund, Jürgen" <lund@example.org>'


def compress(*pieces: bytes | tuple[int, int]) -> bytes:
    """Return formatted text, as letters and as references to the dictionary with a start and a length."""
    items = [
        letter if isinstance(piece, bytes) else piece
        for piece in pieces
        for letter in (list(piece) if isinstance(piece, bytes) else [piece])
    ]
    content = b""
    for start in range(0, len(items), 8):
        group = items[start : start + 8]
        content += bytes([sum(1 << bit for bit, item in enumerate(group) if isinstance(item, tuple))])
        for item in group:
            content += struct.pack(">H", item[0] << 4 | item[1] - 2) if isinstance(item, tuple) else bytes([item])
    return struct.pack("<IIII", len(content) + 12, 0, 0x75465A4C, 0) + content


def test_formatted_text_is_read_where_there_is_no_other() -> None:
    compressed = compress((0, 11), b" hello", (207 + 11, 6), b" world}")
    assert decompress_rtf(compressed) == b"{\\rtf1\\ansi hello hello world}"
    body = {**{name: value for name, value in letter().items() if "1000001F" not in name}, "__substg1.0_10090102": compressed}
    assert PARSER.parse(container_of(body)).text.endswith("\n\nhello hello world")


def test_damaged_and_hostile_messages_are_read_or_refused() -> None:
    for content, problem in (
        (container_of({"other": b"x"}), "no properties"),
        (container_of(letter())[:600], "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "damaged"),
    ):
        with pytest.raises(UnreadableDocument, match=problem):
            PARSER.parse(content)
    nested = letter(24)
    for _ in range(MAX_ATTACHED_DEPTH + 3):
        nested = letter(24, a={"__substg1.0_3701000D": nested, **properties(8)})
    with pytest.raises(ResourceLimit, match="attached to each other"):
        PARSER.parse(container_of({**nested, **properties(32)}))
    whole, chance = container_of(letter(a=attached("a.txt", b"text" * 2000))), random.Random(5)
    for _ in range(150):
        changed = bytearray(whole)
        for _ in range(chance.randint(1, 12)):
            changed[chance.randrange(8, len(changed))] = chance.choice([0, 1, 2, 255, 254])
        try:
            assert parser_of(MSG, attachments=replace(APART)).parse(bytes(changed)).text
        except UnreadableDocument:
            continue
