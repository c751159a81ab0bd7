"""Generators by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agentic_rag_backend.answering.generators.base import Generator
from agentic_rag_backend.answering.generators.checked_sentences import attributed_generator, standard_generator
from agentic_rag_backend.answering.generators.verified import VerifiedGenerator
from agentic_rag_backend.answering.writing import Writers
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls


@dataclass(frozen=True, slots=True)
class GeneratorParts:
    """The parts that generators are made of; ``max_questions`` is of `VerifiedGenerator`."""

    writers: Writers
    calls: StructuredCalls
    max_questions: int = 5


def _verified_generator(parts: GeneratorParts) -> Generator:
    return VerifiedGenerator(parts.writers, parts.calls, parts.max_questions)


GENERATORS: Mapping[str, Callable[[GeneratorParts], Generator]] = {
    "attributed": lambda parts: attributed_generator(parts.writers),
    "standard": lambda parts: standard_generator(parts.writers),
    VerifiedGenerator.name: _verified_generator,
}
"""The generators of requests, each built from its parts."""


def generator_warnings(name: str, *, generative: bool) -> tuple[str, ...]:
    """Return a warning if a generator needs a language model, and none is configured (not ``generative``)."""
    if generative or name != VerifiedGenerator.name:
        return ()
    return (f"generator {name!r} needs a language model (LLM=openai); without one, 'attributed' answers",)
