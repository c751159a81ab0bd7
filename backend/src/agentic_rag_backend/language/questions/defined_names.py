"""Recognises questions that ask what something is, and the sentences that say it."""

from __future__ import annotations

import re
from functools import lru_cache

_MAX_WORDS = 5
_NAME = r"(?P<{}>[^?]{{2,80}}?)"
_QUESTION = re.compile(
    r"\W*(?:(?:and|so) )?(?:"
    rf"(?:what|who)(?:['’]s| is| are| was| were)(?: meant by)?(?: an?| the)? {_NAME.format('en')}"
    rf"|define (?:(?:an?|the) )?{_NAME.format('define')}"
    rf"|what do(?:es)? (?:(?:an?|the) )?{_NAME.format('mean')} (?:mean|stand for)"
    rf"|(?:was|wer) (?:ist|sind|war|waren)(?: ein\w{{0,2}}| der| die| das)? {_NAME.format('de')}"
    rf"|(?:qu['’]est[- ]ce qu(?:e |['’])|qui (?:est|était) )(?:(?:une?|les?|la) |l['’])?{_NAME.format('fr')}"
    rf"|(?:qué|quién) (?:es|son|era|fue)(?: una?| el| la| los| las)? {_NAME.format('es')}"
    r")\W*",
    re.IGNORECASE,
)
_RELATING = re.compile(
    r"\b(?:of|in|on|for|to|by|with|from|about|at|like|and|or|des|von|für|de|du|del|para|pour)\b", re.IGNORECASE
)
"""Only a name in capitals has these words: "Bank of England". The "capital of the county" describes an attribute."""
_BEFORE = (
    r"[^\w]{0,6}(?:[^\n.?!]{2,60}, )?[^\w]{0,3}(?:(?:the|an?|der|die|das|ein|eine|le|la|les|une?|el|los|las) |l['’])?[^\w]{0,3}"
)
_AFTER = (
    r"s?(?:\(\d\))?(?: (?:Corporation|Corp\.?|Company|Inc\.?|Ltd\.?|GmbH|AG|SE|plc))?"
    r"[^\w\s(,]{0,4}(?: \([^)]{0,160}\)| ?,[^.;]{1,120},){0,2}"
)
_SAYING = (
    r"\s(?:(?:is|are|was|were) (?:\w{3,}ly )?(?:an?|the|one|any|both|neither)\b|(?:mean|refer|stand|denote)s?\b"
    r"|(?:ist|sind|war|waren) (?:ein|der|die|das)\w{0,2}\b|(?:est|sont|était) (?:une?|les?|la|des)\b"
    r"|(?:es|son|era|fue) (?:una?|el|la|los|las)\b)"
)


def find_defined_name(question: str) -> str | None:
    """Return the name or term of a question that asks what or who it is: "What is a lock keeper?". None for other questions."""
    match = _QUESTION.fullmatch(question.strip())
    name: str = next(filter(None, match.groups()), "") if match else ""
    parts = _RELATING.split(name)
    if not name or len(name.split()) > _MAX_WORDS or (parts[1:] and not all(map(_is_capitalised, parts))):
        return None
    return name.strip(" \"'“”„«»‘’")


def _is_capitalised(part: str) -> bool:
    return part.strip().removeprefix("the ")[:1].isupper()


def defines(sentence: str, name: str) -> bool:
    """Return whether a sentence says what ``name`` is: "A lock keeper (or lockman) is a person who …"."""
    return pattern_of_definitions(name).match(sentence) is not None


@lru_cache(maxsize=256)
def pattern_of_definitions(name: str) -> re.Pattern[str]:
    """Return the pattern of the beginning of a sentence that says what ``name`` is."""
    words = r"(?:\(\d\))?[\W_]{1,3}".join(map(re.escape, re.findall(r"[^\W_]+", name)))
    return re.compile(f"{_BEFORE}{words}{_AFTER}{_SAYING}", re.IGNORECASE)
