"""Write the messages a language model reads: instructions, earlier turns, fenced evidence, fenced question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.generation.context import Context
from agentic_rag_backend.generation.conversation.turns import fenced_turns
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Message
from agentic_rag_backend.prompts import Prompt, fence

MAX_TURN_TOKENS = 2_000
"""Estimated tokens of earlier turns in a prompt; the newest that fit are included."""


def render(prompt: Prompt, question: str, context: Context, history: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Return the messages. Text of documents and of the question is in the last ``user`` turn only, fenced."""
    passages = "\n".join(
        fence("passage", passage.text, attributes={"id": passage.marker, "title": passage.title}) for passage in context.passages
    )
    themes = "\n".join(fence("theme", theme.summary, attributes={"name": theme.name}) for theme in context.themes)
    values = {
        "passages": passages,
        "themes": themes,
        "question": fence("question", question),
        "refusal": NOT_ANSWERED,
    }
    return with_history(prompt, values, history)


def with_history(prompt: Prompt, values: Mapping[str, str], history: Sequence[Message] = ()) -> tuple[Message, ...]:
    """Return the prompt's turns. The newest turns of the conversation that fit precede the user's part, fenced.

    The caller of the API writes the turns of both roles, so no turn is sent as an instruction or as the model's own words.
    """
    system, user = prompt.render(values)
    turns = fenced_turns(history, MAX_TURN_TOKENS)
    opening = [Message("system", system)] if system else []
    return (*opening, Message("user", f"{turns}\n\n{user}" if turns else user))
