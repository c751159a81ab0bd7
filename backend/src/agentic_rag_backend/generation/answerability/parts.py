"""Splits a question with several parts, each of which is judged by itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentic_rag_backend.domain.text.descriptions import words_of_names

MAX_PARTS = 3
"""Parts of a question. A question with more is judged as a whole."""
MIN_WORDS = 3
"""Words of a part. Without "who", the first has more: "On what day and in which town was she born?" is one question."""
_QUESTION_WORD = r"(?:who|whom|whose|what|when|where|which|why|how)"
_BETWEEN = re.compile(
    rf"\?\s++(?=\w)|(?<!\s)\s++and\s++(?=(?:(?:in|on|at|by|for|from|to|with|of)\s++)?{_QUESTION_WORD}\s++\w++\s++\w)",
    re.IGNORECASE,
)
_ASKS = re.compile(
    rf"\b{_QUESTION_WORD}\b|^\W*(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\b", re.IGNORECASE
)
_WHO = re.compile(r"who\s+\w", re.IGNORECASE)
_SAYS = re.compile(rf"(?:(?:in|on|at|by|for|from|to|with|of)\s+)?{_QUESTION_WORD}\b", re.IGNORECASE)
_INVERTED = re.compile(
    r"^(?:(?:in|on|at|by|for|from|to|with|of)\s+)?(?:who|whom|whose|what|which|when|where|why|how)(?:\s+\w+){0,2}?\s+"
    r"(?:did|do|does)\b|^(?:when|where|why|how)(?:\s+\w+)?\s+"
    r"(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might)\b|"
    r"^(?:who|whom|whose|what|which)(?:\s+\w+){0,2}?\s+(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might)\s+"
    r"(?:i|we|you|he|she|it|they|the|this|that|these|those|his|her|its|their)\b",
    re.IGNORECASE,
)


def split_question(question: str) -> tuple[str, ...]:
    """Return the parts of a question: "What is kept open, and who must pay?" has two. One part: the question as it is."""
    parts = [part.strip(" ,") for part in _BETWEEN.split(question) if part.strip(" ,")]
    whole = (question,)
    if not 1 < len(parts) <= MAX_PARTS:
        return whole
    if (len(parts[0].split()) <= MIN_WORDS and not _WHO.match(parts[0])) or any(
        len(part.split()) < MIN_WORDS or not _ASKS.search(part) for part in parts
    ):
        return whole
    return tuple(part.rstrip("? ") for part in parts)


def about_the_first(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the parts as they are judged: one without a name is about the names of the first.

    "who must pay for lost gear" becomes "who must pay for lost gear (Narrows Accord)".
    """
    first, *others = parts
    names = dict.fromkeys(first[run[0].start : run[-1].end] for run in words_of_names(first))
    about = f" ({', '.join(names)})" if names else ""
    return first, *(part if any(words_of_names(part)) else part + about for part in others)


def not_said(part: str) -> str:
    """Return the sentence that names an unanswered part."""
    asked = part.strip().rstrip("?").strip()
    if _INVERTED.match(asked) or not _SAYS.match(asked):
        return f"The documents do not answer “{asked}?”"
    return f"The documents do not say {asked[:1].lower()}{asked[1:]}."
