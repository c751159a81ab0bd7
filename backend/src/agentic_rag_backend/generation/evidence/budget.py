"""The tokens that the evidence of an answer may take, by the context window of the model that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentic_rag_backend.generation.conversation.turns import fenced_turns
from agentic_rag_backend.language.tokens import estimate_tokens
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.prompts import Prompt

MAX_TURN_TOKENS = 2_000
"""Estimated tokens of earlier turns in a prompt; the newest that fit are included."""
TURN_SHARE = 8
"""Earlier turns take at most one part in this many of the window."""
LEAST_EVIDENCE = 256
"""Tokens of evidence that are sent in any case. A window without room for them answers with an error of the endpoint."""
SPARE = 0.95
"""Share of the window that is used, because the tokens are estimated."""


def turn_tokens(window: int) -> int:
    """Return the token budget of the earlier turns of a conversation."""
    return min(MAX_TURN_TOKENS, window // TURN_SHARE)


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """The tokens of one call of a model.

    Args:
        window: tokens that the model reads and writes in one call.
        reply_tokens: reserved for the reply.
        wanted_tokens: for the evidence, if the window has room.
    """

    window: int
    reply_tokens: int
    wanted_tokens: int

    def evidence_tokens(self, prompt: Prompt, *texts: str, history: Sequence[Message] = ()) -> int:
        """Return the token budget of the evidence: ``wanted_tokens``, or the rest of the window if it is less.

        ``texts`` are the other values of the prompt, such as the question.
        """
        fixed = sum(map(estimate_tokens, (prompt.system, prompt.user, *texts)))
        fixed += estimate_tokens(fenced_turns(history, turn_tokens(self.window)))
        return max(LEAST_EVIDENCE, min(self.wanted_tokens, int(self.window * SPARE) - self.reply_tokens - fixed))
