"""The port for extraction from episodes: a passage at a time, with what is known before it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.models.llm.base import LanguageModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """A passage. ``about`` has its title and headings.

    ``moment`` is the time of the passage, for words such as "last year". None: unknown.
    """

    chunk_id: str
    title: str
    about: str
    text: str
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity that the memory has, under the name that was asked for."""

    id: str
    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A relationship that the memory has, with the sentence that states it."""

    id: str
    source_id: str
    target_id: str
    relation: str
    fact: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class EpisodeEntity:
    """An entity of an episode, with a type of the ontology, or empty."""

    name: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeFact:
    """A relationship between names of an episode, with its times.

    ``ended``: the episode does not state it, but says that a known fact ended at ``invalid_at``.
    """

    source: str
    relation: str
    target: str
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class EpisodeKnowledge:
    """The result of one episode, not yet compared with its text. Nothing is written."""

    entities: tuple[EpisodeEntity, ...] = ()
    facts: tuple[EpisodeFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeScope:
    """What the episodes of one document share.

    Args:
        model: answers all requests. It limits, counts and records them.
        ontology: the types to choose from.
        known_entities: returns the entities of the tenant with one of these names, under the name as it was asked for.
        known_facts: returns facts that begin or end at one of these entities. Both raise `StoreUnavailable`.
        reply_tokens: the maximum length of a reply in tokens.
    """

    tenant: TenantId
    model: LanguageModel
    known_entities: Callable[[Sequence[str]], Awaitable[Sequence[KnownEntity]]]
    known_facts: Callable[[Sequence[str]], Awaitable[Sequence[KnownFact]]]
    ontology: Ontology
    reply_tokens: int


@dataclass(frozen=True, slots=True)
class EpisodeEngine:
    """An engine that reads episodes.

    Attributes:
        version: the release of the engine and of its adapter; results are kept under it.
        extract: returns the knowledge of one episode. It raises `ModelUnavailable` and `StoreUnavailable`.
    """

    version: str
    extract: Callable[[EpisodeScope, Episode], Awaitable[EpisodeKnowledge]]
