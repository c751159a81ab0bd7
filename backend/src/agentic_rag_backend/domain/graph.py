"""Knowledge: entities, relationships, where each was said, and communities of them."""

from __future__ import annotations

import re
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.document import Failure, stable_id
from agentic_rag_backend.domain.tenant import TenantId

_POSSESSIVE = re.compile(r"(?<=\w)'s\b")
_ASCII_WORD = re.compile(r"[a-z0-9+#_]+")


def name_words(text: str) -> list[str]:
    """Return the words of ``text`` in the form of `normalise_name`, articles included."""
    if text.isascii():
        # The same in a third of the time: all names of a tenant come by here when its graph is loaded.
        text = text.replace(".", "").lower()
        return _ASCII_WORD.findall(_POSSESSIVE.sub("", text) if "'s" in text else text)
    text = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    # Dots go first, so that the ending of "I.B.M.'s" follows a letter.
    text = _POSSESSIVE.sub("", text.replace(".", ""))
    return "".join(character if character.isalnum() or character in "+#_" else " " for character in text).split()


def normalise_name(name: str) -> str:
    """Return the form under which names are compared: NFKC, case-folded, punctuation and runs of spaces as one space.

    Possessive endings and a leading article are dropped, dots inside acronyms too: "The I.B.M.'s" → "ibm".
    """
    words = name_words(name)
    first = next((index for index, word in enumerate(words) if word not in {"the", "a", "an"}), len(words) - 1)
    return " ".join(words[max(first, 0) :])


def spoken(text: str) -> str:
    """Return the words of ``text`` in the form of `normalise_name`, a space around each."""
    return f" {' '.join(name_words(text))} "


def says(text: str, name: str) -> bool:
    """Tell whether ``text`` holds ``name`` word for word, in the form of `normalise_name` if not as it is written."""
    start = text.find(name) if name else -1
    end = start + len(name)
    if start >= 0 and not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
        return True
    wanted = normalise_name(name)
    return bool(wanted) and f" {wanted} " in spoken(text)


def relationship_id(tenant: TenantId, source_id: str, relation: str, target_id: str) -> str:
    """Return the id of the directed, typed relationship between two entities."""
    return stable_id("relationship", tenant, source_id, relation, target_id)


def community_point_id(community_id: str, generation: int) -> str:
    """Return the id of a community's vector in ``generation``; applied to such an id, it returns the community's.

    A community keeps its id from one generation to the next while both have a vector until the pointer flips.
    """
    mask = uuid.UUID(stable_id("community-point", generation)).int
    return str(uuid.UUID(int=uuid.UUID(community_id).int ^ mask))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityMention:
    """A name found in a chunk, before resolution. ``start_char``/``end_char`` are offsets within the chunk's text.

    ``about`` marks a name taken from the document's title or a heading above the chunk: the chunk is *about* it
    (offsets are then 0, 0).
    """

    name: str
    type: str
    start_char: int
    end_char: int
    about: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractedRelationship:
    """A relationship said in one chunk, between two names of it. ``fact`` is the sentence that says so, verbatim."""

    source: str
    source_type: str
    target: str
    target_type: str
    relation: str
    fact: str
    fact_start: int
    fact_end: int
    confidence: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """Two names of one entity, as in "International Business Machines (IBM)"; ``name`` is the canonical one."""

    name: str
    alias: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What one chunk says."""

    chunk_id: str
    mentions: tuple[EntityMention, ...] = ()
    relationships: tuple[ExtractedRelationship, ...] = ()
    aliases: tuple[Alias, ...] = ()
    failure: Failure | None = None
    """Why the chunk says nothing although it might: it is listed with the document, which is then ``partial``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A thing with a name. ``aliases`` are the other names, as written; ``type`` is lower-case, such as "person"."""

    id: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class Support:
    """The passage, in one version of one document, on which a piece of knowledge rests."""

    document_id: str
    version: int
    chunk_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """A directed, typed edge with the sentences that say it; shown only while one of ``supports`` is visible."""

    id: str
    source_id: str
    target_id: str
    relation: str
    fact: str
    weight: float = 1.0
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    supports: tuple[Support, ...] = ()


@dataclass(frozen=True, slots=True)
class Mention:
    """An edge of the chunk–entity graph: ``count`` times in the chunk; ``about`` if the chunk's title or heading names it."""

    entity_id: str
    support: Support
    count: int = 1
    about: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """One version of a document calls an entity by ``name``; ``entity_name`` and ``entity_type`` are what it is filed under."""

    document_id: str
    version: int
    entity_id: str
    name: str
    entity_name: str
    entity_type: str


@dataclass(frozen=True, slots=True)
class ChunkMentions:
    """The mentions of one chunk of a version: places of both lists belong together."""

    support: Support
    entity_ids: Sequence[str]
    about: Sequence[bool]


@dataclass(frozen=True, slots=True)
class DocumentNames:
    """By which names one version of a document calls which entities: places of both lists belong together."""

    document_id: str
    version: int
    entity_ids: Sequence[str]
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Filed:
    """The name and type that an entity is filed under."""

    entity_id: str
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Said:
    """A part of what versions of documents say: the same as mentions and namings, in as few objects as reading it takes."""

    mentions: Sequence[ChunkMentions] = ()
    names: Sequence[DocumentNames] = ()
    filed: Sequence[Filed] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipSupport:
    """One sentence that says a relationship; offsets are within the chunk's text."""

    relationship_id: str
    support: Support
    fact: str
    start_char: int
    end_char: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentKnowledge:
    """Everything one version of a document says, after resolution: written in one step, repeatable without effect."""

    document_id: str
    version: int
    title: str
    chunk_ids: tuple[str, ...]
    entities: tuple[Entity, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    mentions: tuple[Mention, ...] = ()
    relationship_supports: tuple[RelationshipSupport, ...] = ()


@dataclass(frozen=True, slots=True)
class WeightedEdge:
    """An undirected edge between two entities, for community detection; ``weight`` > 0."""

    source_id: str
    target_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One statement of a summary with the chunks it rests on."""

    statement: str
    sources: tuple[Support, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A name or a word that a community goes by, and passages that say it: it is shown while a visible one does.

    Without passages of its own it goes with the prose.
    """

    text: str
    sources: tuple[Support, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Community:
    """A cluster of entities in one generation; level 0 is the coarsest. ``entity_ids`` are its members at any depth."""

    id: str
    generation: int
    level: int
    parent_id: str | None
    entity_ids: tuple[str, ...]
    fingerprint: str
    entity_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunitySummary:
    """What a community is about; found by ``fingerprint``, so that an unchanged community keeps it.

    ``names`` are of its central entities; they make its name unless a model gave it a ``title``.
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
    """Every passage the prose of ``summary`` rests on: once one of them is not visible, the prose is withheld."""
    title: Label | None = None

    @property
    def name(self) -> str:
        """The title, else the names, such as "Halden Institute, Mira Voss and Tidal Array"; empty where there are none."""
        if self.title is not None:
            return self.title.text
        *others, last = [label.text for label in self.names] or [""]
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def keyword_texts(self) -> tuple[str, ...]:
        """The keywords without their passages."""
        return tuple(label.text for label in self.keywords)


@dataclass(frozen=True, slots=True)
class GraphDeletion:
    """What a purge removed from the graph."""

    entities: int = 0
    relationships: int = 0
    mentions: int = 0
    supports: int = 0
    entity_ids: tuple[str, ...] = ()
    """The entities that went, so that what was derived from them (vectors) can go too."""
    relationship_ids: tuple[str, ...] = ()

    def as_counts(self) -> Mapping[str, int]:
        """Return the figures by name, for a receipt."""
        return {
            "entities": self.entities,
            "relationships": self.relationships,
            "mentions": self.mentions,
            "supports": self.supports,
        }
