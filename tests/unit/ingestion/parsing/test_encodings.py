"""Encodings: byte order marks, declarations, detection, damaged text and bytes that are no text."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_rag_backend.domain.media_types import CSV, EML, HTML, JSON, JSONL, MARKDOWN, TEXT, charset_of
from agentic_rag_backend.errors import UnreadableDocument
from agentic_rag_backend.ingestion.parsing.encodings import detection
from agentic_rag_backend.ingestion.parsing.encodings.decoding import Declaration, decode_text
from agentic_rag_backend.ingestion.parsing.encodings.names import ENCODINGS, find_encoding
from agentic_rag_backend.ingestion.parsing.registry import parser_of

TEXTS = {
    "windows-1252": "The harbour authority’s café costs 5 € a day: “naïve”, say Müller and Søren.",
    "windows-1250": "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "windows-1251": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "windows-1253": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.",
    "windows-1254": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "windows-1255": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "windows-1256": "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق.",
    "koi8-r": "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "shift_jis": "すべての人間は、生まれながらにして自由であり、平等である。",
    "euc-jp": "すべての人間は、生まれながらにして自由であり、平等である。",
    "gb18030": "港务局于2019年5月开始疏浚。人人生而自由,在尊严和权利上一律平等。",
    "big5": "人人生而自由,在尊嚴和權利上一律平等。他們賦有理性和良心。",
    "euc-kr": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "utf-16le": "The harbour authority began dredging in May 2019.",
    "utf-16be": "The harbour authority began dredging in May 2019.",
}


@pytest.mark.parametrize("name", TEXTS)
def test_an_encoding_that_nothing_declares_is_detected_and_reported(name: str) -> None:
    text = TEXTS[name]
    found = decode_text(text.encode(ENCODINGS[name].codec))
    assert (found.text, found.encoding) == (text, name)
    assert found.warnings == (f"the text is read as {name}, which was detected",)


@pytest.mark.parametrize("text", ["100 °C", "price £5", "naïve", "Café au lait", "Größe: 5 m", "é"])
def test_a_few_letters_are_read_as_western(text: str) -> None:
    assert decode_text(text.encode("cp1252")).text == text


def test_every_text_format_reports_the_encoding() -> None:
    parsed = {
        media_type: parser_of(media_type).parse(content.encode("cp1252"))
        for media_type, content in {
            TEXT: "Møllers kaffebar åbner på søndag.",
            MARKDOWN: "# Åbning\n\nMøllers kaffebar åbner på søndag.",
            HTML: "<title>Åbning</title><p>Møllers kaffebar åbner på søndag.",
            CSV: "sted,dag\nMøllers kaffebar på Ærø,søndag\n",
            JSON: '{"sted": "Møllers kaffebar", "dag": "søndag på Ærø"}',
            JSONL: '{"sted": "Møllers kaffebar"}\n{"dag": "søndag på Ærø"}',
            "text/x-python": "def åbn():\n    return 'Møllers på Ærø'\n",
        }.items()
    }
    for media_type, document in parsed.items():
        assert "Møllers" in document.text, media_type
        assert document.metadata["encoding"] == "windows-1252"
        assert document.warnings == ("the text is read as windows-1252, which was detected",)
    assert parsed[MARKDOWN].headings[0].title == parsed[HTML].title == "Åbning"
    assert parsed["text/x-python"].headings[0].title == "åbn"


def test_offsets_point_into_the_decoded_text() -> None:
    parsed = parser_of(MARKDOWN).parse("Größe und Höhe\n\n# Über uns\n".encode("cp1252"))
    assert parsed.text[parsed.headings[0].start_char :].startswith("# Über uns")


def test_the_beginning_of_a_file_may_end_within_a_character() -> None:
    for name in ("shift_jis", "utf-16le"):
        content = TEXTS[name].encode(ENCODINGS[name].codec)
        assert decode_text(content[:-1], partial=True).text == TEXTS[name][:-1]


# Declarations


def test_a_declaration_that_fits_is_believed_and_reports_nothing() -> None:
    content = "Łódź".encode("iso8859-2")
    assert parser_of(TEXT, "ISO-8859-2").parse(content).text == "Łódź"
    assert decode_text(content, [Declaration("latin2", "the upload")]).warnings == ()
    assert parser_of(TEXT, "UTF-16").parse("plain".encode("utf-16-le")).text == "plain"


def test_the_declaration_of_the_upload_comes_before_that_of_the_file_and_a_byte_order_mark_before_both() -> None:
    page = '<meta charset="koi8-r"><p>Причал</p>'
    assert parser_of(HTML, "windows-1251").parse(page.encode("cp1251")).text == "Причал"
    assert parser_of(HTML).parse(page.encode("koi8-r")).text == "Причал"
    marked = parser_of(HTML, "windows-1251").parse(page.encode("utf-8-sig"))
    assert (marked.text, marked.warnings, dict(marked.metadata)) == ("Причал", (), {})


@pytest.mark.parametrize(
    ("declared", "encoding", "word"),
    [
        ('<meta charset="iso-8859-1">', "cp1252", "Café – 9 €"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">', "cp1251", "Причал"),
        ('<?xml version="1.0" encoding="Shift_JIS"?>', "shift_jis", "港"),
        ('<meta charset="utf-16">', "utf-8", "Café"),
    ],
)
def test_a_page_is_decoded_as_it_declares(declared: str, encoding: str, word: str) -> None:
    parsed = parser_of(HTML).parse(f"{declared}<html><body><p>{word}</p></body></html>".encode(encoding))
    assert (parsed.text, parsed.warnings) == (word, ())


def test_utf_8_is_read_although_another_charset_is_declared() -> None:
    for charset, text in (("ISO-8859-1", "© 2002"), ("koi8-r", "Причал"), ("gbk", "人人生而自由")):
        for partial in (False, True):
            found = decode_text(text.encode(), [Declaration(charset, "the file")], partial=partial)
            assert (found.text, found.encoding) == (text, "utf-8")
            assert found.warnings == (f"the text is utf-8, not {charset}, as the file declares",)
    # These bytes are valid UTF-8 by chance.
    assert decode_text("联通".encode("gbk"), [Declaration("gb2312", "the file")]).text == "联通"


def test_source_code_is_decoded_as_its_first_lines_declare() -> None:
    code = "#!/usr/bin/env python\n# -*- coding: koi8-r -*-\nCITY = 'Москва'\n"
    assert parser_of("text/x-python").parse(code.encode("koi8-r")).text == code
    late = f"\n\n{code}"
    assert parser_of("text/x-python").parse(late.encode("cp1251")).metadata["encoding"] == "windows-1251"


@pytest.mark.parametrize(
    ("charset", "warning"),
    [
        ("shift_jis", "the text is not shift_jis, as the upload declares: byte 0x"),
        ("utf-8", "the text is not utf-8, as the upload declares: byte 0xcd at offset 0"),
        ("no-such-charset", "the upload declares the charset 'no-such-charset', which is not known"),
        ("punycode", "the upload declares the charset 'punycode', which is not known"),
        ("zlib", "the upload declares the charset 'zlib', which is not known"),
        ("undefined", "the upload declares the charset 'undefined', which is not known"),
    ],
)
def test_a_wrong_declaration_is_reported_and_the_encoding_detected(charset: str, warning: str) -> None:
    parsed = parser_of(TEXT, charset).parse("Ночной причал\xa0открыт".encode("cp1251"))
    assert parsed.text.startswith("Ночной причал")
    wrong, detected = parsed.warnings
    assert wrong.startswith(warning)
    assert detected == "the text is read as windows-1251, which was detected"


def test_parts_of_a_message_are_decoded_as_they_declare_or_by_detection() -> None:
    message = (
        b"Subject: Minutes\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
        b"--b\nContent-Type: text/plain; charset=koi8-r\nContent-Transfer-Encoding: 8bit\n\n" + "Причал".encode("koi8-r") + b"\n"
        b'--b\nContent-Type: text/plain\nContent-Disposition: attachment; filename="notes.txt"\n\n'
        + "Привет, мир. Ночной причал.".encode("cp1251")
        + b"\n--b--\n"
    )
    parsed = parser_of(EML).parse(message)
    assert "Причал\n" in parsed.text
    assert "Привет, мир. Ночной причал." in parsed.text
    assert parsed.warnings == ("attachment notes.txt: the text is read as windows-1251, which was detected",)


@pytest.mark.parametrize(
    ("declared", "charset"),
    [
        ("text/plain; charset=koi8-r", "koi8-r"),
        ('text/html; format=flowed; Charset="UTF-8"', "UTF-8"),
        ("text/plain;charset=", None),
        ("text/plain", None),
        (None, None),
        (f"text/plain; charset={'x' * 500}", "x" * 80),
    ],
)
def test_the_charset_of_a_media_type(declared: str | None, charset: str | None) -> None:
    assert charset_of(declared) == charset


def test_names_of_encodings_are_known_by_their_aliases() -> None:
    names = {"latin1": "windows-1252", "CP936": "gb18030", "x-sjis": None, "ks_c_5601-1987": "euc-kr", "utf8": "utf-8", "": None}
    assert {name: found.name if (found := find_encoding(name)) else None for name in names} == names


# Damaged text, mixed encodings and bytes that are no text


def test_damage_in_text_of_utf8_is_replaced_and_reported() -> None:
    content = "Grüße aus Köln. ".encode() * 40 + b"Stra\xdfe." + b" Mehr Text."
    found = decode_text(content)
    assert found.encoding == "utf-8"
    assert "Grüße aus Köln. Stra\ufffde. Mehr Text." in found.text
    assert found.warnings == (
        f"one character is not valid utf-8 and became U+FFFD; the first one is 0xdf at offset {content.index(0xDF)}",
    )


def test_mixed_encodings_are_read_as_the_more_frequent_one() -> None:
    western, unicode = "Straße zum Hafen, ", "Größe: 5 m, "
    assert decode_text((western * 3).encode("cp1252") + (unicode * 9).encode()).encoding == "utf-8"
    assert decode_text((western * 9).encode("cp1252") + (unicode * 3).encode()).text.startswith("Straße zum Hafen")


def test_control_characters_among_text_are_kept_up_to_a_limit() -> None:
    text = TEXTS["windows-1252"] * 4 + "\x01\x07 und \x1f"
    assert decode_text(text.encode("cp1252")).text == text
    with pytest.raises(UnreadableDocument, match="no other encoding fits"):
        decode_text("Größe\x07".encode("cp1252") * 9 + b"\x01" * 40)


def test_random_bytes_are_refused() -> None:
    generator = random.Random(5)
    for size in (64, 1_000, 100_000):
        with pytest.raises(UnreadableDocument, match="not text"):
            decode_text(generator.randbytes(size))


def test_only_a_sample_is_examined_wherever_the_first_letter_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    by_statistics = detection._by_statistics

    def counted(sample: bytes) -> object:
        seen.append(len(sample))
        return by_statistics(sample)

    monkeypatch.setattr(detection, "_by_statistics", counted)
    content = b"plain ASCII. " * 200_000 + TEXTS["windows-1251"].encode("cp1251") * 50_000
    found = decode_text(content)
    assert found.encoding == "windows-1251"
    assert found.text.endswith(TEXTS["windows-1251"])
    assert seen == [detection.SAMPLE_BYTES]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=300), st.sampled_from([None, "utf-8", "latin1", "gb18030", "iso-2022-jp", "utf-16", "x"]), st.booleans()
)
def test_any_bytes_are_read_or_refused(content: bytes, charset: str | None, partial: bool) -> None:
    try:
        found = decode_text(content, [Declaration(charset, "the upload")] if charset else [], partial=partial)
    except UnreadableDocument:
        return
    assert found.text.strip()
    assert "\x00" not in found.text
