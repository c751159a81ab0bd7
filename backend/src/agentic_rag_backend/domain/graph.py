"""Knowledge: entities, relationships, the passages that support them, and communities of entities."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Literal

from agentic_rag_backend.domain.document import Failure, stable_id
from agentic_rag_backend.domain.tenant import TenantId

UNDECIDED_TYPES = frozenset({"other", "concept", "acronym"})
"""Types that say nothing about an entity. Another document's type counts instead."""
_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_ASCII_WORD = re.compile(r"[a-z0-9+#_]+")


def name_words(text: str) -> list[str]:
    """Return the words of ``text`` in the form of `normalise_name`, articles included."""
    if text.isascii():
        # Same result in a third of the time: loading a tenant's graph calls this for every name.
        text = text.replace(".", "").lower()
        return _ASCII_WORD.findall(_POSSESSIVE.sub("", text) if "'s" in text else text)
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    # Dots are removed first, so that the ending of "I.B.M.'s" follows a letter.
    text = _POSSESSIVE.sub("", text.replace(".", ""))
    return "".join(character if character.isalnum() or character in "+#_" else " " for character in text).split()


def normalise_name(name: str) -> str:
    """Return the form that names are compared in: NFKC, case-folded, punctuation and runs of spaces as one space.

    Possessive endings, a leading article and dots in acronyms are dropped: "The I.B.M.'s" → "ibm".
    """
    words = name_words(name)
    first_word = next((index for index, word in enumerate(words) if word not in {"the", "a", "an"}), len(words) - 1)
    return " ".join(words[max(first_word, 0) :])


def type_key(type_name: str) -> str:
    """Return the form that types of entities are compared in, in either English spelling: "Organization" → "organisation"."""
    return "_".join(name_words(type_name)).replace("ization", "isation")


def padded_words(text: str) -> str:
    """Return the words of ``text`` in the form of `normalise_name`, with a space around each."""
    return f" {' '.join(name_words(text))} "


def contains_name(text: str, name: str) -> bool:
    """Return whether ``text`` contains ``name`` word for word, as written or in the form of `normalise_name`."""
    start = text.find(name) if name else -1
    end = start + len(name)
    if start >= 0 and not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
        return True
    normalised = normalise_name(name)
    return bool(normalised) and f" {normalised} " in padded_words(text)


def relationship_id(tenant: TenantId, source_id: str, relation: str, target_id: str) -> str:
    """Return the id of the directed, typed relationship between two entities."""
    return stable_id("relationship", tenant, source_id, relation, target_id)


def placeholder_name(community_id: str) -> str:
    """Return the name of a community whose own name has words of hidden passages."""
    return f"Theme {community_id[:8]}"


def community_point_id(community_id: str, generation: int) -> str:
    """Return the id of a community's vector in ``generation``. Applied to a vector id, it returns the community's id.

    A community keeps its id across generations. Until the pointer changes, both generations have a vector for it.
    """
    return str(uuid.UUID(int=uuid.UUID(community_id).int ^ _generation_mask(generation)))


@lru_cache(maxsize=1024)
def _generation_mask(generation: int) -> int:
    return uuid.UUID(stable_id("community-point", generation)).int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """A name found in a chunk, before entity resolution. ``start_char`` and ``end_char`` are offsets in the chunk's text.

    ``about`` marks a name from the document's title or from a heading above the chunk: the chunk is *about* it. The offsets
    are then 0, 0.
    """

    name: str
    type: str
    start_char: int
    end_char: int
    about: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedRelationship:
    """A relationship between two names of one chunk. ``fact`` is the text that states it, verbatim.

    It holds from ``valid_at`` until ``invalid_at``, ISO 8601 times in UTC. None: the passage does not say.
    """

    source: str
    source_type: str
    target: str
    target_type: str
    relation: str
    fact: str
    fact_start: int
    fact_end: int
    confidence: float = 1.0
    valid_at: str | None = None
    invalid_at: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Two names of one entity, as in "International Business Machines (IBM)"; ``name`` is the canonical one."""

    name: str
    alias: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NameDescription:
    """What a chunk says about the bearer of a name: "oceanographer; born 1976". See `language.descriptions`."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Knowledge extracted from one chunk.

    ``rejected`` counts the names and relationships of a language model that the chunk does not contain.
    """

    chunk_id: str
    mentions: tuple[EntityMention, ...] = ()
    relationships: tuple[ExtractedRelationship, ...] = ()
    aliases: tuple[Alias, ...] = ()
    descriptions: tuple[NameDescription, ...] = ()
    rejected: int = 0
    failure: Failure | None = None
    """Reason why the extraction failed. It is listed with the document, and the document becomes ``partial``."""


NameMark = Literal["", "label", "deleted"]
"""Effect of an edit on a name: ``label``, an editor chose it to label the entity; ``deleted``, an editor deleted the entity."""


@dataclass(frozen=True, slots=True)
class OtherName:
    """What a document says about another name of an entity than the first one.

    ``full`` is the name of which the document gives it as an alias. It is empty if the document uses both names without saying
    that they are one entity; the name then has a type and a description of its own. ``assigned`` is the id of the entity that the
    name would mean without edits; empty: the entity that it means. An editor's name with neither ``full`` nor ``type`` is none of
    the document's.
    """

    name: str
    full: str = ""
    type: str = ""
    description: str = ""
    assigned: str = ""
    mark: NameMark = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A named object. ``aliases`` are its other names as written; ``type`` is in lower case, such as "person".

    The last three are only written. ``other_names`` are details of aliases; an alias without them is one of ``name``. For
    ``assigned`` and ``mark`` see `OtherName`.
    """

    id: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    other_names: tuple[OtherName, ...] = ()
    assigned: str = ""
    mark: NameMark = ""


@dataclass(frozen=True, slots=True)
class EntityRef:
    """An entity in a result. ``description`` says who it is, if several entities have its name: "nurse; female"."""

    id: str
    name: str
    type: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """The passage of a document version that supports a piece of knowledge."""

    document_id: str
    version: int
    chunk_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A directed, typed edge with a sentence that states it. Shown only while one of ``supports`` is visible."""

    id: str
    source_id: str
    target_id: str
    relation: str
    fact: str
    weight: float = 1.0
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    supports: tuple[Support, ...] = ()


Direction = Literal["any", "out", "in"]
"""Direction of relationships as an entity sees them: ``out`` begins at the entity, ``in`` ends there."""


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A relationship without the passages that state it.

    ``weight`` is the sum over all documents of the largest weight in any version. That of visible passages is at most as large.
    """

    id: str
    source_id: str
    target_id: str
    relation: str
    weight: float


@dataclass(frozen=True, slots=True)
class Mention:
    """An edge of the chunk–entity graph: ``count`` occurrences in the chunk. ``about`` if its heading names the entity."""

    entity_id: str
    support: Support
    count: int = 1
    about: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """A name that a document version uses for an entity. ``entity_name`` and ``entity_type`` are the entity's label.

    ``said`` is what the version says about the name, such as its type, and of which name it is an alias.
    """

    document_id: str
    version: int
    entity_id: str
    name: str
    entity_name: str
    entity_type: str
    said: OtherName | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameUse:
    """A document version that calls an entity by a name.

    ``main`` is the version's main name of the entity. If ``name`` is another one, the version gives it as an alias. ``type`` and
    ``description`` are the version's. ``assigned_id`` is the entity that the name would mean without edits.
    """

    document_id: str
    version: int
    entity_id: str
    name: str
    main: str
    type: str
    description: str = ""
    assigned_id: str


UseKind = Literal["main", "alias", "described"]
"""Uses of a name as the main name, as an alias, or as the main name with a description."""


@dataclass(frozen=True, slots=True)
class ChunkMentions:
    """The mentions of one chunk of a version, as two parallel lists."""

    support: Support
    entity_ids: Sequence[str]
    about: Sequence[bool]


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """The names that one document version uses for entities, as two parallel lists."""

    document_id: str
    version: int
    entity_ids: Sequence[str]
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class EntityLabel:
    """The name and type that label an entity."""

    entity_id: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class KnowledgeBatch:
    """A batch of mentions and names of document versions. It holds the same as `Mention` and `Naming`, in fewer objects."""

    mentions: Sequence[ChunkMentions] = ()
    names: Sequence[DocumentNames] = ()
    labels: Sequence[EntityLabel] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipSupport:
    """One sentence that states a relationship. Offsets are positions in the chunk's text."""

    relationship_id: str
    support: Support
    fact: str
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact(RelationshipSupport):
    """A sentence as the graph store returns it, with the relationship's weight and validity in that document version."""

    weight: float = 1.0
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKnowledge:
    """The resolved knowledge of one document version. It is written in one step, and writing it again has no effect."""

    document_id: str
    version: int
    title: str
    chunk_ids: tuple[str, ...]
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    mentions: tuple[Mention, ...] = ()
    relationship_supports: tuple[RelationshipSupport, ...] = ()
    unsettled: frozenset[str] = frozenset()
    """Normalised names that may now mean other entities in other documents. Not written."""
    warnings: tuple[str, ...] = ()
    """What the limits left out, for the document's owner. Not written."""


@dataclass(frozen=True, slots=True)
class WeightedEdge:
    """An undirected edge between two entities, for community detection; ``weight`` > 0."""

    source_id: str
    target_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement of a summary, with the chunks that support it."""

    statement: str
    sources: tuple[Support, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A name or keyword of a community, with the passages that contain it. It is shown while one of these is visible.

    A label without passages is shown and withheld together with the prose.
    """

    text: str
    sources: tuple[Support, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Community:
    """A cluster of entities in one generation. Level 0 is the coarsest. ``entity_ids`` are its members at any depth."""

    id: str
    generation: int
    level: int
    parent_id: str | None
    entity_ids: tuple[str, ...]
    fingerprint: str
    entity_count: int


def join_names(names: Sequence[str]) -> str:
    """Return an enumeration: "a, b and c", or "a; b, with c; d" if a name has a comma, a colon or an "and" of its own."""
    if any("," in name or ":" in name or " and " in name for name in names):
        return "; ".join(names)
    *other_names, last_name = names or [""]
    return f"{', '.join(other_names)} and {last_name}" if other_names else last_name


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunitySummary:
    """Summary of a community, identified by ``fingerprint``. An unchanged community keeps its summary.

    ``names`` are the names of its central entities. They form its name unless a model wrote a ``title``.
    """

    fingerprint: str
    names: tuple[Label, ...]
    summary: str
    keywords: tuple[Label, ...]
    findings: tuple[Finding, ...]
    rating: float
    model: str
    prompt_version: str
    tokens: int = 0
    sources: tuple[Support, ...] = ()
    """All passages that support the prose of ``summary``. If one of them is not visible, the prose is withheld."""
    title: Label | None = None

    @property
    def name(self) -> str:
        """The title, or the names, such as "Halden Institute, Mira Voss and Tidal Array". Empty without either."""
        return self.title.text if self.title is not None else join_names([label.text for label in self.names])

    @property
    def keyword_texts(self) -> tuple[str, ...]:
        """The keywords without their passages."""
        return tuple(label.text for label in self.keywords)


@dataclass(frozen=True, slots=True)
class GraphDeletion:
    """Counts and ids of the items that a deletion removed from the graph."""

    entities: int = 0
    relationships: int = 0
    mentions: int = 0
    supports: int = 0
    entity_ids: tuple[str, ...] = ()
    """The removed entities. Stores use them to remove derived data such as vectors."""
    relationship_ids: tuple[str, ...] = ()
