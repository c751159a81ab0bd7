"""The names of central entities that suit a theme's title."""

from __future__ import annotations

from collections.abc import Sequence

from agentic_rag_backend.communities.summaries.community_evidence import CentralEntity
from agentic_rag_backend.domain.graph import Label, normalise_name
from agentic_rag_backend.language.vocabulary.word_classes import ADVERBS, VERBS
from agentic_rag_backend.language.words import comparable, content_forms

_LONGEST_NAME = 5
_MIN_SHARE = 0.5
"""Share of the most central entity's weight that another entity needs to join it in the name."""


def central_names(entities: Sequence[CentralEntity]) -> tuple[Label, ...]:
    """Return the one to three most central names.

    Entities of no known kind are used only if nothing better exists; titles of documents, file names and code only if those are
    missing too.
    """
    chosen: list[Label] = []
    pools = ([entity for entity in entities if suits(entity)] for suits in (names_well, _reads_well))
    entities = next(filter(None, pools), entities)
    for entity in entities:
        if len(chosen) == 3 or (len(chosen) > 1 and entity.share < _MIN_SHARE * entities[0].share):
            break
        name_words = set(normalise_name(entity.name).split())
        chosen_names = [set(normalise_name(label.text).split()) for label in chosen]
        if not any(name_words <= chosen_words or name_words >= chosen_words for chosen_words in chosen_names):
            chosen.append(name_label(entity))
    return tuple(chosen)


def name_label(entity: CentralEntity) -> Label:
    """Return an entity's name as it is shown, with its passages. A file's name is read as words."""
    name = " ".join(entity.name.split())
    if "-" in name and " " not in name and name == name.casefold() and entity.type != "code":
        # The check whether a passage contains the name reads a file's name as words too.
        name = name.replace("-", " ").strip()
        name = name[:1].upper() + name[1:]
    return Label(name, entity.passages)


def names_well(entity: CentralEntity) -> bool:
    """Return whether a name suits a theme: it reads well, and it is of a known kind."""
    return _reads_well(entity) and (entity.type != "other" or len(entity.name.split()) > 1)


def _reads_well(entity: CentralEntity) -> bool:
    """Return whether a name is short, capitalised and of letters: no date, no code, no file, no sentence's beginning."""
    words = entity.name.split()
    spelled = entity.name.replace(" ", "").replace("'", "").replace("’", "").replace("-", "").replace(".", "").replace("&", "")
    return (
        len(words) <= _LONGEST_NAME
        and spelled.isalpha()
        and entity.name[:1].isupper()
        and (entity.type not in ("date", "code") or len(words) > 1)
        and bool(content_forms(entity.name))
        and bool(content_forms(words[-1]))
        and not (len(words) == 1 and (comparable(words[0]) in VERBS | ADVERBS))
    )
