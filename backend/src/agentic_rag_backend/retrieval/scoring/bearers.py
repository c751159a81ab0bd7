"""Which bearers of a shared name a question means. A function of values only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from agentic_rag_backend.domain.text.descriptions import Description, describe
from agentic_rag_backend.domain.text.kinds import FIELDS
from agentic_rag_backend.domain.text.questions import related
from agentic_rag_backend.domain.text.words import Word, content_forms, words


def meant(
    question: str,
    name: Sequence[str],
    bearers: Mapping[int, Description],
    near: Set[int],
    read: Sequence[Word] | None = None,
) -> list[int]:
    """Return the bearers that a question may mean: all of them, if it does not say.

    The first of these that leaves some bearers decides: the question describes the bearer ("the nurse Rowan Teller"), one
    description alone has a word of the question ("… chair of the association, Rowan Teller"), one bearer alone is near another
    entity of the question.

    Args:
        name: the forms of the name's words.
        bearers: descriptions by number.
        near: the bearers that share a passage with another entity of the question.
        read: the words of ``question``, if they were read before.
    """
    read = words(question) if read is None else read
    asked = describe(name, question, read)
    fitting = [number for number, held in bearers.items() if not asked.excludes(held) and not asked.differs(held)]
    same = [number for number in fitting if _shares(asked, bearers[number])]
    if same:
        return same
    forms = [word.form for word in read if word.form not in name]
    described = [number for number in fitting if _has_word(bearers[number], forms)]
    for chosen in (described, [number for number in fitting if number in near]):
        if len(chosen) == 1:
            return chosen
    return fitting


def _shares(asked: Description, held: Description) -> bool:
    fields = {FIELDS[kind].name for kind in held.kinds}
    return any(kind in held.kinds or FIELDS[kind].name in fields for kind in asked.kinds) or bool(asked.born & held.born)


def _has_word(held: Description, forms: Sequence[str]) -> bool:
    return any(related(kind, forms) for kind in held.kinds | content_forms(held.label))
