"""Rules that turn sentences about the graph's entities into questions with known answers, without a model.

A *statement* is a clause whose subject is an entity: "Mara Venn leads the Harbour Authority." Its predicate asks for the entity
("Who leads the Harbour Authority?") or describes it ("the person who leads the Harbour Authority"). Every question has the
sentences that answer it as its evidence, as they are written.

The clauses are those of the grammar of synthetic questions. Functions of values only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.evaluation import CaseSource, EvaluationCase, GoldItem
from agentic_rag_backend.domain.graph import EntityRef, contains_name, normalise_name, type_key
from agentic_rag_backend.language.sentences import split_sentences
from agentic_rag_backend.language.values import Moment, placed_moments
from agentic_rag_backend.plugins import load_plugin

SINGLE, TWO_HOPS, COMPARISON, THEME, TIME, UNANSWERABLE = KINDS = (
    "single",
    "two_hops",
    "comparison",
    "theme",
    "time",
    "unanswerable",
)
"""Kinds of generated questions."""
_NOUNS: Mapping[str, str] = {name: name for name in ("person", "organisation", "place", "work", "event")}
"""Types that a question names: "Which organisation …"."""
_LEAST_WORDS, _MOST_WORDS = 3, 18
"""Words of a predicate. Longer ones are seldom asked for, and shorter ones seldom identify."""
_UNCLEAR = frozenset(("i", "we", "you", "my", "our", "your", "me", "us", "he", "she", "they", "it", "this", "that", "these"))
"""Words that make a predicate unclear without the text around it."""
_DATED_QUESTION = "When "
_PLURAL = frozenset(("are", "were", "have"))
"""Verbs of a plural subject. Questions ask for one entity."""
_END = re.compile(r"; |, (?:which|who|where|when|while|whose|and|but|so|because|although) ")
"""The end of the first clause of a predicate."""


@dataclass(frozen=True, slots=True)
class EntityStatement:
    """A sentence that states something about ``subject``, and names ``objects``.

    ``sentence`` is verbatim in the chunk ``chunk_id`` of ``document_id``. ``predicate`` begins with ``verb``. ``date`` is the
    only date, None without one; ``time_question`` then asks for it, if the grammar can.
    """

    subject: EntityRef
    objects: tuple[EntityRef, ...]
    verb: str
    predicate: str
    sentence: str
    chunk_id: str
    document_id: str
    date: Moment | None = None
    time_question: str = ""


def read_statements(chunk: VisibleChunk, entities: Sequence[EntityRef]) -> Iterator[EntityStatement]:
    """Yield the statements of a chunk about entities that it mentions. The subject of a sentence may be a pronoun."""
    by_name = {normalise_name(entity.name): entity for entity in entities}
    sentences = split_sentences(chunk.chunk.text)
    for clause in load_plugin("clauses")(sentences, chunk.document_title):
        sentence = sentences[clause.number]
        subject = _find_subject(normalise_name(clause.subject.text), by_name)
        predicate = _END.split(f"{clause.verb} {clause.rest}", maxsplit=1)[0]
        words = predicate.casefold().split()
        if subject is None or clause.verb in _PLURAL or not sentence.complete or contains_name(predicate, subject.name):
            continue
        if not _LEAST_WORDS <= len(words) <= _MOST_WORDS or not _UNCLEAR.isdisjoint(words):
            continue
        moments = [moment for moment, _ in placed_moments(f"{clause.opening} {predicate}")]
        date = moments[0] if len(moments) == 1 and moments[0].years else None
        drafts = [draft.text for draft in load_plugin("clause_questions")(clause)] if date is not None else []
        yield EntityStatement(
            subject,
            tuple(entity for entity in entities if entity.id != subject.id and _noun_of(entity) and entity.name in predicate),
            clause.verb,
            predicate,
            sentence.text,
            chunk.chunk.id,
            chunk.chunk.document_id,
            date,
            next((draft for draft in drafts if draft.startswith(_DATED_QUESTION)), ""),
        )


def _find_subject(name: str, by_name: Mapping[str, EntityRef]) -> EntityRef | None:
    """Return the entity of a normalised name. A title before the name does not matter: "dr rowan teller"."""
    return by_name.get(name) or by_name.get(name.partition(" ")[2])


def ask_single(statement: EntityStatement) -> EvaluationCase:
    """Return the question for the subject of a statement."""
    question = f"{_question_word(statement.subject)} {statement.predicate}?"
    return _make_case(SINGLE, question, statement.subject.name, [statement])


def ask_two_hops(statement: EntityStatement, addition: EntityStatement) -> EvaluationCase | None:
    """Return the question for the subject of ``statement``, in which ``addition`` describes an object instead of naming it.

    None: the statements have another connection, or the question would name its answer.
    """
    bridge = next((entity for entity in statement.objects if entity.id == addition.subject.id), None)
    if bridge is None or addition.chunk_id == statement.chunk_id or contains_name(addition.predicate, statement.subject.name):
        return None
    noun = _noun_of(bridge)
    if not noun:
        return None
    described = f"the {noun} {'who' if noun == 'person' else 'that'} {addition.predicate}"
    bridge_name = next(name for name in (f"the {bridge.name}", f"The {bridge.name}", bridge.name) if name in statement.predicate)
    question = f"{_question_word(statement.subject)} {statement.predicate.replace(bridge_name, described, 1)}?"
    # A description in the middle of a list cannot be understood.
    if contains_name(question, bridge.name) or f"{bridge_name}," in statement.predicate:
        return None
    return _make_case(TWO_HOPS, question, statement.subject.name, [statement, addition])


def ask_comparison(statement: EntityStatement, addition: EntityStatement) -> EvaluationCase | None:
    """Return the question which of two dated statements is of an earlier time. None: a date is missing, or they do not differ."""
    time, later_time = _time_of(statement), _time_of(addition)
    if time is None or later_time is None or time == later_time or statement.subject.id == addition.subject.id:
        return None
    if statement.chunk_id == addition.chunk_id:
        return None
    earlier = statement if time < later_time else addition
    parts = [f'"{part.time_question.rstrip("?")}"' for part in (statement, addition)]
    question = f"Which has the earlier answer, {parts[0]} or {parts[1]}?"
    return _make_case(COMPARISON, question, earlier.subject.name, [statement, addition])


def _time_of(statement: EntityStatement) -> tuple[int, int, int] | None:
    date = statement.date
    if not statement.time_question or date is None or date.years is None or date.years[0] != date.years[1]:
        return None
    return date.years[0], date.month, date.day


def ask_time(statement: EntityStatement) -> EvaluationCase | None:
    """Return the question for the date of a statement. None: it has none that the grammar asks for."""
    if not statement.time_question or statement.date is None:
        return None
    return _make_case(TIME, statement.time_question, statement.date.text, [statement])


def ask_other_object(statement: EntityStatement, replaced: EntityRef, entity: EntityRef) -> EvaluationCase:
    """Return the question of a statement about another object. The caller knows that nothing states this of ``entity``."""
    predicate = statement.predicate.replace(replaced.name, entity.name, 1)
    return _make_unanswerable(f"{_question_word(statement.subject)} {predicate}?", statement.document_id)


def ask_without_documents(case: EvaluationCase, document_ids: Sequence[str]) -> EvaluationCase:
    """Return a question whose search leaves out the documents that may answer it, so that a refusal is right."""
    filters = {"not": {"document_id": {"in": list(document_ids)}}}
    return _make_unanswerable(case.question, *case.documents, filters=filters)


def _make_unanswerable(question: str, *document_ids: str, filters: Mapping[str, object] | None = None) -> EvaluationCase:
    return EvaluationCase(
        question=question,
        answerable=False,
        kind=UNANSWERABLE,
        filters=filters,
        source=CaseSource.GRAPH,
        documents=document_ids,
    )


def ask_theme(name: str, quotes: Sequence[tuple[str, str]]) -> EvaluationCase:
    """Return the question for what a theme says. ``quotes`` are sentences of its summary with the ids of their documents."""
    return EvaluationCase(
        question=f"What are the main points about {name}?",
        kind=THEME,
        gold=tuple(GoldItem(quote=quote, document=document) for quote, document in quotes),
        source=CaseSource.GRAPH,
        documents=tuple(document for _, document in quotes),
    )


def _make_case(kind: str, question: str, answer: str, statements: Sequence[EntityStatement]) -> EvaluationCase:
    return EvaluationCase(
        question=question,
        expected_answer=answer,
        kind=kind,
        gold=tuple(GoldItem(quote=statement.sentence, document=statement.document_id) for statement in statements),
        source=CaseSource.GRAPH,
        documents=tuple(statement.document_id for statement in statements),
    )


def _question_word(entity: EntityRef) -> str:
    noun = _noun_of(entity)
    return "Who" if noun == "person" else f"Which {noun}" if noun else "What"


def _noun_of(entity: EntityRef) -> str:
    return _NOUNS.get(type_key(entity.type), "")
