"""Neighbourhoods of entities, paths between entities, and edits of the graph by people."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from agentic_rag_backend.api.schemas.base import Body, View
from agentic_rag_backend.api.schemas.knowledge.entities import EntityView, RelationshipView
from agentic_rag_backend.domain.graph_edits import (
    MAX_EDITED_DOCUMENTS,
    MAX_EDITED_ENTITIES,
    MAX_EDITED_NAME_CHARACTERS,
    MAX_EDITED_NAMES,
    MAX_REASON_CHARACTERS,
)
from agentic_rag_backend.knowledge.editing import EditStatus, Split
from agentic_rag_backend.knowledge.paths.base import (
    MAX_HOPS,
    MAX_PATHS,
    AmbiguousName,
    Connection,
    EntityPath,
    PathOptions,
    PathsFound,
)
from agentic_rag_backend.knowledge.paths.neighbourhood import Neighbourhood, NeighbourNode
from agentic_rag_backend.retrieval.options.filters import AS_OF_DESCRIPTION, AsOf, Number, Switch, Whole
from agentic_rag_backend.retrieval.requests.search_requests import MAX_QUERY_CHARACTERS

MAX_NAMES = 10
MAX_RELATION_TYPES = 20
MAX_ENTITY_NAME_CHARACTERS = 512
MAX_WEIGHT = 1000
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_ENTITY_NAME_CHARACTERS)]


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[Name], Field(min_length=1, max_length=MAX_NAMES), BeforeValidator(_as_list, json_schema_input_type=Name | list[Name])
]
"""Ids or names of entities. One of them may be given without a list."""
RelationType = Annotated[str, StringConstraints(min_length=1, max_length=128)]


class PathsBody(Body):
    """A request for paths: between ``source`` and ``target``, or among the entities that ``query`` names."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": "Mira Voss", "target": "Halden Institute", "max_hops": 3}]}
    )

    source: Names | None = Field(
        None,
        validation_alias=AliasChoices("source", "sources"),
        description=f"id or name of an entity, or up to {MAX_NAMES} of them",
    )
    target: Names | None = Field(
        None,
        validation_alias=AliasChoices("target", "targets"),
        description=f"id or name of an entity, or up to {MAX_NAMES} of them",
    )
    query: str | None = Field(
        None,
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description="a question, instead of `source` and `target`: paths among the entities that it names",
    )
    max_hops: Whole = Field(2, ge=1, le=MAX_HOPS, description="steps of a path, 1 to 4")
    relation_types: list[RelationType] | None = Field(
        None,
        min_length=1,
        max_length=MAX_RELATION_TYPES,
        description="only relationships of these types, in any case; excludes shared mentions",
    )
    min_weight: Number = Field(0.0, ge=0, le=MAX_WEIGHT, description="least weight of a step")
    direction: Literal["any", "out", "in"] = Field(
        "any",
        description="`out`: every step follows its relationship from source to target; `in`: the opposite; both exclude shared "
        "mentions",
    )
    mentions: Switch = Field(
        True, description="if no path consists of relationships, also use steps between entities that one chunk mentions"
    )
    limit: Whole = Field(10, ge=1, le=MAX_PATHS, description="maximum paths, 1 to 50")
    as_of: AsOf = Field(None, description=AS_OF_DESCRIPTION)

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        ends = [self.source is not None, self.target is not None]
        if (self.query is None and not all(ends)) or (self.query is not None and any(ends)):
            raise ValueError("give either query, or both source and target")
        return self

    def options(self) -> PathOptions:
        """Return the options of the search."""
        return PathOptions(
            max_hops=self.max_hops,
            relations=None if self.relation_types is None else tuple(self.relation_types),
            min_weight=self.min_weight,
            direction=self.direction,
            mentions=self.mentions,
            limit=self.limit,
            as_of=self.as_of,
        )


class ConnectionView(View):
    """What connects two entities: a relationship, or a chunk that mentions both.

    ``relation``, ``fact`` and ``relationship`` of a shared mention are null.
    """

    kind: Literal["relationship", "mention"] = Field(
        description="`mention`: no relationship is known; a chunk mentions both entities"
    )
    source: EntityView = Field(description="where the relationship begins")
    relation: str | None
    target: EntityView
    fact: str | None = Field(description="the sentence that states the relationship")
    weight: float = Field(description="of a relationship: its own; of a mention: 0.1 for each shared chunk, at most 0.5")
    chunk_id: str = Field(description="the chunk that states it, or that mentions both entities")
    document_id: str
    relationship: RelationshipView | None = Field(description="the relationship with its times and all its passages")

    @classmethod
    def every(cls, connections: tuple[Connection, ...]) -> list[ConnectionView]:
        """Return the view of each connection."""
        return [cls(**_connection(connection)) for connection in connections]


class PathStepView(ConnectionView):
    """A step of a path. The path may lead from ``source`` to ``target`` or back."""

    forward: bool = Field(description="whether the path leads from `source` to `target`")
    others: list[RelationshipView] = Field(description="further relationships between the two entities")

    @classmethod
    def of(cls, step: Connection) -> PathStepView:
        """Return the view of a step."""
        return cls(**_connection(step), forward=step.forward, others=RelationshipView.every(step.others))


def _connection(connection: Connection) -> dict[str, Any]:
    fact = connection.fact
    return {
        "kind": "mention" if fact is None else "relationship",
        "source": EntityView.of(connection.source),
        "relation": None if fact is None else fact.relation,
        "target": EntityView.of(connection.target),
        "fact": None if fact is None else fact.fact,
        "weight": connection.weight,
        "chunk_id": connection.chunk_id,
        "document_id": connection.document_id,
        "relationship": None if fact is None else RelationshipView.of(fact),
    }


class PathView(View):
    """A path. No entity comes twice, and no two paths have the same entities in the same order."""

    score: float = Field(description="in (0, 1); comparable within one response")
    hops: int
    entities: list[EntityView] = Field(description="from one end to the other")
    steps: list[PathStepView]

    @classmethod
    def of(cls, path: EntityPath) -> PathView:
        """Return the view of a path."""
        return cls(
            score=round(path.score, 6),
            hops=len(path.steps),
            entities=[EntityView.of(entity) for entity in path.entities],
            steps=[PathStepView.of(step) for step in path.steps],
        )


class AmbiguousNameView(View):
    """A name that several entities have."""

    name: str
    entities: list[EntityView]

    @classmethod
    def of(cls, ambiguous: AmbiguousName) -> AmbiguousNameView:
        """Return the view of an ambiguous name."""
        return cls(name=ambiguous.name, entities=[EntityView.of(entity) for entity in ambiguous.entities])


class PathsView(View):
    sources: list[EntityView] = Field(description="entities at which paths begin; of a query, the entities that it names")
    targets: list[EntityView]
    ambiguous: list[AmbiguousNameView] = Field(
        description="names that several entities have: paths lead to all of them; use an id for one of them"
    )
    paths: list[PathView] = Field(description="best first")
    bounded: bool = Field(description="whether weak connections of entities with very many were left out")

    @classmethod
    def of(cls, result: PathsFound) -> PathsView:
        """Return the view of paths."""
        return cls(
            sources=[EntityView.of(entity) for entity in result.sources],
            targets=[EntityView.of(entity) for entity in result.targets],
            ambiguous=[AmbiguousNameView.of(name) for name in result.ambiguous],
            paths=[PathView.of(path) for path in result.paths],
            bounded=result.bounded,
        )


class NodeView(EntityView):
    """An entity of a neighbourhood."""

    hops: int = Field(description="steps from the first entity, or from the nearest of `also`, over `edges`")
    mention_count: int
    x: float | None = Field(None, description="place on a map of the nodes, 0 to 1; null without `positions`")
    y: float | None = Field(None, description="0 (top) to 1")

    @classmethod
    def at(cls, node: NeighbourNode) -> NodeView:
        """Return the view of a node."""
        x, y = node.position or (None, None)
        return cls(**EntityView.of(node.entity).model_dump(), hops=node.hops, mention_count=node.mention_count, x=x, y=y)


class NeighbourhoodView(View):
    nodes: list[NodeView] = Field(description="nearest first, the entity itself included")
    edges: list[ConnectionView] = Field(description="by decreasing weight")
    bounded: bool = Field(description="whether entities or connections were left out")

    @classmethod
    def of(cls, neighbourhood: Neighbourhood) -> NeighbourhoodView:
        """Return the view of a neighbourhood."""
        return cls(
            nodes=[NodeView.at(node) for node in neighbourhood.nodes],
            edges=ConnectionView.every(neighbourhood.edges),
            bounded=neighbourhood.bounded,
        )


_ID = "8f14e45f-ceea-5e7a-9c3b-2d1f0a9b8c7d"
Id = Annotated[str, StringConstraints(min_length=1, max_length=64)]
EditedName = Annotated[str, StringConstraints(min_length=1, max_length=MAX_EDITED_NAME_CHARACTERS)]
Reason = Annotated[str, Field(max_length=MAX_REASON_CHARACTERS, description="a remark for the record")]


class MergeBody(Body):
    """Entities to merge into the entity of the path."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"entity_ids": [_ID], "reason": "two spellings of one name"}]})

    entity_ids: list[Id] = Field(min_length=1, max_length=MAX_EDITED_ENTITIES, description="entities that become this one")
    reason: Reason = ""


class SplitBody(Body):
    """Parts to take out of the entity of the path: exactly one of the three lists."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"document_ids": [_ID], "name": "Rowan Teller (nurse)"}]})

    document_ids: list[Id] = Field(
        default_factory=list,
        max_length=MAX_EDITED_DOCUMENTS,
        description="documents in which the name means another entity, which is created",
    )
    names: list[EditedName] = Field(
        default_factory=list, max_length=MAX_EDITED_NAMES, description="names that become entities of their own, in all documents"
    )
    entity_ids: list[Id] = Field(
        default_factory=list, max_length=MAX_EDITED_ENTITIES, description="entities that were merged into it"
    )
    name: EditedName | None = Field(
        None, description="with `document_ids`: the name of the new entity; null: as the documents say"
    )
    type: EditedName | None = Field(None, description="with `document_ids`: the type of the new entity")
    reason: Reason = ""

    def split(self) -> Split:
        """Return the split."""
        return Split(self.document_ids, self.names, self.entity_ids, self.name or "", self.type or "")


class RenameBody(Body):
    """Another label of the entity of the path. Its other names stay, and questions find it by all of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Rowan Teller (nurse)", "type": "person"}]})

    name: EditedName | None = Field(None, description="null: unchanged")
    type: EditedName | None = Field(None, description="such as `person`; null: unchanged")
    reason: Reason = ""


class EditedEntityView(View):
    """An entity that an edit names, under its name at that time."""

    id: str
    name: str


class GraphEditView(View):
    """An edit of the graph, which stays in effect for later documents until it is undone."""

    number: int = Field(description="edits of a tenant are numbered from 1 and apply in this order")
    kind: Literal["merge", "split", "rename", "delete"]
    entity: EditedEntityView = Field(description="the edited entity")
    entities: list[EditedEntityView] = Field(description="merge: what became the entity; split: what was taken out of it")
    document_ids: list[str] = Field(description="split: the documents of the new entity")
    names: list[str] = Field(description="split: the names that became entities, in lower case")
    new_entity_id: str | None = Field(description="split: the entity of `document_ids`")
    name: str | None = Field(description="the label that was given")
    type: str | None = Field(description="the type that was given")
    reason: str
    created_at: datetime
    undone_at: datetime | None = Field(description="since when it has no effect; null: it is in effect")
    applied: bool = Field(description="false: some documents are still being changed")

    @classmethod
    def of(cls, status: EditStatus) -> GraphEditView:
        """Return the view of an edit."""
        edit, draft = status.edit, status.edit.draft
        return cls(
            number=edit.number,
            kind=draft.kind.value,
            entity=EditedEntityView(id=draft.entity_id, name=draft.entity_name),
            entities=[EditedEntityView(id=id, name=name) for id, name in zip(draft.entity_ids, draft.entity_names, strict=True)],
            document_ids=list(draft.document_ids),
            names=list(draft.names),
            new_entity_id=draft.new_id or None,
            name=draft.name or None,
            type=draft.type or None,
            reason=draft.reason,
            created_at=edit.created_at,
            undone_at=edit.undone_at,
            applied=status.applied,
        )
