"""Messages: headers, the text, attachments and hostile ones."""

from __future__ import annotations

import contextlib
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, MAX_ATTACHMENTS
from agentic_rag_backend.domain.media_types import EML
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.mail import mail_parser
from agentic_rag_backend.ingestion.parsing.mail import message as mail_message
from agentic_rag_backend.ingestion.parsing.registry import parser_of

PARSER = parser_of(EML)


def message(text: str = "The quarry opens in May.", subject: str = "Opening") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Petra Lund <petra@example.org>", "bob@example.org", subject
    made["Date"] = "Tue, 03 Mar 2026 09:30:00 +0000"
    made.set_content(text)
    return made


def test_headers_are_lines_and_metadata() -> None:
    parsed = PARSER.parse(message().as_bytes())
    assert parsed.title == "Opening"
    assert parsed.metadata["from"] == "Petra Lund <petra@example.org>"
    headers = "From: Petra Lund <petra@example.org>\nTo: bob@example.org\nDate: Tue, 03 Mar 2026 09:30:00 +0000\nSubject: Opening"
    assert parsed.text == f"{headers}\n\nThe quarry opens in May."


def test_the_plain_text_is_preferred() -> None:
    made = message()
    made.add_alternative("<p>The <b>HTML</b> form.</p>", subtype="html")
    assert "HTML" not in PARSER.parse(made.as_bytes()).text


def test_readable_attachments_are_sections_and_others_are_named_with_the_reason() -> None:
    made = message()
    made.add_attachment(
        b"# Prices\n\nA ticket costs 9 euros.", maintype="text", subtype="markdown", filename="../../etc/prices.md"
    )
    made.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="quarry.png")
    parsed = PARSER.parse(made.as_bytes())
    assert "Attachment prices.md\n\n# Prices\n\nA ticket costs 9 euros." in parsed.text
    assert "Attachment quarry.png\n\nNot read: the file is a PNG image" in parsed.text
    assert parsed.warnings == ("attachment quarry.png: not read: the file is a PNG image, which cannot be read",)
    assert [(each.level, each.title) for each in parsed.headings] == [
        (2, "Attachment prices.md"),
        (3, "Prices"),
        (2, "Attachment quarry.png"),
    ]
    for heading in parsed.headings:
        assert heading.title in parsed.text[heading.start_char : heading.start_char + 60]


def test_attached_messages_are_read_to_a_limit() -> None:
    made = message("The innermost text.")
    for depth in range(MAX_ATTACHED_DEPTH + 2):
        outer = message(f"Level {depth}.")
        outer.add_attachment(made)
        made = outer
    parsed = PARSER.parse(made.as_bytes())
    text = parsed.text
    assert "Level 3." in text
    assert f"more than {MAX_ATTACHED_DEPTH} messages" in parsed.warnings[0]
    assert "innermost" not in text
    assert f"more than {MAX_ATTACHED_DEPTH} messages" in text


def test_limits_of_attachments_and_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made = message()
    for number in range(MAX_ATTACHMENTS + 2):
        made.add_attachment(f"Note {number}.".encode(), maintype="text", subtype="plain", filename=f"{number}.txt")
    parsed = PARSER.parse(made.as_bytes())
    text = parsed.text
    assert [each.split(":")[0] for each in parsed.warnings] == [f"attachment {MAX_ATTACHMENTS + n}.txt" for n in range(2)]
    assert f"Note {MAX_ATTACHMENTS - 1}." in text
    assert f"Attachment {MAX_ATTACHMENTS}.txt: not read" in text
    monkeypatch.setattr(mail_parser, "MAX_PARTS", 10)
    monkeypatch.setattr(mail_message, "MAX_PARTS", 10)
    with pytest.raises(UnreadableDocument, match="more than 10 parts"):
        PARSER.parse(made.as_bytes())


def test_long_headers_are_cut_before_the_library_reads_them() -> None:
    """The library needs time quadratic in a header: without the limit, this test takes minutes."""
    line = b"petra@example.org, " * 50_000
    parsed = PARSER.parse(b"From: petra@example.org\nTo: %s\nSubject: %s\n\nbody" % (line, line))
    assert parsed.text.endswith("body")
    assert len(parsed.text) < 3 * mail_message.MAX_HEADER_CHARACTERS


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(UnreadableDocument, match="not a message"):
        PARSER.parse(b"Just a text.\n")


def test_parts_nested_without_end_are_refused() -> None:
    content = b"Subject: deep\n"
    for number in range(55):  # the library itself gives up at about 300
        content += b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (number, number)
    with pytest.raises(UnreadableDocument, match="nested more than 50 deep"):
        PARSER.parse(content)


@settings(max_examples=60)
@given(st.data())
def test_damaged_messages_are_read_or_refused(data: st.DataObject) -> None:
    made = message()
    made.add_attachment(b"a,b\n1,2\n", maintype="text", subtype="csv", filename="a.csv")
    content = bytearray(made.as_bytes())
    for _ in range(data.draw(st.integers(1, 12))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableDocument):
        PARSER.parse(bytes(content))
