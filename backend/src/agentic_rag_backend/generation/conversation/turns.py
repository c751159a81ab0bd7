"""Earlier turns of a conversation in a prompt: fenced as data, the newest that fit a budget."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.prompts import fence


def recent_turns(history: Sequence[Message], budget_tokens: int) -> list[Message]:
    """Return the newest turns whose estimated tokens fit ``budget_tokens``, oldest first. System turns are left out."""
    kept: list[Message] = []
    left = budget_tokens
    for turn in reversed([turn for turn in history if turn.role != "system"]):
        left -= estimate_tokens(turn.content)
        if left < 0:
            break
        kept.insert(0, turn)
    return kept


def fenced_turns(history: Sequence[Message], budget_tokens: int) -> str:
    """Return the newest turns as fenced text. The caller of the API writes both roles, so both are data."""
    kept = recent_turns(history, budget_tokens)
    return "\n".join(fence("turn", turn.content, attributes={"role": turn.role}) for turn in kept)
