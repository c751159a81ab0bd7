"""The file name of a downloaded original: for any document name, one file in one folder."""

from __future__ import annotations

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.api.responses.attachments import MAX_NAME_CHARACTERS, UNKNOWN_TYPE, content_disposition, content_type

NAMES = [
    ("minutes.md", 'attachment; filename="minutes.md"'),
    ("../../etc/passwd", 'attachment; filename="_.._etc_passwd"'),
    ('a"b\\c.txt', 'attachment; filename="a_b_c.txt"'),
    ("one\r\nSet-Cookie: x=1.txt", 'attachment; filename="one Set-Cookie_ x=1.txt"'),
    ("", 'attachment; filename="document"'),
    ("...", 'attachment; filename="document"'),
    ("Straße 9.txt", "attachment; filename=\"Strae 9.txt\"; filename*=UTF-8''Stra%C3%9Fe%209.txt"),
    ("港.md", "attachment; filename=\"document.md\"; filename*=UTF-8''%E6%B8%AF.md"),
    ("\u202egpj.md", 'attachment; filename="_gpj.md"'),
]


@pytest.mark.parametrize(("name", "value"), NAMES, ids=[ascii(name) for name, _ in NAMES])
def test_names(name: str, value: str) -> None:
    assert content_disposition(name) == value


@pytest.mark.parametrize("char", [chr(code) for code in range(0x250)] + ["\u2028", "\ufeff", "\ud800", "\U0001f41f"], ids=ascii)
def test_no_character_leaves_the_header_or_the_folder(char: str) -> None:
    value = content_disposition(f"a{char}b.txt")
    assert value.isascii()
    assert value.isprintable()
    ascii_name = value.split('"')[1]
    assert value.count('"') == 2
    name = unquote(value.partition("UTF-8''")[2]) or ascii_name
    assert not set("/\\") & {*ascii_name, *name}
    assert name.startswith("a")
    assert name.endswith("b.txt")


def test_a_long_name_keeps_its_suffix() -> None:
    name = content_disposition("x" * 500 + ".markdown").split('"')[1]
    assert len(name) == MAX_NAME_CHARACTERS
    assert name.endswith("x.markdown")


@pytest.mark.parametrize("kept", ["text/plain", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"])
def test_a_media_type_is_sent_as_it_is_recorded(kept: str) -> None:
    assert content_type(kept) == kept


@given(
    st.text(max_size=200) | st.sampled_from(["text/plain\r\nSet-Cookie: a=b", "text/plain\n", "text/html; charset=utf-8", "é/é"])
)
def test_whatever_is_recorded_is_one_header(recorded: str) -> None:
    sent = content_type(recorded)

    assert sent == UNKNOWN_TYPE or (sent == recorded and sent.isascii() and sent.isprintable() and ";" not in sent)
