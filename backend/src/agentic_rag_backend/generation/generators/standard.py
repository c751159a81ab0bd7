"""``standard``: the model's text with every sentence. Sentences that no passage states are marked."""

from __future__ import annotations

from agentic_rag_backend.generation.generators.checked_sentences import SentenceGenerator
from agentic_rag_backend.generation.writing import Writers


def standard_generator(writers: Writers) -> SentenceGenerator:
    """Return the generator. Its default policy is ``mark``."""
    return SentenceGenerator("standard", writers, "mark")
