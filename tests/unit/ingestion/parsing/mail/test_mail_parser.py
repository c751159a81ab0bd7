"""Messages: headers, the text, attachments and hostile ones."""

from __future__ import annotations

import base64
import contextlib
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, MAX_ATTACHMENTS
from agentic_rag_backend.domain.media_types import CALENDAR, EML
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


HEADERS = "From: a@example.org\nSubject: Lock\nMIME-Version: 1.0\n"
SAME = "The Sable Lock closes at 21:40 from Monday, and opens again at dawn."
STUB = "Your program cannot show HTML. Please open this message in a browser: https://example.org/v/1"
INVITATION = (
    "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VTIMEZONE\r\nDTSTART:19700101T000000\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\n"
    "SUMMARY:Harbour coun\r\n cil\r\nDTSTART;TZID=Europe/Oslo:20260304T093000\r\nDTEND:20260304T103000Z\r\n"
    'LOCATION:Customs house\\, room 4\r\nORGANIZER;CN="Lund, Petra":mailto:petra@example.org\r\n'
    "ATTENDEE;PARTSTAT=NEEDS-ACTION;CN=Nils:mailto:nils@example.org\r\nATTENDEE:mailto:bob@example.org\r\n"
    "BEGIN:VALARM\r\nDESCRIPTION:Reminder\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)
EVENT = (
    "Harbour council\n\nStart: 2026-03-04 09:30 (Europe/Oslo)\nEnd: 2026-03-04 10:30 UTC\nLocation: Customs house, room 4\n"
    "Organizer: Lund, Petra <petra@example.org>\nAttendees: Nils <nils@example.org>, bob@example.org"
)


def multipart(kind: str, *parts: tuple[str, str]) -> str:
    """Return headers and body of a message whose parts have these headers and texts."""
    body = "".join(f"--b\n{part_headers}\n\n{text}\n" for part_headers, text in parts)
    return f'{HEADERS}Content-Type: multipart/{kind}; boundary="b"\n\n{body}--b--\n'


def test_the_text_of_a_message_is_the_form_that_says_more() -> None:
    plain, html, other_forms = "Content-Type: text/plain", "Content-Type: text/html", "other forms"
    flowed = "Content-Type: text/plain; format=flowed"
    cases = {
        "same": (multipart("alternative", (plain, SAME), (html, f"<p><b>{SAME}</b></p>")), SAME, ""),
        "blank": (multipart("alternative", (plain, " "), (html, f"<p>{SAME}</p>")), SAME, ""),
        "stub": (multipart("alternative", (plain, STUB), (html, f"<p>{SAME}</p>")), SAME, other_forms),
        "picture only": (multipart("alternative", (plain, SAME), (html, "<img alt='Logo'>")), SAME, other_forms),
        "several texts": (multipart("mixed", (plain, "Before."), (html, "<p>After.</p>")), "Before.\n\nAfter.", ""),
        "flowed": (f"{HEADERS}{flowed}\n\nOne \nline.\n> quoted \n> twice\n-- \nPet", "One line.\n> quoted twice\n--\nPet", ""),
        "no space": (f"{HEADERS}{flowed}; delsp=yes\n\nhar \nbour \n", "harbour", ""),
        "encrypted": (
            f"{HEADERS}\nSee below.\n-----BEGIN PGP MESSAGE-----\n\nhQEMA\n-----END PGP MESSAGE-----\n", "See below.", "PGP (1)"
        ),
        "no boundary": (f"{HEADERS}Content-Type: multipart/mixed\n\n{SAME}\n", SAME, "is damaged"),
        "base64 cut short": (
            f"{HEADERS}{plain}\nContent-Transfer-Encoding: base64\n\n{base64.b64encode(SAME.encode()).decode()[:-3]}",
            SAME[:-2], "is damaged",
        ),
        "no text": (multipart("mixed", (plain, SAME), ("Content-Type: application/pkcs7-mime", "MIAG")), SAME, "(S/MIME)"),
        "invitation": (
            multipart("alternative", (plain, SAME), ("Content-Type: text/calendar; method=REQUEST", INVITATION)),
            f"{SAME}\n\n{EVENT}", "",
        ),
    }  # fmt: skip
    for name, (content, text, warning) in cases.items():
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-be"):
            parsed = PARSER.parse(content.encode(encoding))
            assert parsed.text == f"From: a@example.org\nSubject: Lock\n\n{text}", (name, encoding)
            assert [warning in shown for shown in parsed.warnings] == [True] * bool(warning), parsed.warnings


def test_unreadable_parts_are_named_with_a_short_reason() -> None:
    for name, declared, reason in (
        ("smime.p7m", "application/pkcs7-mime", "(S/MIME)"),
        ("smime.p7s", "application/octet-stream", "it is a signature"),
        ("winmail.dat", "application/octet-stream", "(TNEF)"),
        ("a.asc", "application/octet-stream", "(PGP)"),
        ("plan.xyz", "application/x-unheard-of", "documents of type 'application/x-unheard-of' cannot be read"),
    ):
        made = message()
        made.add_attachment(b"x", *declared.split("/"), filename=name)
        parsed = PARSER.parse(made.as_bytes())
        assert parsed.warnings[0].startswith(f"attachment {name}: not read: ")
        assert parsed.warnings[0].endswith(reason)
        assert "supported" not in parsed.text


def test_a_calendar_file_is_read() -> None:
    parsed = parser_of(CALENDAR).parse(INVITATION.encode())
    assert (parsed.title, parsed.text) == ("Harbour council", EVENT)
    with pytest.raises(UnreadableDocument, match="no event"):
        parser_of(CALENDAR).check(b"BEGIN:VCALENDAR\n", is_whole=True)


def test_further_and_cancelled_times_of_an_event_are_read() -> None:
    event = (
        "BEGIN:VEVENT\nSUMMARY:Council\nLOCATION:Quay 3\\nSarn\nRRULE:FREQ=WEEKLY\nURL:https://example.org/c\n"
        'RDATE;TZID="Europe/Oslo";VALUE=PERIOD:20240305T090000/PT1H,20240309T090000/PT1H\nEXDATE:20240312,20240319\nEND:VEVENT\n'
    )
    assert parser_of(CALENDAR).parse(event.encode()).text == (
        "Council\n\nLocation: Quay 3, Sarn\nRepeats: FREQ=WEEKLY\nAlso on: "
        "2024-03-05 09:00 (Europe/Oslo), 2024-03-09 09:00 (Europe/Oslo)\n"
        "Not on: 2024-03-12, 2024-03-19\nLink: https://example.org/c"
    )


def test_a_wrong_charset_of_a_message_is_reported_once() -> None:
    part = "--b\nContent-Type: text/plain; charset=iso-8859-1\n\n© 2002\n"
    content = f"Subject: Locks\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{part}{part}--b--\n"
    parsed = PARSER.parse(content.encode())
    assert parsed.text == "Subject: Locks\n\n© 2002\n\n© 2002"
    assert parsed.warnings == ("the text is utf-8, not iso-8859-1, as the message declares",)


def test_readable_attachments_are_sections_and_others_are_named_with_the_reason() -> None:
    made = message()
    made.add_attachment(
        b"# Prices\n\nA ticket costs 9 euros.", maintype="text", subtype="markdown", filename="../../etc/prices.md"
    )
    made.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="quarry.png")
    parsed = PARSER.parse(made.as_bytes())
    assert "Attachment prices.md\n\n# Prices\n\nA ticket costs 9 euros." in parsed.text
    assert "Attachment quarry.png\n\nNot read: it is a picture" in parsed.text
    assert parsed.warnings == ("attachment quarry.png: not read: it is a picture",)
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
