"""Write the messages a language model reads: instructions, earlier turns, fenced evidence, fenced question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.generation.context import Context
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Message
from agentic_rag_backend.prompts import Prompt, fence

_HISTORY_CHARACTERS = 8_000
"""Characters of earlier turns in a prompt; the newest that fit are included."""


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
    """Return the prompt's turns with the part of the conversation that fits between them; untrusted ``values`` are fenced."""
    system, user = prompt.render(values)
    turns = [turn for turn in _recent(history) if turn.role != "system"]
    opening = [Message("system", system)] if system else []
    return (*opening, *turns, Message("user", user))


def _recent(history: Sequence[Message]) -> list[Message]:
    kept: list[Message] = []
    size = 0
    for turn in reversed(history):
        size += len(turn.content)
        if size > _HISTORY_CHARACTERS:
            break
        kept.insert(0, turn)
    return kept
