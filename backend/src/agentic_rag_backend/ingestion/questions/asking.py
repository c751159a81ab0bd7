"""Makes and embeds the synthetic questions of chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from agentic_rag_backend.domain.document import Chunk, Failure, QuestionOptions, SyntheticQuestion, question_id
from agentic_rag_backend.ingestion.prepare.computation import Computation
from agentic_rag_backend.ingestion.questions.base import PATTERNS, QuestionWriter, WrittenQuestions, embedded_by, recipe_of
from agentic_rag_backend.ingestion.questions.model_questions import MODEL, ModelQuestions
from agentic_rag_backend.knowledge.model_calls import DocumentModel, ResultRecord
from agentic_rag_backend.plugins import load_plugin
from agentic_rag_backend.stores.catalogue.base import ChunkQuestions, PreparedQuestion

_NO_MODEL = Failure("questions", "no_model", "no language model is configured; patterns made the synthetic questions instead")


OpenWriter = Callable[[], QuestionWriter]


def writers_with(model: DocumentModel | None) -> Mapping[str, OpenWriter]:
    """Return the functions that open the writers, by method. The one by a model is there if the model writes text."""

    def open_patterns() -> QuestionWriter:
        writer: QuestionWriter = load_plugin("question_grammar")()
        return writer

    if model is None or not model.model.generative:
        return {PATTERNS: open_patterns}
    return {PATTERNS: open_patterns, MODEL: lambda: ModelQuestions(model, open_patterns())}


@dataclass(frozen=True, slots=True)
class Asking:
    """How the questions of one document are made. ``failure`` says why it is not the method that was asked for."""

    writer: QuestionWriter
    most: int
    failure: Failure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Questioner:
    """Makes the questions of groups of chunks, and embeds them.

    Args:
        writers: by method.
    """

    computation: Computation
    writers: Mapping[str, OpenWriter]

    def asking(self, options: QuestionOptions) -> Asking | None:
        """Return how questions are made by these options. None if they ask for none."""
        if not options.on:
            return None
        open_writer = self.writers.get(options.method)
        if open_writer is None:
            return Asking(self.writers[PATTERNS](), options.per_chunk, _NO_MODEL)
        return Asking(open_writer(), options.per_chunk)

    def recipe(self, asking: Asking, title: str, chunk: Chunk) -> str:
        """Return the recipe of a chunk's questions."""
        return recipe_of(self.computation.embedder.fingerprint, asking.writer.version, asking.most, title, chunk)

    async def ask(self, asking: Asking, title: str, chunks: Sequence[Chunk], record: ResultRecord) -> dict[str, ChunkQuestions]:
        """Return the embedded questions of each chunk, by its id.

        Args:
            record: of the document's version.

        Raises:
            ModelUnavailable: the embedder does not answer.
        """
        writings = await asking.writer.write(title, chunks, asking.most, record)
        questions = {
            chunk.id: ChunkQuestions(self.recipe(asking, title, chunk), _build_items(chunk, chunk_writing), chunk_writing.failure)
            for chunk, chunk_writing in zip(chunks, writings, strict=True)
        }
        return dict(zip(questions, await embed_questions(self.computation, list(questions.values())), strict=True))


async def embed_questions(computation: Computation, questions: Sequence[ChunkQuestions]) -> list[ChunkQuestions]:
    """Return the questions with vectors of the computation's embedder, in one call. A question that it refuses has none.

    Raises:
        ModelUnavailable: the embedder does not answer.
    """
    texts = [item.question.text for question in questions for item in question.items]
    vectors = iter(await computation.embed(texts) if texts else ())

    def items(chunk_questions: ChunkQuestions) -> tuple[PreparedQuestion, ...]:
        pairs = zip(chunk_questions.items, vectors, strict=False)  # the first list ends before another vector is taken
        return tuple(replace(item, vector=vector if isinstance(vector, np.ndarray) else None) for item, vector in pairs)

    fingerprint = computation.embedder.fingerprint
    return [replace(question, recipe=embedded_by(question.recipe, fingerprint), items=items(question)) for question in questions]


def is_current(computation: Computation, questions: ChunkQuestions) -> bool:
    """Return whether the computation's embedder made the vectors."""
    return questions.recipe == embedded_by(questions.recipe, computation.embedder.fingerprint)


def _build_items(chunk: Chunk, written_questions: WrittenQuestions) -> tuple[PreparedQuestion, ...]:
    return tuple(
        PreparedQuestion(
            SyntheticQuestion(id=question_id(chunk.id, text), chunk_id=chunk.id, text=text, source=written_questions.source), None
        )
        for text in dict.fromkeys(written_questions.texts)
    )
