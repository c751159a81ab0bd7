"""The ontology of a tenant."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import ConfigDict, Field

from agentic_rag_backend.api.schemas.base import Body, Switch, View
from agentic_rag_backend.domain.ontology import Ontology, ontology_of
from agentic_rag_backend.knowledge.ontologies import EffectiveOntology

_FUNCTIONAL = "a source has one target at a time; a newer fact retires an older one"
_INVERSE = "a target has one source at a time, as of `chief executive of`"
_PERMANENT = "the one target or source never changes: a different one is a contradiction"
_EXAMPLE: dict[str, Any] = {
    "entity_types": [
        {"name": "person"},
        {"name": "vessel", "description": "ships, boats and ferries"},
        {"name": "organisation"},
    ],
    "relation_types": [
        {"name": "commands", "sources": ["person"], "targets": ["vessel"], "inverse_functional": True},
        {"name": "owns", "description": "legal ownership", "sources": ["organisation", "person"], "targets": ["vessel"]},
    ],
    "entity_fields": [{"name": "author", "type": "person"}],
}


class EntityTypeBody(Body):
    """A type of entities."""

    name: str
    description: str = Field("", description="helps the language model to choose the type")


class RelationTypeBody(Body):
    """A type of relationships."""

    name: str
    description: str = ""
    sources: list[str] = Field(default_factory=list, description="entity types that it leads from; empty: any")
    targets: list[str] = Field(default_factory=list, description="entity types that it leads to; empty: any")
    functional: Switch = Field(False, description=_FUNCTIONAL)
    inverse_functional: Switch = Field(False, description=_INVERSE)
    permanent: Switch = Field(False, description=_PERMANENT)


class EntityFieldBody(Body):
    """A metadata field of documents whose values are names of entities."""

    name: str
    type: str = Field(description="one of the entity types")


class OntologyBody(Body):
    """The types of entities and relationships that a language model may use, and metadata fields that name entities."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    entity_types: list[EntityTypeBody] = Field(description="1 to 50; an entity of none of them is `other`")
    relation_types: list[RelationTypeBody] = Field(default_factory=list, description="at most 100; empty: any relation")

    entity_fields: list[EntityFieldBody] = Field(
        default_factory=list,
        description="at most 20; a string, or each string of a list, is an entity of all chunks of the document",
    )

    def ontology(self) -> Ontology:
        """Return the ontology.

        Raises:
            InvalidRequest: a value is outside its limits.
        """
        return ontology_of(self.model_dump())


class EntityTypeView(View):
    """A type of entities."""

    name: str
    description: str


class RelationTypeView(View):
    """A type of relationships."""

    name: str
    description: str
    sources: list[str]
    targets: list[str]
    functional: bool = Field(description=_FUNCTIONAL)
    inverse_functional: bool = Field(description=_INVERSE)
    permanent: bool = Field(description=_PERMANENT)


class EntityFieldView(View):
    """A metadata field of documents whose values are names of entities."""

    name: str
    type: str


class OntologyView(View):
    """The ontology of a tenant. ``source`` says whether the tenant has set it."""

    entity_types: list[EntityTypeView]
    relation_types: list[RelationTypeView]
    entity_fields: list[EntityFieldView]
    source: str = Field(description="`tenant`, or `deployment` (EXTRACTION_ENTITY_TYPES)")

    @classmethod
    def of(cls, ontology: EffectiveOntology) -> OntologyView:
        """Return the view."""
        return cls.model_validate({**asdict(ontology.ontology), "source": "deployment" if ontology.is_default else "tenant"})
