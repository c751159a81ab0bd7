"""Bounds the names of a document that become knowledge, so that no document decides what resolution costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.graph import Extraction, normalise_name


@dataclass(frozen=True, slots=True, kw_only=True)
class NameLimits:
    """Numbers of names that are read; see the settings EXTRACTION_MAX_NAMES_PER_CHUNK and following."""

    names_per_chunk: int = 250
    names_per_document: int = 20_000
    aliases_per_name: int = 100


@dataclass(slots=True)
class LeftOut:
    """Numbers of names and aliases beyond the limits."""

    of_chunks: int = 0
    of_document: int = 0
    aliases: int = 0

    def warnings(self, limits: NameLimits) -> tuple[str, ...]:
        """Return a warning for the document's owner per limit that was exceeded."""
        reasons = (
            (self.of_chunks, "names are", f"a chunk has more than {limits.names_per_chunk} (EXTRACTION_MAX_NAMES_PER_CHUNK)"),
            (
                self.of_document,
                "names are",
                f"the document has more than {limits.names_per_document} (EXTRACTION_MAX_NAMES_PER_DOCUMENT)",
            ),
            (self.aliases, "aliases are", f"a name has more than {limits.aliases_per_name} (EXTRACTION_MAX_ALIASES_PER_NAME)"),
        )
        return tuple(f"{count} {noun} not in the graph: {reason}" for count, noun, reason in reasons if count)


class NameKeys:
    """Normalised forms of names. Each text is normalised once."""

    def __init__(self) -> None:
        self._keys: dict[str, str] = {}

    def __call__(self, name: str) -> str:
        key = self._keys.get(name)
        if key is None:
            key = self._keys[name] = normalise_name(name)
        return key


def limit_names(extractions: Sequence[Extraction], limits: NameLimits, keys: NameKeys, left_out: LeftOut) -> list[Extraction]:
    """Return the extractions without the names beyond the limits, and without what is said about these names.

    The first names of a chunk are kept, its subjects before all others, and the first names of the document.
    """
    document_names: set[str] = set()
    beyond: set[str] = set()
    limited = []
    for extraction in extractions:
        names = _names_of(extraction, keys)
        chunk_names = names[: limits.names_per_chunk]
        left_out.of_chunks += len(names) - len(chunk_names)
        room = limits.names_per_document - len(document_names)
        fresh = [key for key in chunk_names if key not in document_names]
        document_names.update(fresh[:room])
        beyond.update(fresh[room:])
        limited.append(
            extraction
            if len(chunk_names) == len(names) and len(fresh) <= room
            else _restrict_names(extraction, document_names, set(chunk_names), keys)
        )
    left_out.of_document += len(beyond)
    return limited


def _names_of(extraction: Extraction, keys: NameKeys) -> list[str]:
    """Return the normalised names of a chunk in their order, its subjects first."""
    names = dict.fromkeys(keys(mention.name) for mention in extraction.mentions if mention.about)
    names |= dict.fromkeys(keys(mention.name) for mention in extraction.mentions)
    for relationship in extraction.relationships:
        names |= dict.fromkeys((keys(relationship.source), keys(relationship.target)))
    for alias in extraction.aliases:
        names |= dict.fromkeys((keys(alias.name), keys(alias.alias)))
    names.pop("", None)
    return list(names)


def _restrict_names(extraction: Extraction, document_names: set[str], chunk_names: set[str], keys: NameKeys) -> Extraction:
    """Return an extraction with the names that are both ``known`` and ``kept``."""

    def may_keep(*names: str) -> bool:
        return all(keys(name) in chunk_names and keys(name) in document_names for name in names)

    return replace(
        extraction,
        mentions=tuple(mention for mention in extraction.mentions if may_keep(mention.name)),
        relationships=tuple(
            relationship for relationship in extraction.relationships if may_keep(relationship.source, relationship.target)
        ),
        aliases=tuple(alias for alias in extraction.aliases if may_keep(alias.name, alias.alias)),
        descriptions=tuple(description for description in extraction.descriptions if may_keep(description.name)),
    )
