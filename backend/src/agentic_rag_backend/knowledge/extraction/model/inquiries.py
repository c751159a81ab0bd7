"""The request that asks a language model for the entities and relationships of a chunk."""

from __future__ import annotations

from dataclasses import dataclass

from agentic_rag_backend.domain.document import Chunk
from agentic_rag_backend.domain.ontology import EntityType, Ontology, RelationType
from agentic_rag_backend.knowledge.extraction.types.entity_types import OTHER
from agentic_rag_backend.models.llm.base import BOOLEAN, TEXT, Schema, list_of, object_of, one_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.prompts.inquiry import Inquiry

DEFAULT_ONTOLOGY = Ontology(
    tuple(
        map(
            EntityType,
            [
                "person",
                "organisation",
                "place",
                "work",
                "event",
                "product",
                "software",
                "standard",
                "law",
                "form",
                "quantity",
                "concept",
                "date",
            ],
        )
    )
)
PROMPT = "extraction"
_TOKENS_PER_ENTITY, _TOKENS_PER_RELATIONSHIP = 40, 70
_ANY_RELATION = 'a verb phrase in lower case of at most four words, such as "works for", "located in", "acquired"'
MAX_ALIASES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExtractionOptions:
    """Limits of one chunk's knowledge, and the types that the model chooses from."""

    max_entities: int = 10
    max_relationships: int = 15
    ontology: Ontology = DEFAULT_ONTOLOGY

    @property
    def reply_tokens(self) -> int:
        """The maximum length of a reply in tokens."""
        return 100 + _TOKENS_PER_ENTITY * self.max_entities + _TOKENS_PER_RELATIONSHIP * self.max_relationships


def inquiry(title: str, chunk: Chunk, options: ModelExtractionOptions) -> Inquiry:
    about = " – ".join(
        dict.fromkeys(text for text in (title.strip(), *chunk.location.headings, chunk.location.header or "") if text)
    )
    return Inquiry(
        prompt=built_in(PROMPT),
        values={
            "about": fence("about", " ".join(about.split())),
            "passage": fence("passage", chunk.text),
            "types": "; ".join([*map(_describe_type, options.ontology.entity_types), OTHER]),
            "relations": _list_relations(options.ontology),
            "most_entities": str(options.max_entities),
            "most_relationships": str(options.max_relationships),
        },
        schema=_reply_schema(options),
        max_tokens=options.reply_tokens,
        partial=True,
        accepts=lambda reply: all(isinstance(reply.get(name), list) for name in ("entities", "relationships")),
    )


def _reply_schema(options: ModelExtractionOptions) -> Schema:
    type_ = one_of(tuple(dict.fromkeys((*options.ontology.type_names, OTHER))))
    texts = dict.fromkeys(("source", "relation", "target", "valid_at", "invalid_at"), TEXT)
    return object_of(
        {
            "entities": list_of(
                object_of({"name": TEXT, "type": type_, "aliases": list_of(TEXT, MAX_ALIASES)}), options.max_entities
            ),
            "relationships": list_of(object_of({**texts, "negated": BOOLEAN}), options.max_relationships),
        }
    )


def _list_relations(ontology: Ontology) -> str:
    """Return which relations the model may use."""
    if not ontology.relation_types:
        return _ANY_RELATION
    return "one of: " + "; ".join(map(_describe_relation, ontology.relation_types))


def _describe_relation(type_: RelationType) -> str:
    ends = [" or ".join(types) for types in (type_.sources, type_.targets)]
    led = "".join(f" {word} {end}" for word, end in zip(("from", "to"), ends, strict=True) if end)
    return f"{_describe_type(type_)}{f' [{led.strip()}]' if led else ''}"


def _describe_type(type_: EntityType | RelationType) -> str:
    return f"{type_.name} ({type_.description})" if type_.description else type_.name
