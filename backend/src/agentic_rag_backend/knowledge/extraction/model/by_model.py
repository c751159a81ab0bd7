"""Extraction by a language model: at most one call for a chunk, and nothing that the chunk does not contain.

The rules read every chunk as well. They give the names of titles and headings, short forms of names, and the knowledge of a chunk
for which the model fails.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.document import Chunk, Failure
from agentic_rag_backend.domain.graph import ExtractedRelationship, Extraction, normalise_name
from agentic_rag_backend.knowledge.extraction.base import Extractor
from agentic_rag_backend.knowledge.extraction.model.inquiries import PROMPT, ModelExtractionOptions, inquiry
from agentic_rag_backend.knowledge.extraction.model.replies import read_reply
from agentic_rag_backend.knowledge.extraction.types.entity_types import DATE, OTHER
from agentic_rag_backend.knowledge.model_calls import (
    BUDGET_SPENT,
    INVALID,
    NO_MODEL,
    TOO_LATE,
    Advice,
    DocumentModel,
    ResultRecord,
)
from agentic_rag_backend.prompts import built_in

LLM, RULES_AND_LLM = "llm", "rules+llm"
CUT_OFF = "model_reply_cut_off"
"""Failure code of a reply that reached its limit of tokens."""
_REASONS = {
    NO_MODEL: "no language model is configured",
    BUDGET_SPENT: "the budget of INGESTION_MODEL_MAX_TOKENS is spent",
    INVALID: "the language model gave no usable reply",
    TOO_LATE: "the language model took too long",
}
_REMEDIES = {NO_MODEL: "", BUDGET_SPENT: ""}
"""What to do about a failure, if it is not to retry the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelExtractor:
    """`Extractor` that asks a language model about chunks.

    Args:
        rules: reads every chunk, too.
        record: replies on record, and the budget.
        everywhere: asks about every chunk, and replaces the rules' knowledge. Otherwise it asks about chunks with names that the
            rules do not relate, and adds to the rules' knowledge.
    """

    rules: Extractor
    model: DocumentModel
    record: ResultRecord
    options: ModelExtractionOptions = field(default_factory=ModelExtractionOptions)
    everywhere: bool = True

    @property
    def version(self) -> str:
        """Name of the method, prompt, model, limits and rules."""
        method = LLM if self.everywhere else RULES_AND_LLM
        digest = hashlib.sha256(repr(self.options).encode()).hexdigest()[:12]
        return f"{method}-{built_in(PROMPT).id}-{self.model.name or self.model.model.name}-{digest}+{self.rules.version}"

    async def extract(self, title: str, chunks: Sequence[Chunk]) -> list[Extraction]:
        """Extract from the chunks of one document. A chunk for which the model fails has the rules' knowledge and a failure."""
        extractions = await self.rules.extract(title, chunks)
        numbers = [number for number, extraction in enumerate(extractions) if self.everywhere or _is_worth_a_call(extraction)]
        inquiries = [inquiry(title, chunks[number], self.options) for number in numbers]
        replies = await self.model.ask(inquiries, self.record) if inquiries else []
        for number, advice in zip(numbers, replies, strict=True):
            extractions[number] = self._apply_advice(advice, chunks[number], title, extractions[number])
        return extractions

    def _apply_advice(self, advice: Advice, chunk: Chunk, title: str, by_rules: Extraction) -> Extraction:
        if advice.value is not None:
            by_model = read_reply(advice.value, chunk, title, by_rules, self.options)
            if advice.cut:
                return _completed_by_rules(by_rules, by_model)
            return by_model if self.everywhere else _merge_extractions(by_rules, by_model)
        if not self.everywhere and advice.failure == BUDGET_SPENT:
            return by_rules  # the budget decides how many chunks the model reads
        return by_rules_instead(by_rules, advice.failure)


def by_rules_instead(by_rules: Extraction, code: str) -> Extraction:
    """Return the rules' knowledge of a chunk, with the failure of the model."""
    reason = _REASONS.get(code, "the language model did not answer")
    remedy = _REMEDIES.get(code, "; retry the job to ask the model again")
    message = f"{reason}; rules extracted the entities and relationships instead{remedy}"
    return replace(by_rules, failure=by_rules.failure or Failure("extract", code, message, by_rules.chunk_id))


def _completed_by_rules(by_rules: Extraction, by_model: Extraction) -> Extraction:
    """Return what a reply had before it was cut off, the rules' knowledge, and the failure."""
    message = (
        f"the language model's reply was cut off after {len(by_model.mentions)} mentions and {len(by_model.relationships)} "
        "relationships; the rest is what rules extracted"
    )
    return replace(_merge_extractions(by_rules, by_model), failure=Failure("extract", CUT_OFF, message, by_rules.chunk_id))


def _is_worth_a_call(extraction: Extraction) -> bool:
    """Return whether the rules found two names that they do not relate by a phrase that they know."""
    names = {normalise_name(mention.name) for mention in extraction.mentions if mention.type != DATE and not mention.about}
    related = {
        normalise_name(end)
        for relationship in extraction.relationships
        if relationship.confidence >= 1
        for end in (relationship.source, relationship.target)
    }
    return len(names) > 1 and bool(names - related)


def _merge_extractions(by_rules: Extraction, by_model: Extraction) -> Extraction:
    """Return the knowledge of both. The model decides on the type of a name and on the relation of a pair."""
    types = {
        normalise_name(mention.name): mention.type for mention in by_model.mentions if not mention.about and mention.type != OTHER
    }
    rule_names = {normalise_name(mention.name) for mention in by_rules.mentions}
    pairs = {_pair_of(relationship) for relationship in by_model.relationships}
    mentions = [replace(mention, type=types.get(normalise_name(mention.name), mention.type)) for mention in by_rules.mentions]
    return replace(
        by_rules,
        mentions=(*mentions, *(mention for mention in by_model.mentions if normalise_name(mention.name) not in rule_names)),
        relationships=(
            *by_model.relationships,
            *(relationship for relationship in by_rules.relationships if _pair_of(relationship) not in pairs),
        ),
        aliases=tuple(dict.fromkeys((*by_rules.aliases, *by_model.aliases))),
        rejected=by_model.rejected,
    )


def _pair_of(relationship: ExtractedRelationship) -> frozenset[str]:
    return frozenset((normalise_name(relationship.source), normalise_name(relationship.target)))
