"""``attributed``: only sentences that a passage states. A sentence with a wrong marker is cited again if a passage states it."""

from __future__ import annotations

from agentic_rag_backend.generation.generators.checked_sentences import SentenceGenerator
from agentic_rag_backend.generation.writing import Writers


def attributed_generator(writers: Writers) -> SentenceGenerator:
    """Return the generator. Its default policy is ``checked``."""
    return SentenceGenerator("attributed", writers, "checked")
