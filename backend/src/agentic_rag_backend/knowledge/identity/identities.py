"""Assigns entities to the names of documents, as a function of all documents of a tenant that use these names.

A name is one entity, unless descriptions tell several bearers apart (`bearers`). An alias is the entity of its full name
(`aliases`). Neither depends on the order in which documents were written; only the ids of several bearers are kept as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import NameUse, normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.text.descriptions import Description
from agentic_rag_backend.knowledge.identity.aliases import Aliases
from agentic_rag_backend.knowledge.identity.bearers import Bearer, Division, choose_ids, divide
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS, Edits
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_BEARERS = 100
"""Documents that describe the bearer of a name and decide how many bearers it has: the first by id. It bounds the cost."""
MAX_OUTDATED = 2_000
"""Uses of one spelling that are compared when a name gets another meaning."""
_OWN_VERSIONS = 2
"""Versions of a document whose names the graph may hold: the visible one, and one that is not visible yet."""
SPELLED = frozenset({"date", "code"})
"""Types of names that mean the same wherever they are: they have no aliases and no bearers."""


@dataclass(frozen=True, slots=True)
class OwnName:
    """A name as one document uses it.

    ``aliases`` are its other names outside the document, as written by normalised form. ``near`` are the document's names that
    share a chunk with it, normalised.
    """

    key: str
    type: str
    aliases: Mapping[str, str]
    description: Description
    near: frozenset[str]


@dataclass(frozen=True, slots=True)
class Assigned:
    """Entity ids by name. ``unsettled`` are names that may now mean other entities in other documents."""

    ids: Mapping[str, str]
    unsettled: frozenset[str]


def entity_id(tenant: TenantId, key: str, type_: str = "") -> str:
    """Return the id of the entity that a normalised name means. Dates and code have entities of their own."""
    return stable_id("entity", tenant, key, type_) if type_ in SPELLED else stable_id("entity", tenant, key)


class Identities:
    """Assigns entities within one tenant. Reads the graph only."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store
        self._aliases = Aliases(store)

    async def assign(self, tenant: TenantId, document_id: str, names: Sequence[OwnName], edits: Edits = NO_EDITS) -> Assigned:
        """Return the entities of a document's names, before edits. Of ``edits``, only those that keep names apart count."""
        ids = {name.key: entity_id(tenant, name.key, name.type) for name in names if name.type in SPELLED}
        named = {name.key: name for name in names if name.type not in SPELLED}
        own = {key: name.aliases for key, name in named.items() if name.aliases}
        given = {alias for aliases in own.values() for alias in aliases}
        full = await self._aliases.full_names(tenant, {*named, *given}, document_id, own, edits)
        keys = {key: full.get(key, key) for key in named}
        described = await self._store.name_uses(tenant, sorted(set(keys.values())), "described", limit=MAX_BEARERS)
        unsettled = await self._moved(tenant, document_id, given, own, edits)
        for key, name in named.items():
            target = keys[key]
            bearer = Bearer(document_id, name.description, name.near)
            others = _latest(described.get(target, ()), document_id)[:MAX_BEARERS]
            division = await self._divide(tenant, target, [*others, *([bearer] if name.description else [])])
            ids[key] = _id(tenant, target, division, bearer)
            if name.description and (division or _divided(tenant, target, others)):
                unsettled.add(target)
        return Assigned(ids, frozenset(unsettled))

    async def outdated(self, tenant: TenantId, name: str, edits: Edits = NO_EDITS) -> list[str]:
        """Return the documents in which a normalised name means another entity than it should, ordered by id."""
        full = (await self._aliases.full_names(tenant, [name], "", edits=edits)).get(name, name)
        uses = (await self._store.name_uses(tenant, [name], "main", limit=MAX_OUTDATED)).get(name, [])
        newest = {use.document_id: use for use in uses if use.type not in SPELLED}
        described = await self._store.name_uses(tenant, [full], "described", limit=MAX_BEARERS)
        division = await self._divide(tenant, full, _latest(described.get(full, ()), "")[:MAX_BEARERS])
        if not division:
            return [id for id, use in newest.items() if use.assigned_id != entity_id(tenant, full)]
        near = await self._near(tenant, name, list(newest))
        outdated = []
        for id, use in newest.items():
            bearer = Bearer(id, Description.parse(use.description), near.get(id, frozenset()), use.assigned_id)
            if use.assigned_id != _id(tenant, full, division, bearer):
                outdated.append(id)
        return outdated

    async def before_removal(self, tenant: TenantId, document_id: str) -> set[str]:
        """Return the names that may mean other entities once the knowledge of a document is removed."""
        names: set[str] = set()
        async for batch in self._store.all_names(tenant, [document_id]):
            names |= {normalise_name(naming.name) for naming in batch} - {""}
        wanted = sorted(names)
        aliases = await self._store.name_uses(tenant, wanted, "alias", limit=MAX_OUTDATED)
        given = {name for name, uses in aliases.items() if any(use.document_id == document_id for use in uses)}
        described = await self._store.name_uses(tenant, wanted, "described", limit=MAX_BEARERS)
        own = (name for name, uses in described.items() if any(use.document_id == document_id for use in uses))
        shared = {name for name in own if any(use.assigned_id != entity_id(tenant, name) for use in described[name])}
        related = given | await self._names_with(tenant, given) if given else set()
        return {*shared, *await self._in_use(tenant, related, document_id)}

    async def _moved(
        self, tenant: TenantId, document_id: str, given: set[str], own: Mapping[str, Mapping[str, str]], edits: Edits
    ) -> set[str]:
        """Return the names by which other documents mean another entity, given the aliases of a document.

        These are its aliases, and the names that reach them by other aliases. Documents agree on the meaning of a name while it
        is settled, so it is enough to look at one of another document.
        """
        if not given:
            return set()
        names = given | await self._names_with(tenant, given)
        full = await self._aliases.full_names(tenant, names, document_id, own, edits)
        uses = await self._store.name_uses(tenant, sorted(names), "main", limit=_OWN_VERSIONS + 1)
        expected = {name: entity_id(tenant, full.get(name, name)) for name in names}
        return {
            name
            for name, found in uses.items()
            if any(use.document_id != document_id and use.assigned_id != expected[name] for use in found)
        }

    async def _names_with(self, tenant: TenantId, names: Iterable[str]) -> set[str]:
        """Return all names of the entities that other documents mean by some names."""
        found: set[str] = set()
        for kind in ("main", "alias"):
            uses = await self._store.name_uses(tenant, sorted(names), kind, limit=2)
            found |= {use.entity_id for each in uses.values() for use in each}
        entities = await self._store.entities(tenant, sorted(found | {entity_id(tenant, name) for name in names}))
        return {normalise_name(text) for each in entities.values() for text in (each.name, *each.aliases)} - {""}

    async def _in_use(self, tenant: TenantId, names: Iterable[str], document_id: str) -> list[str]:
        """Return the names that other documents use as the main name of an entity."""
        uses = await self._store.name_uses(tenant, sorted(names), "main", limit=_OWN_VERSIONS + 1)
        return [name for name, found in uses.items() if any(use.document_id != document_id for use in found)]

    async def _divide(self, tenant: TenantId, name: str, bearers: Sequence[Bearer]) -> Division:
        """Divide the documents that describe a bearer. Their other names are read only if that may decide."""
        if not divide(bearers):
            return Division()
        near = await self._near(tenant, name, [each.document_id for each in bearers if each.entity_id is not None])
        return divide(
            Bearer(each.document_id, each.description, near.get(each.document_id, each.near), each.entity_id) for each in bearers
        )

    async def _near(self, tenant: TenantId, name: str, document_ids: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the names that share a chunk with a name, by document. All are normalised."""
        called: dict[tuple[str, str], set[str]] = {}
        bearing: set[tuple[str, str]] = set()
        async for batch in self._store.all_names(tenant, document_ids):
            for naming in batch:
                key = normalise_name(naming.name)
                called.setdefault((naming.document_id, naming.entity_id), set()).add(key)
                if key == name:
                    bearing.add((naming.document_id, naming.entity_id))
        chunks: dict[tuple[str, str], set[str]] = {}
        async for found in self._store.all_mentions(tenant, document_ids):
            for mention in found:
                place = (mention.support.document_id, mention.support.chunk_id)
                chunks.setdefault(place, set()).add(mention.entity_id)
        near: dict[str, set[str]] = {}
        for (document_id, _), entities in chunks.items():
            if any((document_id, each) in bearing for each in entities):
                others = (called.get((document_id, each), set()) for each in entities if (document_id, each) not in bearing)
                near.setdefault(document_id, set()).update(set().union(*others) - {"", name})
        return {document_id: frozenset(keys) for document_id, keys in near.items()}


def _latest(uses: Sequence[NameUse], document_id: str) -> list[Bearer]:
    """Return what the newest version of each other document says, ordered by document."""
    newest = {use.document_id: use for use in uses if use.document_id != document_id and use.type not in SPELLED}
    return [
        Bearer(use.document_id, Description.parse(use.description), entity_id=use.assigned_id)
        for _, use in sorted(newest.items(), key=lambda item: item[0])
    ]


def _divided(tenant: TenantId, name: str, bearers: Iterable[Bearer]) -> bool:
    """Return whether documents have several bearers of a name now."""
    return any(each.entity_id != entity_id(tenant, name) for each in bearers)


def _id(tenant: TenantId, name: str, division: Division, bearer: Bearer) -> str:
    """Return the id of the entity that a document means by a name."""
    whole = entity_id(tenant, name)
    if not division or (number := division.place(bearer)) is None:
        return whole
    kept = choose_ids(division, whole)
    new = stable_id("entity", tenant, name, division.groups[number][0].document_id)
    return kept[number] or (new if new not in kept else stable_id("entity", tenant, name, new))
