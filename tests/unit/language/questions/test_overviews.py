"""Questions that ask for an overview, in four languages, and questions that have a subject."""

from __future__ import annotations

import pytest

from agentic_rag_backend.language.questions.overviews import (
    asks_about_everything,
    describes_itself,
    find_mentioned,
    find_named_document,
    strip_vocabulary,
)

OF_EVERYTHING = """
What are the main themes of these documents?
Give me an overview of all documents.
What topics do these documents cover?
Summarise the collection.
What is this document about?
What are these documents about, taken together?
Give me a short overview of everything that is stored here.
Was sind die Hauptthemen dieser Dokumente?
Gib mir einen Überblick über alle Dokumente.
Welche Themen behandeln diese Dokumente?
Fasse die Sammlung zusammen.
Worum geht es in diesem Dokument?
Quels sont les thèmes principaux de ces documents ?
Donne-moi un aperçu de tous les documents.
De quoi parlent ces documents ?
Résume la collection.
De quoi s'agit-il dans ce document ?
¿Cuáles son los temas principales de estos documentos?
Dame un resumen de todos los documentos.
¿Qué temas tratan estos documentos?
Resume la colección.
¿De qué trata este documento?
"""
OF_A_SUBJECT = """
What are the main themes of the harbour reports?
How many documents are there?
Who wrote these documents?
What do these documents say about eels?
What is the report?
Where is the library?
Worum geht es im Vertrag?
De quoi parle le maire ?
"""


def test_questions_about_everything_have_no_subject() -> None:
    assert [question for question in OF_EVERYTHING.strip().splitlines() if not asks_about_everything(question)] == []
    assert [question for question in OF_A_SUBJECT.strip().splitlines() if asks_about_everything(question)] == []
    assert not asks_about_everything("documents about " * 100)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("What is the document Postfix Bottleneck Analysis about?", "Postfix Bottleneck Analysis"),
        ("Summarise the document 'Tide Tables'.", "Tide Tables"),
        ("Worum geht es im Dokument „Tide Tables“?", "Tide Tables"),
        ("De quoi parle le document « Tide Tables » ?", "Tide Tables"),
        ("¿De qué trata el documento 'Tide Tables'?", "Tide Tables"),
        ("Give me a summary of The Tide Tables Report", "Tide Tables"),
        ("What is Tide Tables about?", "Tide Tables"),
        ("What does report.pdf contain?", "report.pdf"),
        ("Worum geht es in der Datei tide-tables_2014.docx?", "tide-tables_2014.docx"),
        ("Who wrote Tide Tables?", None),
        ("What is this document about?", None),
    ],
)
def test_the_title_of_a_named_document_is_found(question: str, title: str | None) -> None:
    assert find_named_document(question) == title
    assert title is None or "." in title or strip_vocabulary(f"The {title} Report") == title


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Which documents mention the eel passage?", "the eel passage"),
        ("In which files is Ann Marsh mentioned?", "Ann Marsh"),
        ("List all documents about 'low water'.", "low water"),
        ("What documents contain EPUB?", "EPUB"),
        ("Welche Dokumente erwähnen Anna Marsch?", "Anna Marsch"),
        ("Quels documents parlent de la marée ?", "la marée"),
        ("¿Qué documentos mencionan la marea?", "la marea"),
        ("Which documents are there?", None),
        ("Which document did Ann Marsh sign?", None),
        ("What does the document mention?", None),
    ],
)
def test_the_subject_of_a_question_for_documents(question: str, subject: str | None) -> None:
    assert find_mentioned(question) == subject


def test_a_sentence_has_the_document_as_its_subject() -> None:
    assert describes_itself("This document is an introduction to queues.")
    assert describes_itself("Ce document explique les files.")
    assert not describes_itself("This queue is full.")
