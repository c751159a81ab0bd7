"""Tasks that chat programs send as questions: titles, tags and follow-up questions of a conversation.

Open WebUI begins them with `### Task:` and asks for a JSON object. A search for them would find nothing, and a model call would
cost money, so each gets a plain value.
"""

from __future__ import annotations

import json
import re
from typing import Any

TASK_HEADING = "### Task:"
_FIRST_QUESTION = re.compile(r"<chat_history>\s*(?:USER|user):\s*([^\n]{1,500})")
_TITLE_WORDS = 6
_EMPTY: tuple[tuple[str, Any], ...] = (("follow_ups", []), ("queries", []), ("tags", ["General"]), ("text", ""))
"""Keys of the object that a task asks for, and the value of each."""


def is_task(text: str) -> bool:
    """Return whether a message is such a task."""
    return text.startswith(TASK_HEADING)


def do_task(text: str) -> str:
    """Return the reply to a task: the title of its conversation, or an empty list of what it asks for."""
    if '"title"' in text:
        question = _FIRST_QUESTION.search(text)
        words = question[1].split() if question else ["Conversation"]
        return json.dumps({"title": " ".join(words[:_TITLE_WORDS])}, ensure_ascii=False)
    return next((json.dumps({key: value}) for key, value in _EMPTY if f'"{key}"' in text), "")
