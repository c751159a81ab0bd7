"""The methods of extraction by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.knowledge.extraction.base import Extractor, Origin
from agentic_rag_backend.knowledge.extraction.model.by_model import LLM, RULES_AND_LLM, ModelExtractor
from agentic_rag_backend.knowledge.extraction.model.inquiries import ModelExtractionOptions
from agentic_rag_backend.knowledge.extraction.model.temporal import GRAPHITI, TemporalEngine, TemporalExtractor
from agentic_rag_backend.knowledge.model_calls import DocumentModel, ResultRecord, Unrecorded

RULES = "rules"
METHODS = (RULES, LLM, RULES_AND_LLM, GRAPHITI)
NEEDS_MODEL = "needs a language model (LLM=openai); none is configured"
NEEDS_NEO4J = "needs the graph in Neo4j (GRAPH_STORE=neo4j); it is in SQLite"


@dataclass(frozen=True, slots=True)
class ExtractionMethods:
    """Extractors for the methods that documents ask for.

    Args:
        model: None: documents that ask for a model are read by the rules.
        temporal: None: documents that ask for ``graphiti`` are read by the rules.
    """

    rules: Extractor
    model: DocumentModel | None = None
    options: ModelExtractionOptions = field(default_factory=ModelExtractionOptions)
    temporal: TemporalEngine | None = None

    @property
    def has_model(self) -> bool:
        """Whether a language model can be asked."""
        return self.model is not None and self.model.model.generative

    def unavailable(self, method: str) -> str:
        """Return why a method cannot be used. Empty if it can."""
        if method == RULES:
            return ""
        if not self.has_model:
            return NEEDS_MODEL
        return NEEDS_NEO4J if method == GRAPHITI and self.temporal is None else ""

    def availability(self) -> Mapping[str, str]:
        """Return `unavailable` of every method."""
        return {method: self.unavailable(method) for method in METHODS}

    def under(self, ontology: Ontology | None) -> ExtractionMethods:
        """Return the methods under the ontology of a tenant. None: the deployment's."""
        return self if ontology is None else replace(self, options=replace(self.options, ontology=ontology))

    def extractor(self, method: str, record: ResultRecord, origin: Origin | None = None) -> Extractor:
        """Return the extractor of a method. ``record`` holds the replies about the version that it reads."""
        if method == RULES or self.model is None:
            return self.rules
        if method != GRAPHITI:
            everywhere = method == LLM
            return ModelExtractor(rules=self.rules, model=self.model, record=record, options=self.options, everywhere=everywhere)
        if self.temporal is None:
            return self.rules
        return TemporalExtractor(
            rules=self.rules, model=self.model, engine=self.temporal, record=record, options=self.options, origin=origin
        )

    def versions(self) -> Mapping[str, str]:
        """Return the version of each method."""
        return {method: self.extractor(method, Unrecorded()).version for method in METHODS}
