"""The methods of extraction by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentic_rag_backend.domain.ontology import Ontology
from agentic_rag_backend.knowledge.extraction.base import Extractor
from agentic_rag_backend.knowledge.extraction.by_model import LLM, RULES_AND_LLM, ModelExtractor
from agentic_rag_backend.knowledge.extraction.inquiries import ModelExtractionOptions
from agentic_rag_backend.knowledge.model_calls import DocumentModel, ResultRecord, Unrecorded

RULES = "rules"
METHODS = (RULES, LLM, RULES_AND_LLM)


@dataclass(frozen=True, slots=True)
class ExtractionMethods:
    """Extractors for the methods that documents ask for.

    Args:
        model: None: documents that ask for a model are read by the rules.
    """

    rules: Extractor
    model: DocumentModel | None = None
    options: ModelExtractionOptions = field(default_factory=ModelExtractionOptions)

    @property
    def has_model(self) -> bool:
        """Whether a language model can be asked."""
        return self.model is not None and self.model.model.generative

    def under(self, ontology: Ontology | None) -> ExtractionMethods:
        """Return the methods under the ontology of a tenant. None: the deployment's."""
        return self if ontology is None else replace(self, options=replace(self.options, ontology=ontology))

    def extractor(self, method: str, record: ResultRecord) -> Extractor:
        """Return the extractor of a method. ``record`` holds the replies about the version that it reads."""
        if method == RULES or self.model is None:
            return self.rules
        return ModelExtractor(rules=self.rules, model=self.model, record=record, options=self.options, everywhere=method == LLM)

    def versions(self) -> Mapping[str, str]:
        """Return the version of each method."""
        return {method: self.extractor(method, Unrecorded()).version for method in METHODS}
