"""Entity resolution: maps the names of a document to entity ids.

The names of one entity within a document are grouped by its own aliases. `identity` assigns an entity to each group. It reads
the graph once and decides purely.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from agentic_rag_backend.domain.graph import (
    UNDECIDED_TYPES,
    DocumentKnowledge,
    Entity,
    Extraction,
    Mention,
    NameMark,
    OtherName,
    Relationship,
    RelationshipSupport,
    Support,
    normalise_name,
    relationship_id,
)
from agentic_rag_backend.domain.periods import end_of
from agentic_rag_backend.domain.tenant import TenantId, require_tenant
from agentic_rag_backend.domain.text.descriptions import Description
from agentic_rag_backend.knowledge.identity.edits import NO_EDITS, EditedEntity, EditedLabel, Edits
from agentic_rag_backend.knowledge.identity.identities import Identities, OwnName
from agentic_rag_backend.stores.catalogue.ports.graph_edits import GraphEditCatalogue
from agentic_rag_backend.stores.graph.base import KnowledgeStore

UNTYPED = "other"
_TENANTS_READ = 256
"""Tenants whose edits are kept in memory."""


@dataclass(slots=True)
class Group:
    """The names of one entity within one document; ``aliases`` also hold outside of it."""

    key: str
    texts: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    aliases: dict[str, str] = field(default_factory=dict)
    description: Description = field(default_factory=Description)

    @property
    def name(self) -> str:
        """The spelling used most, the first of them."""
        return max(self.texts, key=lambda text: self.texts[text]) if self.texts else self.key

    @property
    def type(self) -> str:
        """The type given by most mentions. Undecided mentions do not count if there is a decided one."""
        decided = {name: count for name, count in self.types.items() if name not in UNDECIDED_TYPES}
        return max(decided or self.types or {UNTYPED: 1}, key=lambda name: ((decided or self.types)[name], name))


class Resolver:
    """Turns a document's extractions into knowledge with ids. Reads the graph once per document."""

    def __init__(self, store: KnowledgeStore, edits: GraphEditCatalogue | None = None) -> None:
        self.identities = Identities(store)
        self._edits = edits
        self._read: OrderedDict[TenantId, tuple[int, Edits]] = OrderedDict()

    async def edits(self, tenant: TenantId) -> Edits:
        """Return the edits of a tenant's graph that are in effect. They are read again only after they changed."""
        if self._edits is None:
            return NO_EDITS
        changes, known = await self._edits.changes(tenant), self._read.get(tenant)
        if known is None or known[0] != changes:
            # An edit that comes between the two reads is read once more.
            known = self._read[tenant] = (changes, Edits(await self._edits.in_effect(tenant)))
        self._read.move_to_end(tenant)
        if len(self._read) > _TENANTS_READ:
            self._read.popitem(last=False)
        return known[1]

    async def resolve(
        self, tenant: TenantId, document_id: str, version: int, title: str, extractions: Sequence[Extraction]
    ) -> DocumentKnowledge:
        """Return the knowledge of version ``version`` of the document, with every name resolved to an entity id."""
        require_tenant(tenant)
        edits = await self.edits(tenant)
        extractions = [_apart(each, edits) for each in extractions]
        groups, owner = group_names(extractions)
        assigned = await self.identities.assign(tenant, document_id, _own_names(groups, owner, extractions), edits)
        edited = {key: edits.entity(id, document_id) for key, id in assigned.ids.items()}
        resolved = {key: edited[root].id for key, root in owner.items() if not edited[root].deleted}
        facts = _Facts(tenant, document_id, version)
        for extraction in extractions:
            facts.add(extraction, resolved)
        return DocumentKnowledge(
            document_id=document_id,
            version=version,
            title=title,
            chunk_ids=tuple(dict.fromkeys(extraction.chunk_id for extraction in extractions)),
            entities=_entities(groups, assigned.ids, edited, edits),
            relationships=facts.relationships(),
            mentions=facts.mentions(),
            relationship_supports=facts.sentences(),
            unsettled=assigned.unsettled,
        )


def _apart(extraction: Extraction, edits: Edits) -> Extraction:
    """Return an extraction without aliases that an editor denied."""
    kept = tuple(each for each in extraction.aliases if not edits.apart(normalise_name(each.name), normalise_name(each.alias)))
    return extraction if len(kept) == len(extraction.aliases) else replace(extraction, aliases=kept)


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
        for said in extraction.descriptions:
            if (found := group_of(said.name)) is not None:
                found[1].description |= Description.parse(said.text)
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


def _own_names(groups: Mapping[str, Group], owner: Mapping[str, str], extractions: Sequence[Extraction]) -> list[OwnName]:
    """Return the document's names as `Identities` compares them with other documents."""
    together: defaultdict[str, set[str]] = defaultdict(set)
    for extraction in extractions:
        found = {owner[key] for mention in extraction.mentions if (key := normalise_name(mention.name))}
        for key in found:
            together[key] |= found
    names = {key: {key, *group.aliases} for key, group in groups.items()}
    return [
        OwnName(
            key=key,
            type=group.type,
            aliases=group.aliases,
            description=group.description,
            near=frozenset[str]().union(*(names[other] for other in together[key] - {key})),
        )
        for key, group in groups.items()
    ]


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


def _entities(
    groups: Mapping[str, Group], assigned: Mapping[str, str], edited: Mapping[str, EditedEntity], edits: Edits
) -> tuple[Entity, ...]:
    """Return one entity per id. Groups that resolve to the same known entity are merged."""
    joined: dict[EditedEntity, list[Group]] = {}
    for key, group in groups.items():
        joined.setdefault(edited[key], []).append(group)
    return tuple(_entity(entity, members, assigned, edits.label(entity.id)) for entity, members in joined.items())


def _entity(entity: EditedEntity, members: Sequence[Group], assigned: Mapping[str, str], label: EditedLabel) -> Entity:
    """Return the entity of groups that resolve to one. The names of the first group come first, the editor's name last."""
    mark: NameMark = "deleted" if entity.deleted else ""
    names: dict[str, OtherName] = {}
    for group in members:
        said = OtherName(group.name, "", label.type or group.type, group.description.written, assigned[group.key], mark)
        names.setdefault(group.key, said)
    for group in members:
        for key, text in group.aliases.items():
            names.setdefault(key, OtherName(text, group.name, assigned=assigned[group.key], mark=mark))
    if label.name and not entity.deleted:
        _choose(names, label.name)
    main, *others = names.values()
    others.sort(key=lambda said: said.name)
    return Entity(
        id=entity.id,
        name=main.name,
        type=main.type,
        aliases=tuple(said.name for said in others),
        description=main.description,
        other_names=tuple(others),
        assigned=main.assigned,
        mark=main.mark,
    )


def _choose(names: dict[str, OtherName], chosen: str) -> None:
    """Mark the name that an editor chose, which need not be one of the document's."""
    key = next((key for key, said in names.items() if said.name == chosen), None)
    if key is None:
        # No normalised name begins with a space.
        names[f" {chosen}"] = OtherName(chosen, mark="label")
    else:
        names[key] = replace(names[key], mark="label")


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
            # A deleted entity is not mentioned.
            if entity := resolved.get(key):
                count, about = self._mentions.get((entity, support), (0, False))
                self._mentions[entity, support] = (count + (not mention.about), about or mention.about)
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
