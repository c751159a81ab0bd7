"""Exclusive types of relationships: one end can have only one other end at a time.

The tenant's ontology decides about its own types. For other types there are defaults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from agentic_rag_backend.domain.graph import name_words
from agentic_rag_backend.domain.ontology import Ontology, RelationType

End = Literal["source", "target"]
"""The end of a relationship that can have only one other end."""
NEGATION = "not_"
"""Beginning of the relation that a passage denies: ``not_acquired``."""


def _permanent_types(*names: str) -> Iterable[RelationType]:
    return (RelationType(name, functional=True, permanent=True) for name in names)


def _office_types(*names: str) -> Iterable[RelationType]:
    return (RelationType(name, inverse_functional=True) for name in names)


DEFAULTS: Mapping[str, RelationType] = {
    relation_type.name: relation_type
    for relation_type in (
        *_permanent_types("born_in", "born_on", "born_at", "died_in", "died_on", "date_of_birth", "place_of_birth"),
        *_permanent_types("date_of_death", "place_of_death", "founded_in", "founded_on", "opened_on", "opened_in"),
        *_office_types("chief_executive_of", "ceo_of", "president_of", "mayor_of", "governor_of", "chairs", "chair_of"),
        *_office_types("chairman_of", "chairwoman_of", "prime_minister_of", "monarch_of", "capital_of"),
    )
}
"""Exclusive types of the rules, and names that language models often use. "Leads", "married to" and "based in" are not among
them: an organisation may have several leaders, and a place may lie in another one.
"""


def relation_key(name: str) -> str:
    """Return the name of a type of the ontology in the form in which relationships have it: "works for" → ``works_for``."""
    return "_".join(name_words(name))


def stored_names(types: Iterable[str]) -> tuple[str, ...]:
    """Return the names that relationships of these types can have in a graph: "Works for" → ``works_for``, ``WORKS_FOR``.

    Graphiti has names in capitals. Each type is also kept as it is given.
    """
    keys = ((name, relation_key(name)) for name in types)
    return tuple(dict.fromkeys(form for name, key in keys for form in (name, key, key.upper())))


@dataclass(frozen=True, slots=True)
class ExclusiveRelations:
    """The exclusive types of one tenant, by the relation of its relationships."""

    types: Mapping[str, RelationType]

    @classmethod
    def of(cls, ontology: Ontology) -> ExclusiveRelations:
        """Return the exclusive types: those of the ontology, and the defaults that it does not define."""
        tenant_types = {relation_key(relation_type.name): relation_type for relation_type in ontology.relation_types}
        return cls(
            {name: relation_type for name, relation_type in {**DEFAULTS, **tenant_types}.items() if relation_type.exclusive}
        )

    def names(self, end: End) -> tuple[str, ...]:
        """Return the relations that are exclusive at an end."""
        return tuple(name for name, relation_type in self.types.items() if end in _exclusive_ends(relation_type))

    def ends(self, relation: str) -> tuple[End, ...]:
        """Return the ends at which a relation is exclusive. Empty: it is not."""
        relation_type = self.types.get(relation)
        return () if relation_type is None else _exclusive_ends(relation_type)

    def is_permanent(self, relation: str) -> bool:
        """Return whether the other end never changes."""
        relation_type = self.types.get(relation)
        return relation_type is not None and relation_type.permanent


def _exclusive_ends(type_: RelationType) -> tuple[End, ...]:
    flags: tuple[tuple[End, bool], ...] = (("source", type_.functional), ("target", type_.inverse_functional))
    return tuple(end for end, exclusive in flags if exclusive)
