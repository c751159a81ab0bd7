"""Earlier turns of a conversation in a prompt: fenced as data, the newest that fit a budget."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.prompts import fence


def recent_turns(history: Sequence[Message], budget_tokens: int) -> list[Message]:
    """Return the newest turns whose estimated tokens fit ``budget_tokens``, oldest first. System turns are left out."""
    turns: list[Message] = []
    remaining = budget_tokens
    for turn in reversed([turn for turn in history if turn.role != "system"]):
        remaining -= estimate_tokens(turn.content)
        if remaining < 0:
            break
        turns.insert(0, turn)
    return turns


def fenced_turns(history: Sequence[Message], budget_tokens: int) -> str:
    """Return the newest turns as fenced text. The caller of the API writes both roles, so both are data."""
    turns = recent_turns(history, budget_tokens)
    return "\n".join(fence("turn", turn.content, attributes={"role": turn.role}) for turn in turns)
