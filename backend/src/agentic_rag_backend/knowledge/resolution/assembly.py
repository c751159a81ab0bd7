"""Builds the knowledge of a document version from its groups of names and the entities that these names mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agentic_rag_backend.domain.graph import (
    DocumentKnowledge,
    Entity,
    Extraction,
    Mention,
    NameMark,
    OtherName,
    Relationship,
    RelationshipSupport,
    Support,
    relationship_id,
)
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.knowledge.identity.edits import EditedEntity, EditedLabel, Edits
from agentic_rag_backend.knowledge.resolution.groups import Group, group_names
from agentic_rag_backend.knowledge.resolution.limits import NameKeys, NameLimits
from agentic_rag_backend.language.times import end_of


@dataclass(frozen=True, slots=True)
class ResolvedVersion:
    """A document version, and the entity of each of its groups of names before edits, by the group's key."""

    tenant: TenantId
    document_id: str
    version: int
    title: str
    assigned: Mapping[str, str]
    unsettled: frozenset[str] = frozenset()


def build_knowledge(
    resolved: ResolvedVersion, extractions: Sequence[Extraction], limits: NameLimits, edits: Edits
) -> DocumentKnowledge:
    """Return the knowledge of a document version. Takes time in proportion to the extractions."""
    grouped = group_names(extractions, limits, edits)
    assigned, document_id = resolved.assigned, resolved.document_id
    edited = {key: edits.entity(id, document_id) for key, id in assigned.items()}
    entities = {key: edited[root].id for key, root in grouped.roots.items() if not edited[root].deleted}
    facts = _Facts(resolved.tenant, document_id, resolved.version, _Entities(entities, grouped.keys))
    for extraction in grouped.extractions:
        facts.add(extraction)
    return DocumentKnowledge(
        document_id=document_id,
        version=resolved.version,
        title=resolved.title,
        chunk_ids=tuple(dict.fromkeys(extraction.chunk_id for extraction in grouped.extractions)),
        entities=_entities(grouped.groups, assigned, edited, edits),
        relationships=facts.relationships(),
        mentions=facts.mentions(),
        relationship_supports=facts.sentences(),
        unsettled=resolved.unsettled,
        warnings=grouped.left_out.warnings(limits),
    )


@dataclass(frozen=True, slots=True)
class _Entities:
    """The entity of each name as written. Names of deleted entities have none."""

    by_key: Mapping[str, str]
    keys: NameKeys

    def get(self, name: str) -> str | None:
        """Return the id of the entity that a name means."""
        return self.by_key.get(self.keys(name))


def _entities(
    groups: Mapping[str, Group], assigned: Mapping[str, str], edited: Mapping[str, EditedEntity], edits: Edits
) -> tuple[Entity, ...]:
    """Return one entity per id. Groups that resolve to the same known entity are merged."""
    joined: dict[EditedEntity, list[Group]] = {}
    for key, group in groups.items():
        joined.setdefault(edited[key], []).append(group)
    return tuple(_build_entity(entity, members, assigned, edits.label(entity.id)) for entity, members in joined.items())


def _build_entity(entity: EditedEntity, members: Sequence[Group], assigned: Mapping[str, str], label: EditedLabel) -> Entity:
    """Return the entity of groups that resolve to one. The names of the first group come first, the editor's name last."""
    mark: NameMark = "deleted" if entity.deleted else ""
    names: dict[str, OtherName] = {}
    for group in members:
        other_name = OtherName(group.name, "", label.type or group.type, group.description.written, assigned[group.key], mark)
        names.setdefault(group.key, other_name)
    for group in members:
        full = group.name
        for key, text in group.aliases.items():
            names.setdefault(key, OtherName(text, full, assigned=assigned[group.key], mark=mark))
    if label.name and not entity.deleted:
        _mark_label(names, label.name)
    main, *other_names = names.values()
    other_names.sort(key=lambda other_name: other_name.name)
    return Entity(
        id=entity.id,
        name=main.name,
        type=main.type,
        aliases=tuple(other_name.name for other_name in other_names),
        description=main.description,
        other_names=tuple(other_names),
        assigned=main.assigned,
        mark=main.mark,
    )


def _mark_label(names: dict[str, OtherName], chosen: str) -> None:
    """Mark the name that an editor chose, which need not be one of the document's."""
    key = next((key for key, name in names.items() if name.name == chosen), None)
    if key is None:
        # No normalised name begins with a space.
        names[f" {chosen}"] = OtherName(chosen, mark="label")
    else:
        names[key] = replace(names[key], mark="label")


class _Facts:
    """Mentions and relationships of one version, gathered chunk by chunk."""

    def __init__(self, tenant: TenantId, document_id: str, version: int, entities: _Entities) -> None:
        self._tenant = tenant
        self._entities = entities
        self._document_id = document_id
        self._version = version
        self._mentions: dict[tuple[str, Support], tuple[int, bool]] = {}
        self._ends: dict[str, tuple[str, str, str]] = {}
        self._weights: dict[str, float] = {}
        self._sentences: dict[tuple[str, Support, int], RelationshipSupport] = {}
        self._validity: dict[str, list[tuple[str | None, str | None]]] = {}

    def add(self, extraction: Extraction) -> None:
        support = Support(self._document_id, self._version, extraction.chunk_id)
        for mention in extraction.mentions:
            # A deleted entity is not mentioned.
            if entity := self._entities.get(mention.name):
                count, about = self._mentions.get((entity, support), (0, False))
                self._mentions[entity, support] = (count + (not mention.about), about or mention.about)
        for relationship in extraction.relationships:
            source, target = self._entities.get(relationship.source), self._entities.get(relationship.target)
            if source is None or target is None or source == target:
                continue
            id_ = relationship_id(self._tenant, source, relationship.relation, target)
            sentence = RelationshipSupport(
                relationship_id=id_,
                support=support,
                fact=relationship.fact,
                start_char=relationship.fact_start,
                end_char=relationship.fact_end,
            )
            if (id_, support, relationship.fact_start) not in self._sentences:
                self._sentences[id_, support, relationship.fact_start] = sentence
                self._ends[id_] = (source, relationship.relation, target)
                self._weights[id_] = self._weights.get(id_, 0.0) + relationship.confidence
                self._validity.setdefault(id_, []).append((relationship.valid_at, relationship.invalid_at))

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
                valid_at=_to_time(min((start for start, _ in self._validity[id_] if start is not None), default=None)),
                invalid_at=_to_time(end_of(self._validity[id_])),
                supports=tuple(dict.fromkeys(supports[id_])),
            )
            for id_, (source, relation, target) in self._ends.items()
        )


def _to_time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
