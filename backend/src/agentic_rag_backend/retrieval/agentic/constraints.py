"""Negative constraints: what results must not be about. An entity, the value of an attribute, or a phrase.

A constraint is hard: it removes every passage that it matches.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from agentic_rag_backend.domain.query import FactHit, Hit
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.language.words import words

MAX_CONSTRAINTS = 12
"""Negative constraints of one request, from all sources."""
MAX_VALUE = 200
"""Characters of a value."""
LEAST_PHRASE = 3
"""Characters of a phrase. A shorter one would match nearly every passage."""
ENTITY_PREFIX = "entity:"
Kind = Literal["entity", "attribute", "phrase"]
KINDS: Mapping[str, Kind] = {"entity": "entity", "attribute": "attribute", "phrase": "phrase"}
Source = Literal["request", "session", "plan", "reflection"]


@dataclass(frozen=True, slots=True)
class NegativeConstraint:
    """One constraint. ``name`` is the attribute's name, and empty for the other kinds.

    ``value`` is an entity's id or name, the value of the attribute, or the phrase. ``source`` is for the trace.
    """

    kind: Kind
    value: str
    name: str = ""
    source: Source = field(default="request", compare=False)

    @property
    def details(self) -> dict[str, str]:
        """The form of the trace."""
        name_field = {"name": self.name} if self.name else {}
        return {"kind": self.kind, **name_field, "value": self.value, "source": self.source}


@dataclass(frozen=True, slots=True)
class Avoided:
    """A constraint. That of an entity has the passages that mention it, and the documents about it alone.

    Documents are known of entities that share their name. Their other passages do not say whom they are about.
    """

    constraint: NegativeConstraint
    chunks: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()

    @property
    def details(self) -> dict[str, Any]:
        """The form of the trace."""
        counts = {"passages": len(self.chunks), "documents": len(self.documents)}
        return {**self.constraint.details, **(counts if self.constraint.kind == "entity" else {})}

    def removes(self, hit: Hit) -> bool:
        """Return whether the constraint removes a hit.

        An attribute is compared with the field of the document's metadata, in any case. If the document lacks the field, the
        value is searched in the passage as a phrase.
        """
        constraint = self.constraint
        if constraint.kind == "entity":
            return hit.id in self.chunks or hit.visible.chunk.document_id in self.documents
        if constraint.kind == "attribute":
            value = hit.visible.fields.get(constraint.name)
            if value is not None:
                return _holds(value, constraint.value)
        return contains_phrase(f"{hit.visible.document_title}\n{hit.visible.chunk.text}", constraint.value)

    def removes_fact(self, fact: FactHit, removed: Set[str]) -> bool:
        """Return whether the constraint removes a fact. ``removed`` are the ids of removed passages."""
        constraint = self.constraint
        if fact.chunk_id in removed or fact.chunk_id in self.chunks or fact.document_id in self.documents:
            return True
        return constraint.kind != "entity" and contains_phrase(fact.fact, constraint.value)


def _holds(field_value: Any, value: str) -> bool:
    items = field_value if isinstance(field_value, list | tuple) else [field_value]
    return any(str(item).casefold() == value.casefold() for item in items)


def contains_phrase(text: str, phrase: str) -> bool:
    """Return whether a text has the words of a phrase in this order, in any case and with any regular English ending."""
    forms = [word.form for word in words(phrase)]
    if not forms:
        return False
    return f" {' '.join(forms)} " in _forms(text)


@lru_cache(maxsize=1024)
def _forms(text: str) -> str:
    """Return the words of a text. Every round compares the passages of the rounds before again."""
    return f" {' '.join(word.form for word in words(text))} "


def keep_hits(hits: Iterable[Hit], avoided: Sequence[Avoided]) -> tuple[list[Hit], dict[str, int]]:
    """Return the hits that no constraint removes, and the number of hits that each value removed."""
    remaining: list[Hit] = []
    counts: dict[str, int] = {}
    for hit in hits:
        cause = next((constraint for constraint in avoided if constraint.removes(hit)), None)
        if cause is None:
            remaining.append(hit)
        else:
            counts[cause.constraint.value] = counts.get(cause.constraint.value, 0) + 1
    return remaining, counts


def parse_constraints(texts: Sequence[str]) -> list[NegativeConstraint]:
    """Return the constraints of a request: ``entity:ID``, ``NAME=VALUE``, or a phrase.

    Raises:
        InvalidRequest: a constraint names nothing, so it would remove nothing.
    """
    return [_parse_constraint(f"options.negative_constraints[{number}]", text) for number, text in enumerate(texts)]


def _parse_constraint(path: str, text: str) -> NegativeConstraint:
    text = " ".join(text.split())
    name, equals, value = text.partition("=")
    if text.startswith(ENTITY_PREFIX):
        constraint = NegativeConstraint("entity", text.removeprefix(ENTITY_PREFIX).strip())
    elif equals:
        constraint = NegativeConstraint("attribute", value.strip(), name.strip())
    else:
        constraint = NegativeConstraint("phrase", text)
    nameless = constraint.kind == "attribute" and not constraint.name
    if nameless or "\0" in text or not any(character.isalnum() for character in constraint.value):
        raise InvalidRequest(
            f"{path} must be entity:ID, NAME=VALUE or a phrase with a word; got {reprlib.repr(text)}", field=path
        )
    return constraint


def written_by_model(items: Sequence[Mapping[str, Any]], source: Source) -> tuple[list[NegativeConstraint], list[str]]:
    """Return the valid constraints of a model's reply, and a note for each other one."""
    valid: list[NegativeConstraint] = []
    notes: list[str] = []
    for item in items:
        kind, name, value = (" ".join(str(item.get(key, "")).split()) for key in ("kind", "name", "value"))
        if kind not in KINDS:
            notes.append(f"a negative constraint was dropped: unknown kind {kind[:40]!r}")
        elif not LEAST_PHRASE <= len(value) <= MAX_VALUE:
            notes.append(f"a negative constraint was dropped: its value has {len(value)} characters, not 3 to {MAX_VALUE}")
        elif kind == "attribute" and not name:
            notes.append(f"a negative constraint was dropped: the value {value[:40]!r} has no attribute")
        else:
            valid.append(NegativeConstraint(KINDS[kind], value, name[:MAX_VALUE] if kind == "attribute" else "", source))
    return valid, notes


def unite_constraints(
    constraints: Sequence[NegativeConstraint], new_constraints: Sequence[NegativeConstraint]
) -> tuple[list[NegativeConstraint], list[str]]:
    """Return ``constraints`` with ``new_constraints``, at most `MAX_CONSTRAINTS`, and a note if some were dropped."""
    merged = list(dict.fromkeys((*constraints, *new_constraints)))
    lost = len(merged) - MAX_CONSTRAINTS
    notes = [f"negative constraints above the limit of {MAX_CONSTRAINTS} were dropped: {lost}"] if lost > 0 else []
    return merged[:MAX_CONSTRAINTS], notes


def against_question(constraint: NegativeConstraint, question: str) -> bool:
    """Return whether a constraint that passages suggested would avoid words of the question itself."""
    return constraint.kind != "entity" and contains_phrase(question, constraint.value)
