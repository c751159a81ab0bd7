from __future__ import annotations

from agentic_rag_backend.knowledge.extraction.names.names import DocumentSpellings, find_spans
from agentic_rag_backend.knowledge.extraction.tokens import tokenise


def names(text: str, kind: str | None = None) -> list[str]:
    tokens = tokenise(text)
    vocabulary = DocumentSpellings()
    vocabulary.add(tokens)
    return [tokens.span(span.first, span.last) for span in find_spans(tokens, vocabulary) if kind is None or span.kind == kind]


def test_names_are_found_whole() -> None:
    for text, expected in [
        ("She met Maria Keller in Oslo.", ["Maria Keller", "Oslo"]),
        ("He read at the University of Copenhagen.", ["University of Copenhagen"]),
        ("She led the Carrow Fishers' Association.", ["Carrow Fishers' Association"]),
        ('A biologist at the University of Port Ellery: "At last."', ["University of Port Ellery"]),
        ("It is run by the Ministry of Health and Welfare.", ["Ministry of Health and Welfare"]),
        ("The Brandt and Sons Company closed.", ["Brandt and Sons Company"]),
        ("They hired Keller and Brandt.", ["Keller", "Brandt"]),
        ("The area was studied by Ludwig van der Berg.", ["Ludwig van der Berg"]),
        ("The plan came from J. R. Halvorsen and A.B. Lund.", ["J. R. Halvorsen", "A.B. Lund"]),
        ("We asked Dr. Keller and Prime Minister Olsen.", ["Keller", "Olsen"]),
        ("The Danish Prime Minister Jens Olsen spoke.", ["Danish", "Jens Olsen"]),
        ("The North Danish Supreme Leader Jens Olsen spoke.", ["North Danish", "Jens Olsen"]),
        ("It ended after World War II and before Apollo 11.", ["World War II", "Apollo 11"]),
        ("It hosted the 2018 FIFA World Cup.", ["2018 FIFA World Cup"]),
        ("We flew with Jean-Luc O’Hara to Saint-Étienne.", ["Jean-Luc O’Hara", "Saint-Étienne"]),
        ("The pupils of Children's Hospital left.", ["Children's Hospital"]),
        ("Brandt's house burnt.", ["Brandt"]),
        ("The mayor of Bergen opened the District of Lund.", ["Bergen", "District of Lund"]),
        ('He is Wilhelm "Willi" Keller.', ['Wilhelm "Willi" Keller']),
        ("It was bought by Northwind, Inc. in spring.", ["Northwind, Inc"]),
        ("NATO and the U.S. agreed.", ["NATO", "U.S."]),
        ("The peer is Norwegian and plays Mozart.", ["Norwegian", "Mozart"]),
        ("The Council on Polar Affairs met.", ["Council on Polar Affairs"]),
        ("The branch opens on Thursdays and Mondays.", []),
        ("It was closed on Sunday for Keller.", ["Keller"]),
        ("**Seabed.** A survey was made by Keller.", ["Keller"]),
    ]:
        assert names(text, "name") == expected


def test_what_only_looks_like_a_name_is_left_out() -> None:
    for text in [
        "However, the result was good.",
        "Additionally we measured it.",
        "Founded by two brothers, it grew.",
        "Critics were kind. The critics came.",
        "Budget: four million",
        "Call the office on Monday.",
        "The Board met the President.",
        "I think so. It works.",
        "THIS IS A VERY LOUD WARNING INDEED.",
        "see https://Example.com/Foo/Bar for more",
        "",
        "   \n\t ",
    ]:
        assert names(text) == []


def test_a_word_that_opens_a_sentence_is_a_name_if_the_document_writes_it_so_elsewhere() -> None:
    assert "Harbour" not in names("Harbour fees rose. The harbour is old.")
    assert "Brandt" in names("Brandt resigned. They thanked Brandt.")
    assert names('Ask at Vestby. Taken down by Brandt. He said, "Ice."') == ["Vestby", "Brandt"]


def test_dates() -> None:
    for text, expected in [
        ("on 13 March 1963 and", ["13 March 1963"]),
        ("on March 13, 1963 and", ["March 13, 1963"]),
        ("in March 1963 and", ["March 1963"]),
        ("on 2019-03-04 in 1999", ["2019-03-04", "1999"]),
        ("in the 1940s and the 19th century", ["1940s", "19th century"]),
        ("in spring, may be", []),
        ("Jan Keller may march", []),
        ("in 44 BC they", ["44 BC"]),
    ]:
        assert names(text, "date") == expected


def test_quoted_titles() -> None:
    for text, expected in [
        ('She wrote "The Long Winter" there.', ["The Long Winter"]),
        ("She wrote “The Long Winter” there.", ["The Long Winter"]),
        ("She wrote ``The Long Winter'' there.", ["The Long Winter"]),
        ("She wrote *The Long Winter* there.", ["The Long Winter"]),
        ('"We are not ready," he said', []),
        ('"Do it now!" she cried', []),
        ('"we will never ever go back to that place again", she said', []),
    ]:
        assert names(text, "quoted") == expected


def test_code_identifiers() -> None:
    for text, expected in [
        ("call `load_index()` first", ["load_index()"]),
        ("see parse_document() and core.utils.text here", ["parse_document()", "core.utils.text"]),
        ("set maxRetryCount to 3", ["maxRetryCount"]),
        ("the `Resolver` decides", ["Resolver"]),
        ("visit example.com, e.g. today", []),
    ]:
        assert names(text, "code") == expected


def test_sentences_end_where_they_should() -> None:
    for text, sentences in [
        ("Dr. Keller left. She won.", 2),
        ("It fought in World War I. The end came.", 2),
        ("J. R. Halvorsen wrote it.", 1),
        ("It is in the U.S. The rest is not.", 2),
        ("First line\n\nSecond part", 2),
        ("wrapped\nline goes on", 1),
        ("one\n- two\n- three", 3),
        ("# Heading\nText follows", 2),
    ]:
        assert len(tokenise(text).sentences) == sentences
