"""Attachments as files of their own: places, names, limits over nested messages, and what the message says about them."""

from __future__ import annotations

import base64
import contextlib
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.documents.parsing.base import Attachment, ParsedDocument
from agentic_rag_backend.documents.parsing.mail import mail_attachments as module
from agentic_rag_backend.documents.parsing.mail.mail_attachments import MailAttachments
from agentic_rag_backend.documents.parsing.registry import parser_of
from agentic_rag_backend.domain.document import MAX_ATTACHED_DEPTH, MAX_ATTACHMENTS, AttachmentOptions
from agentic_rag_backend.domain.media_types import EML
from agentic_rag_backend.errors import UnreadableDocument

APART = AttachmentOptions("documents")


def message(subject: str = "Opening", text: str = "The quarry opens in May.") -> EmailMessage:
    made = EmailMessage()
    made["From"], made["Subject"] = "petra@example.org", subject
    made.set_content(text)
    return made


def note(made: EmailMessage, name: str, text: str = "A note.") -> None:
    made.add_attachment(text.encode(), maintype="text", subtype="plain", filename=name, params={"charset": "utf-8"})


def parsed(content: bytes, options: AttachmentOptions = APART) -> ParsedDocument:
    return parser_of(EML, attachments=options).parse(content)


def read(content: bytes, options: AttachmentOptions = APART) -> list[Attachment]:
    found = MailAttachments().read(content, options)
    assert parsed(content, options).attachments == len(found)
    return found


def test_attachments_are_files_and_the_message_names_them() -> None:
    made = message()
    note(made, "../../etc/note.txt", "Grüße")
    made.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="quarry.png")
    note(made, "note.txt", "Another note.")
    inner = message("Prices / 2026", "A ticket costs 9 euros.")
    note(inner, "inner.txt")
    made.add_attachment(inner)
    content = made.as_bytes()
    first, second, nested = read(content)
    assert [each.place for each in (first, second, nested)] == ["1/note.txt", "2/note.txt", "1/Prices 2026.eml"]
    assert (first.declared, first.content) == ("text/plain; charset=utf-8", "Grüße".encode())
    assert (nested.declared, nested.name) == (EML, "Prices 2026.eml")
    assert nested.options == AttachmentOptions("documents", most=1, depth=1)
    assert "A ticket costs 9 euros." in parsed(nested.content, nested.options).text
    assert [each.place for each in read(nested.content, nested.options)] == ["1/inner.txt"]
    shown = parsed(content)
    assert shown.text.endswith(
        "The quarry opens in May.\n\nAttachment note.txt: a document of its own\n\n"
        "Attachment quarry.png: not read: it is a picture\n\n"
        "Attachment note.txt: a document of its own\n\nAttachment Prices 2026.eml: a document of its own"
    )
    assert shown.warnings == ("attachment quarry.png: not read: it is a picture",)
    ignored = parsed(content, AttachmentOptions("ignore"))
    assert "Attachment note.txt: not read, as the upload asked" in ignored.text
    assert (ignored.attachments, ignored.warnings) == (0, ())


def test_a_place_stays_when_other_attachments_come_or_go() -> None:
    one, two = message(), message()
    for name in ("a.txt", "b.txt"):
        note(one, name)
    for name in ("new.txt", "b.txt", "a.txt"):
        note(two, name)
    before = {each.place: each.content for each in read(one.as_bytes())}
    assert before.items() <= {each.place: each.content for each in read(two.as_bytes())}.items()


def test_messages_as_files_and_in_base64_are_messages() -> None:
    inner = message("Inner")
    note(inner, "deep.txt")
    made = message()
    made.add_attachment(inner.as_bytes(), maintype="application", subtype="octet-stream", filename="saved.eml")
    (saved,) = read(made.as_bytes())
    assert (saved.options.most, [each.place for each in read(saved.content, saved.options)]) == (1, ["1/deep.txt"])
    encoded = base64.encodebytes(inner.as_bytes())
    content = b"Subject: outer\nContent-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: message/rfc822\n"
    content += b"Content-Transfer-Encoding: base64\n\n" + encoded + b"\n--x--\n"
    (decoded,) = read(content)
    assert "Inner" in parsed(decoded.content).text


def test_the_limit_counts_the_attachments_of_attached_messages() -> None:
    inner = message("Inner")
    for number in range(MAX_ATTACHMENTS):
        note(inner, f"{number}.txt")
    made = message()
    note(made, "first.txt")
    made.add_attachment(inner)
    note(made, "last.txt")
    content = made.as_bytes()
    first, nested = read(content)
    assert nested.options.most == MAX_ATTACHMENTS - 2
    assert len(read(nested.content, nested.options)) == MAX_ATTACHMENTS - 2
    assert parsed(content).warnings == (f"attachment last.txt: not read, because at most {MAX_ATTACHMENTS} are read",)
    assert len(parsed(nested.content, nested.options).warnings) == 2
    assert first.options.most == 0


def test_the_depth_is_limited_for_the_outermost_message(monkeypatch: pytest.MonkeyPatch) -> None:
    made = message("level 0")
    for depth in range(MAX_ATTACHED_DEPTH + 1):
        outer = message(f"level {depth + 1}")
        outer.add_attachment(made)
        made = outer
    content, options = made.as_bytes(), APART
    for _ in range(MAX_ATTACHED_DEPTH):
        (inner,) = read(content, options)
        content, options = inner.content, inner.options
    assert (options.depth, read(content, options)) == (MAX_ATTACHED_DEPTH, [])
    reason = f"not read: more than {MAX_ATTACHED_DEPTH} messages are attached to each other"
    assert parsed(content, options).warnings == (f"attachment level 0.eml: {reason}",)
    monkeypatch.setattr(module, "MAX_ATTACHED_BYTES", 100)
    large = message()
    note(large, "small.txt")
    note(large, "large.txt", "x" * 100)
    assert [each.place for each in read(large.as_bytes())] == ["1/small.txt"]
    assert parsed(large.as_bytes()).warnings == (f"attachment large.txt: not read: {module.TOO_LARGE}",)


@settings(max_examples=40)
@given(st.data())
def test_damaged_messages_have_attachments_or_are_refused(data: st.DataObject) -> None:
    inner = message("Inner")
    note(inner, "a.csv", "a,b\n1,2\n")
    made = message()
    made.add_attachment(inner)
    content = bytearray(made.as_bytes())
    for _ in range(data.draw(st.integers(1, 12))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UnreadableDocument):
        found = read(bytes(content))
        assert found == read(bytes(content))
        assert len({each.place for each in found}) == len(found)
        assert all("/" not in each.name for each in found)
