"""Assigns entities to the names of documents, as a function of all documents of a tenant that use these names.

A name is one entity, unless descriptions tell several bearers apart (`bearers`). An alias is the entity of its full name
(`aliases`). Neither depends on the order in which documents were written; only the ids of several bearers are kept as they are.

Names are read and compared in batches, so that a document with many names neither fills the memory nor holds the event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeVar

from agentic_rag_backend.domain.graph import UseKind, normalise_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.decisions import (
    MAX_BEARERS,
    SPELLED,
    NameCase,
    choose_entities,
    entity_id,
    find_outdated_documents,
    list_contested_cases,
)
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS, Edits
from agentic_rag_backend.knowledge.identity.names import DocumentNames
from agentic_rag_backend.knowledge.identity.near_names import NearNames
from agentic_rag_backend.knowledge.identity.shared_aliases import Aliases, GivenAliases, given_aliases
from agentic_rag_backend.knowledge.offload import Offload, run_in_place
from agentic_rag_backend.language.descriptions import Description
from agentic_rag_backend.stores.graph.base import KnowledgeStore

MAX_OUTDATED = 2_000
"""Uses of one spelling that are compared when a name gets another meaning."""
_OWN_VERSIONS = 2
"""Versions of a document whose names the graph may hold: the visible one, and one that is not visible yet."""
_READERS = 4
"""Tenants whose documents are kept in memory while their names are settled."""
_NAMES_AT_ONCE = 256
"""Names that are read and compared together."""
_NAMING: tuple[UseKind, ...] = ("main", "alias")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Assigned:
    """Entity ids by name. ``unsettled`` are names that may now mean other entities in other documents."""

    ids: Mapping[str, str]
    unsettled: frozenset[str]


class Identities:
    """Assigns entities within one tenant. Reads the graph only."""

    def __init__(self, store: KnowledgeStore, offload: Offload = run_in_place) -> None:
        self._store = store
        self._offload = offload
        self._aliases = Aliases(store)
        self._readers: OrderedDict[TenantId, tuple[str, NearNames]] = OrderedDict()

    async def assign(self, tenant: TenantId, document_id: str, names: DocumentNames, edits: Edits = NO_EDITS) -> Assigned:
        """Return the entities of a document's names, before edits. Of ``edits``, only those that keep names apart count.

        Raises:
            ResourceLimit: comparing a name with other documents takes too much time or memory.
        """
        own_aliases = given_aliases({name.key: name.aliases for name in names.names if name.type not in SPELLED})
        assignment = _Assignment(tenant, document_id, names, own_aliases, edits)
        ids: dict[str, str] = {}
        unsettled = await self._find_moving(assignment)
        for numbers in _split_batches(range(len(names.names))):
            entities, moved = await self._assign_batch(assignment, numbers)
            ids |= entities
            unsettled |= moved
        return Assigned(ids, frozenset(unsettled))

    async def _assign_batch(self, assignment: _Assignment, numbers: Sequence[int]) -> tuple[dict[str, str], set[str]]:
        """Return the entities of some names by key, and the unsettled ones among the names that these stand for."""
        tenant, names = assignment.tenant, [assignment.names.names[number] for number in numbers]
        ids = {name.key: entity_id(tenant, name.key, name.type) for name in names}
        numbers_of = {name.key: number for number, name in zip(numbers, names, strict=True) if name.type not in SPELLED}
        unread = {*numbers_of, *(alias for name in names if name.key in numbers_of for alias in name.aliases)}
        full = await self._aliases.full_names(tenant, unread, assignment.document_id, assignment.given, assignment.edits)
        ids |= {key: entity_id(tenant, full[key]) for key in numbers_of if key in full}
        targets = sorted({full.get(key, key) for key in numbers_of})
        described = await self._store.name_uses(tenant, targets, "described", limit=MAX_BEARERS)
        cases = {
            key: NameCase(target, assignment.names.names[number].description, uses)
            for key, number in numbers_of.items()
            if (uses := described.get(target := full.get(key, key)))
        }
        if not cases:
            return ids, set()
        chosen = await self._choose_entities(assignment, cases, numbers_of)
        ids |= {key: id for key, (id, _) in chosen.items()}
        return ids, {cases[key].name for key, (_, moves) in chosen.items() if moves}

    async def _choose_entities(
        self, assignment: _Assignment, cases: Mapping[str, NameCase], numbers: Mapping[str, int]
    ) -> dict[str, tuple[str, bool]]:
        """Return the entity of each name, and whether it may now mean other entities in other documents."""
        keys = list(cases)
        items = sum(case.items for case in cases.values())
        contested = await self._offload(list_contested_cases, assignment.document_id, list(cases.values()), items=items)
        complete = []
        for key, is_contested in zip(keys, contested, strict=True):
            case = cases[key]
            if is_contested:
                other_ids = (use.document_id for use in case.uses if use.document_id != assignment.document_id)
                others_near = await (await self._near_names(assignment.tenant)).near(case.name, dict.fromkeys(other_ids))
                case = replace(case, near=assignment.near(numbers[key]), others_near=others_near)
            complete.append(case)
        items = sum(case.items for case in complete)
        chosen = await self._offload(choose_entities, assignment.tenant, assignment.document_id, complete, items=items)
        return dict(zip(keys, chosen, strict=True))

    async def find_outdated_documents(self, tenant: TenantId, name: str, edits: Edits = NO_EDITS) -> list[str]:
        """Return the documents in which a normalised name means another entity than it should, ordered by id."""
        full = (await self._aliases.full_names(tenant, [name], "", edits=edits)).get(name, name)
        uses = (await self._store.name_uses(tenant, [name], "main", limit=MAX_OUTDATED)).get(name, [])
        newest = {use.document_id: use for use in uses if use.type not in SPELLED}
        described = (await self._store.name_uses(tenant, [full], "described", limit=MAX_BEARERS)).get(full, [])
        case = NameCase(full, Description(), described)
        (contested,) = await self._offload(list_contested_cases, "", [case], items=case.items)
        if not contested:
            return [id for id, use in newest.items() if use.assigned_id != entity_id(tenant, full)]
        reader = await self._near_names(tenant)
        case = replace(case, others_near=await reader.near(full, {use.document_id: None for use in described}))
        near_uses = await reader.near(name, newest)
        items = case.items + sum(map(len, near_uses.values()))
        return await self._offload(find_outdated_documents, tenant, case, list(newest.values()), near_uses, items=items)

    async def _near_names(self, tenant: TenantId) -> NearNames:
        """Return a reader of documents, which the names of a tenant share until its graph changes."""
        revision = await self._store.revision(tenant)
        reader = self._readers.get(tenant)
        if reader is None or reader[0] != revision:
            reader = self._readers[tenant] = (revision, NearNames(self._store, tenant))
        self._readers.move_to_end(tenant)
        if len(self._readers) > _READERS:
            self._readers.popitem(last=False)
        return reader[1]

    async def before_removal(self, tenant: TenantId, document_id: str) -> set[str]:
        """Return the names that may mean other entities once the knowledge of a document is removed."""
        names: set[str] = set()
        async for batch in self._store.all_names(tenant, [document_id]):
            names |= {normalise_name(naming.name) for naming in batch} - {""}
        alias_names: set[str] = set()
        shared: set[str] = set()
        for batch_names in _split_batches(sorted(names)):
            aliases = await self._store.name_uses(tenant, batch_names, "alias", limit=MAX_OUTDATED)
            alias_names |= {name for name, uses in aliases.items() if any(use.document_id == document_id for use in uses)}
            described = await self._store.name_uses(tenant, batch_names, "described", limit=MAX_BEARERS)
            described_here = (name for name, uses in described.items() if any(use.document_id == document_id for use in uses))
            shared |= {
                name for name in described_here if any(use.assigned_id != entity_id(tenant, name) for use in described[name])
            }
        related = alias_names | await self._names_with(tenant, alias_names) if alias_names else set()
        return {*shared, *await self._in_use(tenant, related, document_id)}

    async def _find_moving(self, assignment: _Assignment) -> set[str]:
        """Return the names by which other documents mean another entity, given the aliases of a document.

        These are its aliases, and the names that reach them by other aliases. Documents agree on the meaning of a name while it
        is settled, so it is enough to look at one of another document.
        """
        if not assignment.given:
            return set()
        tenant, document_id = assignment.tenant, assignment.document_id
        names = assignment.given.keys() | await self._names_with(tenant, assignment.given)
        moved: set[str] = set()
        for batch in _split_batches(sorted(names)):
            full = await self._aliases.full_names(tenant, batch, document_id, assignment.given, assignment.edits)
            uses = await self._store.name_uses(tenant, batch, "main", limit=_OWN_VERSIONS + 1)
            expected = {name: entity_id(tenant, full.get(name, name)) for name in uses}
            moved |= {
                name
                for name, used in uses.items()
                if any(use.document_id != document_id and use.assigned_id != expected[name] for use in used)
            }
        return moved

    async def _names_with(self, tenant: TenantId, names: Iterable[str]) -> set[str]:
        """Return all names of the entities that other documents mean by some names."""
        related: set[str] = set()
        for batch in _split_batches(sorted(names)):
            ids = {entity_id(tenant, name) for name in batch}
            for kind in _NAMING:
                uses = await self._store.name_uses(tenant, batch, kind, limit=2)
                ids |= {use.entity_id for of_name in uses.values() for use in of_name}
            entities = await self._store.entities(tenant, sorted(ids))
            related |= {normalise_name(text) for entity in entities.values() for text in (entity.name, *entity.aliases)}
        return related - {""}

    async def _in_use(self, tenant: TenantId, names: Iterable[str], document_id: str) -> list[str]:
        """Return the names that other documents use as the main name of an entity."""
        used: list[str] = []
        for batch in _split_batches(sorted(names)):
            uses = await self._store.name_uses(tenant, batch, "main", limit=_OWN_VERSIONS + 1)
            used += [name for name, of_name in uses.items() if any(use.document_id != document_id for use in of_name)]
        return used


class _Assignment:
    """A document whose names get entities. What only contested names need is computed when the first of them comes."""

    def __init__(self, tenant: TenantId, document_id: str, names: DocumentNames, own_aliases: GivenAliases, edits: Edits) -> None:
        self.tenant = tenant
        self.document_id = document_id
        self.names = names
        self.given = own_aliases
        self.edits = edits
        self._chunks: Mapping[int, list[int]] | None = None

    def near(self, number: int) -> frozenset[str]:
        """Return the document's other names that share a chunk with a name."""
        if self._chunks is None:
            self._chunks = self.names.chunks_by_name()
        return self.names.near(number, self._chunks)


def _split_batches(names: Iterable[T]) -> Iterator[list[T]]:
    remaining = iter(names)
    while batch := list(islice(remaining, _NAMES_AT_ONCE)):
        yield batch
