"""Reads what a language model extracted from a chunk. What the chunk does not contain is rejected and counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.graph import Alias, EntityMention, ExtractedRelationship, Extraction, name_words, normalise_name
from agentic_rag_backend.knowledge.extraction.lexicon import FUNCTION_WORDS
from agentic_rag_backend.knowledge.extraction.model.grounding import GroundedText, Place, is_name, outermost
from agentic_rag_backend.knowledge.extraction.model.inquiries import MAX_ALIASES, ModelExtractionOptions
from agentic_rag_backend.knowledge.extraction.names.aliases import is_acronym_of
from agentic_rag_backend.knowledge.extraction.relations.relations import RELATED
from agentic_rag_backend.knowledge.extraction.types.entity_types import DATE, OTHER
from agentic_rag_backend.knowledge.relation_types import NEGATION, relation_key
from agentic_rag_backend.language.times import period_of
from agentic_rag_backend.models.llm.base import objects_in

MAX_RELATION_CHARACTERS = 64
_End = tuple[str, str, list[Place]]
"""An end of a relationship: name, type and places."""


def read_reply(
    reply: Mapping[str, Any], chunk: Chunk, title: str, by_rules: Extraction, options: ModelExtractionOptions
) -> Extraction:
    """Return the part of a reply that the chunk contains. Mentions by title and headings, and short forms, are the rules'."""
    return _Reading(chunk, title, by_rules, options).read(reply)


@dataclass(slots=True)
class _Named:
    """An entity of a reply: its name as the model wrote it, and the places of its names in the chunk."""

    name: str
    type: str
    forms: dict[str, list[Place]]
    related: int = 0


class _Reading:
    """Reads one reply. Names are compared in the form of `normalise_name`."""

    def __init__(self, chunk: Chunk, title: str, by_rules: Extraction, options: ModelExtractionOptions) -> None:
        self._chunk = chunk
        self._options = options
        self._rules = by_rules
        self._types = {normalise_name(mention.name): mention.type for mention in by_rules.mentions}
        self._subjects = [mention.name for mention in by_rules.mentions if mention.about]
        self._context = " \n".join((title, *chunk.location.headings, chunk.location.header or ""))
        self._named: dict[str, _Named] = {}
        """By every form of a name."""
        self._rejected = 0

    @cached_property
    def _text(self) -> GroundedText:
        return GroundedText(self._chunk.text)

    @cached_property
    def _above(self) -> GroundedText:
        return GroundedText(self._context)

    def read(self, reply: Mapping[str, Any]) -> Extraction:
        for item in objects_in(reply, "entities"):
            self._add_entity(item)
        relationships = [
            relationship
            for item in objects_in(reply, "relationships")
            if (relationship := self._read_relationship(item)) is not None
        ]
        names = self._select_names(relationships)
        relationships = [
            relationship
            for relationship in relationships
            if normalise_name(relationship.source) in names and normalise_name(relationship.target) in names
        ][: self._options.max_relationships]
        return Extraction(
            chunk_id=self._chunk.id,
            mentions=tuple(
                chain((relationship for relationship in self._rules.mentions if relationship.about), self._list_mentions(names))
            ),
            relationships=tuple(relationships),
            aliases=tuple(dict.fromkeys(chain(self._list_aliases(names), self._rules_aliases(names)))),
            rejected=self._rejected,
        )

    # --- entities

    def _add_entity(self, item: Mapping[str, Any]) -> None:
        name = _to_text(item.get("name"))
        places = self._text.places(name) if is_name(name) else []
        if not places:
            # The title may name an entity that the passage calls "it". The rules mention it already.
            self._rejected += not (is_name(name) and self._above.places(name))
            return
        key = normalise_name(name)
        entity = self._named.setdefault(key, _Named(name, self._choose_type(key, item.get("type")), {}))
        entity.forms.setdefault(name, places)
        aliases = item.get("aliases")
        for alias in aliases[:MAX_ALIASES] if isinstance(aliases, list) else ():
            form = _to_text(alias)
            at = self._text.places(form) if _may_be_alias(name, form) else []
            self._rejected += not at
            if at and self._named.setdefault(normalise_name(form), entity) is entity:
                entity.forms.setdefault(form, at)

    def _choose_type(self, key: str, reply_type: object) -> str:
        """Return the type that the model gives if it may. A date that the rules recognise stays a date."""
        type_ = str(reply_type or "").strip().lower()
        by_rules = self._types.get(key, OTHER)
        if by_rules == DATE or type_ not in self._options.ontology.type_names:
            return by_rules
        return type_

    def _find_end(self, value: object) -> _End | None:
        """Return name, type and places of an end of a relationship: an entity of the reply, of the rules, or of the title."""
        name = _to_text(value)
        key = normalise_name(name)
        if key in self._named:
            entity = self._named[key]
            return entity.name, entity.type, [span for places in entity.forms.values() for span in places]
        if key in self._types and is_name(name):
            places = self._text.places(name)
            subject = next((subject for subject in self._subjects if normalise_name(subject) == key), None)
            if places:
                self._named[key] = _Named(name, self._types[key], {name: places})
            if places or subject is not None:
                return name if places else subject or name, self._types[key], places
        return None

    # --- relationships

    def _read_relationship(self, item: Mapping[str, Any]) -> ExtractedRelationship | None:
        source, target = self._find_end(item.get("source")), self._find_end(item.get("target"))
        relation = _read_relation(item)
        if source is not None and target is not None:
            source, target = self._direct_ends(relation, source, target)
        statement = None
        if source is not None and target is not None and normalise_name(source[0]) != normalise_name(target[0]):
            statement = self._text.statement(source[2], target[2], relation)
        if source is None or target is None or statement is None:
            self._rejected += 1
            return None
        return ExtractedRelationship(
            source=source[0],
            source_type=source[1],
            target=target[0],
            target_type=target[1],
            relation=relation,
            fact=self._chunk.text[statement.start : statement.end],
            fact_start=statement.start,
            fact_end=statement.end,
            confidence=statement.sureness,
            valid_at=self._read_time(item.get("valid_at"), 0),
            invalid_at=self._read_time(item.get("invalid_at"), 1),
        )

    def _direct_ends(self, relation: str, source: _End, target: _End) -> tuple[_End | None, _End | None]:
        """Return the ends in the direction that the ontology allows. None: the relationship is not allowed.

        A model that confuses the ends is corrected where their types tell.
        """
        types = self._options.ontology.relation_types
        if not types:
            return source, target
        type_ = next(
            (relation_type for relation_type in types if relation_key(relation_type.name) == relation.removeprefix(NEGATION)),
            None,
        )
        if type_ is not None and type_.joins_types(source[1], target[1]):
            return source, target
        return (target, source) if type_ is not None and type_.joins_types(target[1], source[1]) else (None, None)

    def _read_time(self, value: object, end: int) -> str | None:
        """Return the beginning (0) or the end (1) of a date, if its year is in the passage, its title or headings."""
        period = period_of(_to_text(value))
        if period is None:
            return None
        year = f"{period[0].year:04d}"
        return period[end].isoformat() if year in self._chunk.text or year in self._context else None

    # --- limits

    def _select_names(self, relationships: Iterable[ExtractedRelationship]) -> frozenset[str]:
        """Return the keys of the names that stay: names before dates, then those with most relationships, then the first ones."""
        degree = Counter(
            chain.from_iterable(
                (normalise_name(relationship.source), normalise_name(relationship.target)) for relationship in relationships
            )
        )
        entities = {id(entity): entity for entity in self._named.values()}.values()
        ranked = sorted(entities, key=lambda entity: (_is_date(entity), -degree[normalise_name(entity.name)]))[
            : self._options.max_entities
        ]
        subjects = (normalise_name(subject) for subject in self._subjects)
        return frozenset(chain((normalise_name(entity.name) for entity in ranked), subjects))

    # --- results

    def _entities_of(self, names: frozenset[str]) -> list[_Named]:
        entities = {id(entity): entity for entity in self._named.values()}.values()
        return [entity for entity in entities if normalise_name(entity.name) in names]

    def _list_mentions(self, names: frozenset[str]) -> Iterator[EntityMention]:
        entities = self._entities_of(names)
        places = outermost({form: places for entity in entities for form, places in entity.forms.items()})
        for entity in entities:
            for form in entity.forms:
                for start, end in places[form]:
                    text = self._chunk.text[start:end]
                    yield EntityMention(name=text, type=entity.type, start_char=start, end_char=end)

    def _list_aliases(self, names: frozenset[str]) -> Iterator[Alias]:
        for entity in self._entities_of(names):
            for form in entity.forms:
                if normalise_name(form) != normalise_name(entity.name):
                    yield Alias(name=entity.name, alias=form, type=entity.type)

    def _rules_aliases(self, names: frozenset[str]) -> Iterator[Alias]:
        """Yield the rules' aliases of kept names."""
        for alias in self._rules.aliases:
            key = normalise_name(alias.name)
            if key in names or normalise_name(alias.alias) in names:
                entity = self._named.get(key)
                yield replace(alias, type=entity.type) if entity is not None else alias


def _is_date(entity: _Named) -> bool:
    return entity.type == DATE or not any(character.isalpha() for character in entity.name)


def _may_be_alias(name: str, form: str) -> bool:
    """Return whether two names of a passage may name one entity: they share a word, or one abbreviates the other.

    Without this check, a wrong alias would merge two entities of a tenant.
    """
    if not is_name(form):
        return False
    words, form_words = name_words(name), name_words(form)
    shared = {word for word in words if word in form_words and word not in FUNCTION_WORDS}
    return bool(shared) or is_acronym_of(form, name.split()) or is_acronym_of(name, form.split())


def _read_relation(item: Mapping[str, Any]) -> str:
    """Return the type of a relationship: words in lower case joined by ``_``."""
    words = "_".join(name_words(_to_text(item.get("relation"))))[:MAX_RELATION_CHARACTERS].strip("_") or RELATED
    return f"{NEGATION}{words}" if item.get("negated") is True and not words.startswith(NEGATION) else words


def _to_text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""
