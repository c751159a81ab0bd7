"""Aliases across documents: the full name that an alias stands for in all documents of a tenant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentic_rag_backend.domain.graph import NameUse, normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.extraction.topics import without_diacritics
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS, Edits
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_USES = 50
"""Documents that give one spelling as an alias of one entity, of which the full names are read."""
_MAX_STEPS = 3
"""Full names that are aliases themselves are followed so many times."""

GivenAliases = Mapping[str, Sequence[tuple[str, str]]]
"""The normalised full names of which a document gives an alias, with the alias as written, by the normalised alias."""


class Aliases:
    """Reads the full names of aliases. Results do not depend on the order of documents."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def full_names(
        self,
        tenant: TenantId,
        names: Iterable[str],
        document_id: str,
        own_aliases: GivenAliases | None = None,
        edits: Edits = NO_EDITS,
    ) -> dict[str, str]:
        """Return the full name of each name that is an alias; others are absent. All names are normalised.

        An alias with several full names stands for none of them.

        Args:
            document_id: the document whose stored aliases are left out, because ``given`` replaces them.
            given: the aliases of that document.
            edits: edits that keep names apart.
        """
        by_name: dict[str, set[str]] = {}
        unread = list(dict.fromkeys(names))
        for _ in range(_MAX_STEPS):
            if not unread:
                break
            uses = await self._store.name_uses(tenant, unread, "alias", limit=MAX_USES)
            for name in unread:
                stored = (use for use in uses.get(name, ()) if use.document_id != document_id)
                full = _full_names(name, stored, (own_aliases or {}).get(name, ()))
                by_name[name] = {full_name for full_name in full if not edits.apart(name, full_name)}
            unread = sorted({full for full_name in by_name.values() for full in full_name} - by_name.keys())
        return {name: end for name in by_name if (end := _follow_names(name, by_name)) != name}


def holds_elsewhere(name: str, alias: str) -> bool:
    """Return whether an alias of ``name`` also stands for it in other documents, both as written.

    A single plain word does not: "Rome" of "Rome (film)". Several words do, and so do acronyms and other spellings.
    """
    return " " in normalise_name(alias) or alias.isupper() or normalise_name(without_diacritics(name)) == normalise_name(alias)


def given_aliases(names: Mapping[str, Mapping[str, str]]) -> GivenAliases:
    """Return the aliases of a document, from aliases as written by normalised form, by the normalised full name."""
    by_alias: dict[str, list[tuple[str, str]]] = {}
    for full, aliases in names.items():
        for alias, text in aliases.items():
            by_alias.setdefault(alias, []).append((full, text))
    return by_alias


def _full_names(name: str, stored: Iterable[NameUse], own_aliases: Sequence[tuple[str, str]]) -> set[str]:
    """Return the full names that documents give for a name."""
    full = {normalise_name(use.main) for use in stored if holds_elsewhere(use.main, use.name)}
    full |= {full_name for full_name, text in own_aliases if holds_elsewhere(full_name, text)}
    return full - {name, ""}


def _follow_names(name: str, full_names: Mapping[str, set[str]]) -> str:
    """Return the only name at the end of the chains of aliases that begin at a name; the name itself if there are several.

    A circle ends at its first name in alphabetical order.
    """
    visited, ahead = {name}, [name]
    ends: set[str] = set()
    while ahead:
        following = full_names.get(ahead.pop(), set())
        fresh = following - visited
        ends |= {full_name for full_name in fresh if not full_names.get(full_name)}
        ahead += fresh
        visited |= fresh
    if not ends and len(visited) > 1:
        return min(visited)
    return next(iter(ends)) if len(ends) == 1 else name
