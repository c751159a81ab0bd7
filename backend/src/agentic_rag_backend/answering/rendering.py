"""Write the messages a language model reads: instructions, earlier turns, fenced evidence, fenced question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentic_rag_backend.answering.conversation import fenced_turns
from agentic_rag_backend.answering.evidence.context import Context, Passage, turn_tokens
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, UNKNOWN_WINDOW, Message
from agentic_rag_backend.prompts import Prompt, fence


def render_messages(
    prompt: Prompt, question: str, context: Context, history: Sequence[Message] = (), *, window: int = UNKNOWN_WINDOW
) -> tuple[Message, ...]:
    """Return the messages. Text of documents and of the question is in the last ``user`` turn only, fenced.

    ``window`` is the model's context window in tokens; it bounds the earlier turns.
    """
    themes = "\n".join(fence("theme", theme.summary, attributes={"name": theme.name}) for theme in context.themes)
    values = {
        "passages": fenced_passages(context.passages),
        "themes": themes,
        "question": fence("question", question),
        "refusal": NOT_ANSWERED,
    }
    return with_history(prompt, values, history, window=window)


def at_the_ends(passages: Sequence[Passage]) -> list[Passage]:
    """Return passages, given best first, with the best at both ends: first, third, …, fourth, second.

    Models use the middle of a long prompt least (Liu et al. 2023, "Lost in the Middle"). A neighbour stays next to its passage,
    in the order of the document.
    """
    groups: dict[int, list[Passage]] = {passage.marker: [passage] for passage in passages if passage.beside is None}
    for passage in passages:
        if passage.beside is not None:
            groups.setdefault(passage.beside, []).append(passage)
    ordered = [sorted(group, key=lambda passage: passage.start_char) for group in groups.values()]
    return [passage for group in (*ordered[::2], *reversed(ordered[1::2])) for passage in group]


def fenced_passages(passages: Sequence[Passage]) -> str:
    """Return numbered passages, each in its fence, the best at both ends."""
    return "\n".join(
        fence("passage", passage.with_header, attributes={"id": passage.marker, "title": passage.title})
        for passage in at_the_ends(passages)
    )


def with_history(
    prompt: Prompt, values: Mapping[str, str], history: Sequence[Message] = (), *, window: int = UNKNOWN_WINDOW
) -> tuple[Message, ...]:
    """Return the prompt's turns. The newest turns of the conversation that fit precede the user's part, fenced.

    The caller of the API writes the turns of both roles, so no turn is sent as an instruction or as the model's own words.
    """
    system, user = prompt.render(values)
    turns = fenced_turns(history, turn_tokens(window))
    opening = [Message("system", system)] if system else []
    return (*opening, Message("user", f"{turns}\n\n{user}" if turns else user))
