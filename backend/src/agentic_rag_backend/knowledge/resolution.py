"""Entity resolution: maps the names of a document to entity ids.

The decision is made per document, first from its own aliases, then from the tenant's graph. It reads the graph
once and decides purely. The ids of new entities derive from tenant, name and type, so the same document gives the
same ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from agentic_rag_backend.domain.document import stable_id
from agentic_rag_backend.domain.graph import (
    DocumentKnowledge,
    Entity,
    Extraction,
    Mention,
    Relationship,
    RelationshipSupport,
    Support,
    normalise_name,
    relationship_id,
)
from agentic_rag_backend.domain.periods import end_of
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.stores.graph.base import KnowledgeStore

UNTYPED = "other"
_UNDECIDED = frozenset({UNTYPED, "concept", "acronym", ""})
_LOCATED = frozenset({"organisation", "place"})


def coarse_type(type_: str) -> str:
    """Return the type for distinguishing entities; undecided types are all ``other``."""
    return UNTYPED if type_ in _UNDECIDED else type_


def compatible(one: str, other: str) -> bool:
    """Return whether the types of two mentions of one name allow one entity.

    Undecided types fit every type except dates and code. Often only context distinguishes organisations from places
    ("at Cambridge", "Cambridge said"), so these two fit each other.
    """
    a, b = coarse_type(one), coarse_type(other)
    if a == b or {a, b} == _LOCATED:
        return True
    return UNTYPED in (a, b) and not {a, b} & {"date", "code"}


@dataclass(slots=True)
class Group:
    """The names of one entity within one document; ``aliases`` also hold outside of it."""

    key: str
    texts: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The spelling used most, the first of them."""
        return max(self.texts, key=lambda text: self.texts[text]) if self.texts else self.key

    @property
    def type(self) -> str:
        """The type given by most mentions. Undecided mentions do not count if there is a decided one."""
        decided = {name: count for name, count in self.types.items() if name not in _UNDECIDED}
        return max(decided or self.types or {UNTYPED: 1}, key=lambda name: ((decided or self.types)[name], name))


class Resolver:
    """Turns a document's extractions into knowledge with ids. Reads the graph once per document."""

    def __init__(self, store: KnowledgeStore) -> None:
        self._store = store

    async def resolve(
        self, tenant: TenantId, document_id: str, version: int, title: str, extractions: Sequence[Extraction]
    ) -> DocumentKnowledge:
        """Return the knowledge of version ``version`` of the document, with every name resolved to an entity id."""
        require_tenant(tenant)
        groups, owner = group_names(extractions)
        keys = sorted({key for group in groups.values() for key in (group.key, *group.aliases)})
        known = await self._store.find_entities(tenant, keys) if keys else {}
        ids = {key: entity_id(tenant, document_id, group, known) for key, group in groups.items()}
        resolved = {key: ids[root] for key, root in owner.items()}
        facts = _Facts(tenant, document_id, version)
        for extraction in extractions:
            facts.add(extraction, resolved)
        return DocumentKnowledge(
            document_id=document_id,
            version=version,
            title=title,
            chunk_ids=tuple(dict.fromkeys(extraction.chunk_id for extraction in extractions)),
            entities=_entities(groups, ids),
            relationships=facts.relationships(),
            mentions=facts.mentions(),
            relationship_supports=facts.sentences(),
        )


def group_names(extractions: Sequence[Extraction]) -> tuple[dict[str, Group], dict[str, str]]:
    """Return the document's groups by root key, and for every normalised name the root key of its group."""
    parents = _alias_parents(extractions)
    groups: dict[str, Group] = {}
    owner: dict[str, str] = {}

    def group_of(name: str) -> tuple[str, Group] | None:
        key = normalise_name(name)
        if not key:
            return None
        root = owner.setdefault(key, _root(key, parents))
        owner.setdefault(root, root)
        return key, groups.setdefault(root, Group(root))

    for extraction in extractions:
        for mention in extraction.mentions:
            _count(group_of(mention.name), mention.name, mention.type, 1)
        for relationship in extraction.relationships:
            _count(group_of(relationship.source), relationship.source, relationship.source_type, 0)
            _count(group_of(relationship.target), relationship.target, relationship.target_type, 0)
    for extraction in extractions:
        for alias in extraction.aliases:
            _count(group_of(alias.name), alias.name, alias.type, 0)
            found = group_of(alias.alias)
            if found is not None and found[0] != found[1].key and not is_local(alias.name, alias.alias):
                found[1].aliases.setdefault(found[0], _spaced(alias.alias))
    return groups, owner


def is_local(name: str, alias: str) -> bool:
    """Return whether ``alias`` is only a part of ``name``, such as a surname. Such an alias holds in its own document only.

    A title without its disambiguator ("Rome" of "Rome (film)") is a name everywhere.
    """
    if name.rstrip().endswith(")") and "(" in name:
        return False
    words = normalise_name(name).split()
    return all(word in words for word in normalise_name(alias).split())


def entity_id(tenant: TenantId, document_id: str, group: Group, known: Mapping[str, Sequence[Entity]]) -> str:
    """Return the id of ``group``'s entity: a known entity that fits, otherwise the id derived from its name."""
    found = _known(group, known)
    if found is not None:
        return found.id
    kind = coarse_type(group.type)
    own = stable_id("entity", tenant, group.key, kind)
    taken = {entity.id: entity for entities in known.values() for entity in entities}
    if own in taken:
        return stable_id("entity", tenant, group.key, kind, document_id)
    return own


def _known(group: Group, known: Mapping[str, Sequence[Entity]]) -> Entity | None:
    """Return the entity of this name; else the only entity with this alias; else the only entity whose name is one of the
    aliases.
    """
    fitting = [entity for entity in known.get(group.key, ()) if compatible(group.type, entity.type)]
    named = [entity for entity in fitting if normalise_name(entity.name) == group.key]
    if named:
        return min(named, key=lambda entity: (entity.type != group.type, coarse_type(entity.type) == UNTYPED, entity.id))
    aliased = [entity for entity in fitting if _alias_holds(group, entity)]
    if len(aliased) == 1:
        return aliased[0]
    same_type = [entity for entity in aliased if entity.type == group.type]
    if len(same_type) == 1:
        return same_type[0]
    by_alias = {
        entity.id: entity
        for key in group.aliases
        for entity in known.get(key, ())
        if compatible(group.type, entity.type) and normalise_name(entity.name) == key
    }
    return next(iter(by_alias.values())) if len(by_alias) == 1 else None


def _alias_holds(group: Group, entity: Entity) -> bool:
    """A single plain word that is only an alias ("Rome" of a film) needs the same type, too; an acronym does not."""
    if " " in group.key or (group.type == entity.type and group.type not in _UNDECIDED):
        return True
    return any(normalise_name(alias) == group.key and alias.isupper() for alias in entity.aliases)


def _alias_parents(extractions: Sequence[Extraction]) -> dict[str, str]:
    """Return alias → name over the document. The first name given for an alias wins, and no cycles arise."""
    parents: dict[str, str] = {}
    for extraction in extractions:
        for alias in extraction.aliases:
            key, parent = normalise_name(alias.alias), normalise_name(alias.name)
            if key and parent and key not in parents and _root(parent, parents) != key:
                parents[key] = parent
    return parents


def _root(key: str, parents: Mapping[str, str]) -> str:
    while key in parents:
        key = parents[key]
    return key


def _count(found: tuple[str, Group] | None, text: str, type_: str, times: int) -> None:
    if found is None:
        return
    key, group = found
    group.types[type_] += times
    if key == group.key:
        group.texts[_spaced(text)] += times


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _entities(groups: Mapping[str, Group], ids: Mapping[str, str]) -> tuple[Entity, ...]:
    """Return one entity per id. Groups that resolve to the same known entity are merged."""
    joined: dict[str, list[Group]] = {}
    for key, group in groups.items():
        joined.setdefault(ids[key], []).append(group)
    return tuple(_entity(id_, members) for id_, members in joined.items())


def _entity(id_: str, members: Sequence[Group]) -> Entity:
    first = members[0]
    others = [text for group in members for text in ([] if group is first else [group.name]) + list(group.aliases.values())]
    aliases = {normalise_name(text): text for text in reversed(others)}
    aliases.pop(first.key, None)
    return Entity(id=id_, name=first.name, type=first.type, aliases=tuple(sorted(aliases.values())))


class _Facts:
    """Mentions and relationships of one version, gathered chunk by chunk."""

    def __init__(self, tenant: TenantId, document_id: str, version: int) -> None:
        self._tenant = tenant
        self._document_id = document_id
        self._version = version
        self._mentions: dict[tuple[str, Support], tuple[int, bool]] = {}
        self._ends: dict[str, tuple[str, str, str]] = {}
        self._weights: dict[str, float] = {}
        self._sentences: dict[tuple[str, Support, int], RelationshipSupport] = {}
        self._validity: dict[str, list[tuple[str | None, str | None]]] = {}

    def add(self, extraction: Extraction, resolved: Mapping[str, str]) -> None:
        support = Support(self._document_id, self._version, extraction.chunk_id)
        for mention in extraction.mentions:
            key = normalise_name(mention.name)
            if key:
                count, about = self._mentions.get((resolved[key], support), (0, False))
                self._mentions[resolved[key], support] = (count + (not mention.about), about or mention.about)
        for found in extraction.relationships:
            source, target = resolved.get(normalise_name(found.source)), resolved.get(normalise_name(found.target))
            if source is None or target is None or source == target:
                continue
            id_ = relationship_id(self._tenant, source, found.relation, target)
            sentence = RelationshipSupport(
                relationship_id=id_, support=support, fact=found.fact, start_char=found.fact_start, end_char=found.fact_end
            )
            if (id_, support, found.fact_start) not in self._sentences:
                self._sentences[id_, support, found.fact_start] = sentence
                self._ends[id_] = (source, found.relation, target)
                self._weights[id_] = self._weights.get(id_, 0.0) + found.confidence
                self._validity.setdefault(id_, []).append((found.valid_at, found.invalid_at))

    def mentions(self) -> tuple[Mention, ...]:
        return tuple(
            Mention(entity_id=entity, support=support, count=max(count, 1), about=about)
            for (entity, support), (count, about) in self._mentions.items()
        )

    def sentences(self) -> tuple[RelationshipSupport, ...]:
        return tuple(self._sentences.values())

    def relationships(self) -> tuple[Relationship, ...]:
        supports: dict[str, dict[Support, None]] = {}
        facts: dict[str, str] = {}
        for (id_, support, _), sentence in self._sentences.items():
            supports.setdefault(id_, {})[support] = None
            facts.setdefault(id_, sentence.fact)
        return tuple(
            Relationship(
                id=id_,
                source_id=source,
                target_id=target,
                relation=relation,
                fact=facts[id_],
                weight=round(self._weights[id_], 3),
                valid_at=_moment(min((start for start, _ in self._validity[id_] if start is not None), default=None)),
                invalid_at=_moment(end_of(self._validity[id_])),
                supports=_ordered(supports[id_]),
            )
            for id_, (source, relation, target) in self._ends.items()
        )


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _ordered(supports: Iterable[Support]) -> tuple[Support, ...]:
    return tuple(dict.fromkeys(supports))
