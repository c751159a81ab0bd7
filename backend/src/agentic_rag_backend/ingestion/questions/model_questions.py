"""Synthetic questions by a language model (doc2query, Nogueira et al. 2019), with patterns for what it does not answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.domain.document import Chunk, Failure
from agentic_rag_backend.ingestion.questions.base import QuestionWriter, WrittenQuestions
from agentic_rag_backend.knowledge.model_calls import BUDGET_SPENT, INVALID, NO_MODEL, DocumentModel, ResultRecord
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import INTEGER, TEXT, list_of, object_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.prompts.inquiry import Inquiry

MODEL = "model"
"""The method and the source of these questions."""
PASSAGES = 8
"""Chunks in one call."""
LENGTHS = range(8, 301)
"""Characters of a question."""
_PROMPT = "chunk_questions"
_REPLY_TOKENS = 1_200
_QUESTIONS, _PASSAGE, _QUESTION = "questions", "passage", "question"
_SCHEMA = object_of({_QUESTIONS: list_of(object_of({_PASSAGE: INTEGER, _QUESTION: TEXT}))})
_REASONS = {
    NO_MODEL: "no language model is configured",
    BUDGET_SPENT: "the budget of INGESTION_MODEL_MAX_TOKENS is spent",
    INVALID: "the language model wrote no usable question",
}


@dataclass(frozen=True, slots=True)
class ModelQuestions:
    """Writes questions by a language model. ``fallback`` writes those of the chunks for which it fails."""

    model: DocumentModel
    fallback: QuestionWriter

    @property
    def version(self) -> str:
        """Name of the method, its prompt and its model."""
        return f"{MODEL}-{built_in(_PROMPT).id}-{self.model.name or self.model.model.name}"

    async def write(self, title: str, chunks: Sequence[Chunk], per_chunk: int, record: ResultRecord) -> list[WrittenQuestions]:
        """See `QuestionWriter`. A question that has no content word of its chunk is not used."""
        groups = [chunks[offset : offset + PASSAGES] for offset in range(0, len(chunks), PASSAGES)]
        advice = await self.model.ask([_build_inquiry(title, group, per_chunk) for group in groups], record)
        writings = [
            chunk_writing
            for group, reply in zip(groups, advice, strict=True)
            for chunk_writing in _select_questions(group, reply.value, per_chunk, reply.failure)
        ]
        failed = [number for number, chunk_writing in enumerate(writings) if chunk_writing.failure is not None]
        replacements = await self.fallback.write(title, [chunks[number] for number in failed], per_chunk, record)
        for number, replacement in zip(failed, replacements, strict=True):
            writings[number] = WrittenQuestions(replacement.texts, replacement.source, writings[number].failure)
        return writings


def _build_inquiry(title: str, chunks: Sequence[Chunk], per_chunk: int) -> Inquiry:
    # Each passage is one line, so that none can begin like another one.
    lines = "\n".join(f"{number}: {_headings_of(chunk)}{_to_line(chunk.text)}" for number, chunk in enumerate(chunks, start=1))
    return Inquiry(
        prompt=built_in(_PROMPT),
        values={"most": str(per_chunk), "about": fence("about", _to_line(title)), "passages": fence("passages", lines)},
        schema=_SCHEMA,
        max_tokens=_REPLY_TOKENS,
        accepts=lambda reply: not reply.get(_QUESTIONS) or any(_usable_questions(reply, chunks)),
    )


def _select_questions(
    chunks: Sequence[Chunk], reply: Mapping[str, Any] | None, per_chunk: int, failure: str
) -> Iterator[WrittenQuestions]:
    """Yield the questions of each chunk of a call. Without a reply, all have the failure."""
    by_chunk: defaultdict[int, list[str]] = defaultdict(list)
    for number, text in _usable_questions(reply or {}, chunks):
        if text not in by_chunk[number] and len(by_chunk[number]) < per_chunk:
            by_chunk[number].append(text)
    for number, chunk in enumerate(chunks):
        yield WrittenQuestions(tuple(by_chunk[number]), MODEL, _build_failure(chunk, failure) if reply is None else None)


def _usable_questions(reply: Mapping[str, Any], chunks: Sequence[Chunk]) -> Iterator[tuple[int, str]]:
    """Yield the places of chunks and the questions that may be used."""
    for item in reply.get(_QUESTIONS, ()):
        number, text = int(item[_PASSAGE]) - 1, " ".join(str(item[_QUESTION]).split())
        if not 0 <= number < len(chunks) or len(text) not in LENGTHS or not text.endswith("?"):
            continue
        chunk = chunks[number]
        if content_forms(text) & content_forms(f"{_headings_of(chunk)} {chunk.text}"):
            yield number, text


def _build_failure(chunk: Chunk, code: str) -> Failure:
    reason = _REASONS.get(code, "the language model did not answer")
    return Failure("questions", code, f"{reason}; patterns made the synthetic questions instead", chunk.id)


def _headings_of(chunk: Chunk) -> str:
    """Return the headings above a chunk, and the columns of its table."""
    return "".join(f"{_to_line(text)}: " for text in (*chunk.location.headings, chunk.location.header) if text)


def _to_line(text: str) -> str:
    return " ".join(text.split())
