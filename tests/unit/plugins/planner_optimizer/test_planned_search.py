"""Recall of documents and passages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from sample_passages import hit_of

from agentic_rag_backend.domain.document import ParentPassage
from agentic_rag_backend.domain.query import Hit
from agentic_rag_backend.plugins.planner_optimizer.examples import Example
from agentic_rag_backend.plugins.planner_optimizer.planned_search import Question, recall_of


def hit(document_id: str, text: str, around: str | None = None) -> Hit:
    made = hit_of(text, document_id=document_id)
    own = (made.visible.chunk,)
    return replace(made, parent=around and ParentPassage(id="p", start_char=0, end_char=len(around), text=around, chunks=own))


def question(documents: dict[str, set[str]], *passages: str) -> Question:
    example = Example(row=1, question="?", documents=tuple(documents), passages=passages)
    return Question(example, cast("Any", None), {name: frozenset(ids) for name, ids in documents.items()})


def test_documents_and_passages_count_alike() -> None:
    asked = question({"one.md": {"1"}, "Two": {"2", "3"}}, "The  basin was\ndredged.", "Nobody wrote this.")
    found = recall_of(asked, [hit("3", "In May the Basin was dredged."), hit("9", "On 1 May, the basin was dredged.")])
    assert (found.value, found.missed) == (0.5, ("one.md", "Nobody wrote this."))
    assert recall_of(asked, []).value == 0


def test_a_passage_is_found_in_a_parent_and_by_its_parts() -> None:
    long = "The harbour authority began dredging the basin in May, and it went on until the winter of 2019."
    assert recall_of(question({}, long), [hit("1", "short", f"Before. {long} After.")]).value == 1
    assert recall_of(question({}, long), [hit("1", "harbour authority began dredging the basin in May")]).value == 1
    assert recall_of(question({}, long), [hit("1", "the basin")]).value == 0
