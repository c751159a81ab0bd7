"""Ontology of a tenant: types of entities and relationships for a language model, and metadata fields that name entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.filters import DOCUMENT_FIELDS
from agentic_rag_backend.domain.size_limits import make_storable
from agentic_rag_backend.errors import InvalidRequest

MAX_ENTITY_TYPES = 50
MAX_RELATION_TYPES = 100
MAX_DESCRIPTION_CHARACTERS = 200
MAX_ENTITY_FIELDS = 20
MAX_FIELD_CHARACTERS = 128
UNTYPED = "other"
"""The type of entities that have none of the ontology's types. It may be an end of every relationship."""
_NAME = re.compile(r"[a-z][a-z0-9_ ]{0,39}")


@dataclass(frozen=True, slots=True)
class EntityType:
    """A type of entities. ``description`` helps the model to choose it."""

    name: str
    description: str = ""

    def __post_init__(self) -> None:
        _check_type("entity type", self.name, self.description)


@dataclass(frozen=True, slots=True)
class RelationType:
    """A type of relationships that lead from entities of the types ``sources`` to ``targets``. Empty: any type.

    Args:
        functional: a source has one target at a time, as "born in".
        inverse_functional: a target has one source at a time, as "chief executive of".
        permanent: the one target or source never changes. A different one contradicts; it does not succeed.
    """

    name: str
    description: str = ""
    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    functional: bool = False
    inverse_functional: bool = False
    permanent: bool = False

    def __post_init__(self) -> None:
        _check_type("relation type", self.name, self.description)
        for flag in ("functional", "inverse_functional", "permanent"):
            if not isinstance(getattr(self, flag), bool):
                raise InvalidRequest(f"relation type {self.name!r}: {flag} is true or false; got {getattr(self, flag)!r:.80}")
        if self.permanent and not self.exclusive:
            raise InvalidRequest(
                f"relation type {self.name!r}: a permanent type is functional or inverse_functional; it is neither"
            )

    @property
    def exclusive(self) -> bool:
        """Whether one end can have only one other end at a time."""
        return self.functional or self.inverse_functional

    def joins_types(self, source_type: str, target_type: str) -> bool:
        """Return whether a relationship of this type may lead from one type to another."""
        return _allows_type(self.sources, source_type) and _allows_type(self.targets, target_type)


@dataclass(frozen=True, slots=True)
class EntityField:
    """A metadata field of documents. Its values are the names of entities of a type."""

    name: str
    type: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or len(self.name) > MAX_FIELD_CHARACTERS:
            raise InvalidRequest(f"entity field: a name has 1 to {MAX_FIELD_CHARACTERS} characters; got {str(self.name)[:80]!r}")
        if self.name != make_storable(self.name):
            raise InvalidRequest(f"entity field {self.name[:80]!r} has a NUL character or an unpaired surrogate")
        if self.name in DOCUMENT_FIELDS:
            raise InvalidRequest(f"entity field {self.name!r} is a field of every document, not metadata")


@dataclass(frozen=True, slots=True)
class Ontology:
    """At least one type of entities. Without types of relationships, every relation is allowed.

    ``entity_fields`` are no input of the extraction of a chunk, so they are not part of the text that identifies an ontology.

    Raises:
        InvalidRequest: a name, a description or a number is outside its limits, a name occurs twice, or an end is no type.
    """

    entity_types: tuple[EntityType, ...]
    relation_types: tuple[RelationType, ...] = ()
    entity_fields: tuple[EntityField, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        types = [entity_type.name for entity_type in self.entity_types]
        if not 1 <= len(types) <= MAX_ENTITY_TYPES:
            raise InvalidRequest(f"an ontology has 1 to {MAX_ENTITY_TYPES} entity types; got {len(types)}")
        if len(self.relation_types) > MAX_RELATION_TYPES:
            raise InvalidRequest(f"an ontology has at most {MAX_RELATION_TYPES} relation types; got {len(self.relation_types)}")
        if len(self.entity_fields) > MAX_ENTITY_FIELDS:
            raise InvalidRequest(f"an ontology has at most {MAX_ENTITY_FIELDS} entity fields; got {len(self.entity_fields)}")
        _check_unique("entity type", types)
        _check_unique("relation type", [relation_type.name for relation_type in self.relation_types])
        _check_unique("entity field", [entity_field.name for entity_field in self.entity_fields])
        for entity_field in self.entity_fields:
            if entity_field.type not in types:
                raise InvalidRequest(
                    f"entity field {entity_field.name!r} has the type {str(entity_field.type)[:80]!r}, which is not defined"
                )
        for relation_type in self.relation_types:
            for end in (*relation_type.sources, *relation_type.targets):
                if end not in types:
                    raise InvalidRequest(
                        f"relation type {relation_type.name!r} names the entity type {end[:80]!r}, which is not defined"
                    )

    @property
    def field_names(self) -> frozenset[str]:
        """The names of the metadata fields whose values are entities."""
        return frozenset(entity_field.name for entity_field in self.entity_fields)

    @property
    def type_names(self) -> tuple[str, ...]:
        """The names of the entity types."""
        return tuple(entity_type.name for entity_type in self.entity_types)


def ontology_of(value: Mapping[str, Any]) -> Ontology:
    """Return the ontology that `dataclasses.asdict` made a mapping of.

    Raises:
        InvalidRequest: it is no ontology.
    """
    try:
        return Ontology(
            entity_types=tuple(EntityType(**entity_type) for entity_type in value["entity_types"]),
            relation_types=tuple(
                RelationType(
                    **{**relation_type, "sources": tuple(relation_type["sources"]), "targets": tuple(relation_type["targets"])}
                )
                for relation_type in value["relation_types"]
            ),
            entity_fields=tuple(
                EntityField(**entity_field) for entity_field in value.get("entity_fields", ())
            ),  # earlier releases had none
        )
    except (KeyError, TypeError) as error:
        raise InvalidRequest(f"not an ontology: {error}") from None


def _check_type(kind: str, name: str, description: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{kind}: a name has 1 to 40 lower-case letters, digits, spaces and _, and begins with a letter; "
            f"got {str(name)[:80]!r}"
        )
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_CHARACTERS or "\n" in description:
        raise InvalidRequest(
            f"the description of {kind} {name!r} is one line of at most {MAX_DESCRIPTION_CHARACTERS} characters; "
            f"got {len(str(description))}"
        )


def _check_unique(kind: str, names: Iterable[str]) -> None:
    names_seen: set[str] = set()
    for name in names:
        if name in names_seen:
            raise InvalidRequest(f"{kind} {name!r} is defined twice")
        names_seen.add(name)


def _allows_type(types: tuple[str, ...], type_: str) -> bool:
    return not types or type_ == UNTYPED or type_ in types
