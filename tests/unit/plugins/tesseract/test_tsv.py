from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_rag_backend.documents.recognition.base import NotRecognised
from agentic_rag_backend.plugins.tesseract import tsv
from agentic_rag_backend.plugins.tesseract.tsv import words_of

HEADER = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext\n"


def table(*rows: str) -> bytes:
    return (HEADER + "".join("\t".join(row.split("|")) + "\n" for row in rows)).encode()


PAGE = table(
    "1|1|0|0|0|0|0|0|600|800|-1|",
    "4|1|1|1|1|0|10|20|200|12|-1|",
    "5|1|1|1|1|1|10|20|40|12|96.5|Harbour",
    "5|1|1|1|1|2|60|22|50|10|12.0|~~",
    "5|1|1|1|1|3|120|20|90|12|9|works",
    "4|1|1|1|2|0|10|40|200|12|-1|",
    "5|1|1|1|2|1|10|40|80|12|88|in",
    "5|1|1|1|2|2|100|40|80|12|95| ",
)


def test_words_have_boxes_confidences_and_lines() -> None:
    words = words_of(PAGE)
    assert [(word.text, word.ends_line) for word in words] == [("Harbour", False), ("works", True), ("in", True)]
    assert words[0].box == (10, 20, 50, 32)
    assert words[0].confidence == pytest.approx(0.965)
    assert words_of(table("1|1|0|0|0|0|0|0|600|800|-1|")) == []


def test_other_output_is_refused() -> None:
    for output in [
        b"",
        b"Harbour works",
        HEADER.encode() + b"5\tx",
        table("5|1|1|1|1|1|a|20|40|12|96|word"),
        table("5|1|1|1|1|1|10|20|40|12|nan|word"),
        table("5|1|1|1|1|1|-10|20|40|12|96|word"),
        table("5|1|1|1|1|1|10|20|40"),
        b"\xff\xfe\x00",
    ]:
        with pytest.raises(NotRecognised, match="Tesseract wrote"):
            words_of(output)


def test_the_number_of_words_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "MAX_WORDS", 2)
    with pytest.raises(NotRecognised, match="more than 2 words, which is the limit"):
        words_of(PAGE)


@given(st.binary(max_size=300))
def test_any_output_is_read_or_refused(output: bytes) -> None:
    for each in (output, HEADER.encode() + output):
        try:
            assert all(word.text for word in words_of(each))
        except NotRecognised:
            continue
