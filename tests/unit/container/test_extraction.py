"""Which methods of extraction a configuration offers, and what it says about the others."""

from __future__ import annotations

from typing import Any

import pytest
from reading_models import ReadingModel

from agentic_rag_backend.container.adapters import _temporal_engine
from agentic_rag_backend.container.options import extraction_method, extraction_methods
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import ConfigurationError, InvalidRequest
from agentic_rag_backend.ingestion.accept.uploads import Upload, UploadCheck
from agentic_rag_backend.knowledge.extraction.methods import METHODS, NEEDS_MODEL, NEEDS_NEO4J, ExtractionMethods
from agentic_rag_backend.knowledge.extraction.model.temporal import TemporalExtractor
from agentic_rag_backend.knowledge.extraction.rules import RuleExtractor
from agentic_rag_backend.knowledge.model_calls import Unrecorded
from agentic_rag_backend.models.llm.base import ExtractiveModel, LanguageModel
from agentic_rag_backend.settings import Settings

NEO4J = {"graph_store": "neo4j", "neo4j_uri": "bolt://127.0.0.1:1"}
MODEL = {"llm": "openai", "openai_api_key": "any"}
ANY: Any = object()


class Stores:
    """The catalogue and the graph, which are not read."""

    documents = ANY


def methods(**named: Any) -> ExtractionMethods:
    settings = Settings(_env_file=None, **named)
    model: LanguageModel = ReadingModel() if settings.llm == "openai" else ExtractiveModel()
    engine = _temporal_engine(settings, ANY, Stores())  # type: ignore[arg-type]
    return extraction_methods(settings, RuleExtractor(), model, engine)


@pytest.mark.parametrize(
    ("named", "unavailable"),
    [
        ({}, dict.fromkeys(("llm", "rules+llm", "graphiti"), NEEDS_MODEL)),
        (NEO4J, dict.fromkeys(("llm", "rules+llm", "graphiti"), NEEDS_MODEL)),
        (MODEL, {"graphiti": NEEDS_NEO4J}),
        ({**NEO4J, **MODEL}, {}),
    ],
    ids=["embedded", "neo4j", "model", "both"],
)
async def test_a_method_says_what_it_needs_and_an_upload_that_asks_for_it_is_refused(
    named: dict[str, Any], unavailable: dict[str, str]
) -> None:
    offered = methods(**named)
    assert {name: reason for name, reason in offered.availability().items() if reason} == unavailable
    check = UploadCheck(ANY, 1, extraction="rules", methods=offered, questions=ANY)
    for method in METHODS:
        upload = Upload(content=b"text", extraction=method)
        if method in unavailable:
            with pytest.raises(InvalidRequest, match="extraction '" + method.replace("+", r"\+") + "' needs"):
                await check.make_submission(TenantId("t_" + "a" * 32), upload)
        else:
            assert check.choose_method(method) == method


def test_a_default_that_cannot_work_fails_the_start() -> None:
    for named, reason in [
        ({}, "needs a language model|GRAPH_STORE=neo4j"),
        (NEO4J, "needs a language model"),
        (MODEL, "GRAPH_STORE=neo4j"),
    ]:
        with pytest.raises(ConfigurationError, match=reason):
            extraction_method(Settings(_env_file=None, extraction="graphiti", **named))
        assert extraction_method(Settings(_env_file=None, extraction="graphiti", **NEO4J, **MODEL)) == "graphiti"


def test_a_document_of_another_deployment_is_read_by_the_rules_where_its_method_is_missing() -> None:
    """Its archive, or its message with attachments, may name the method."""
    without, both = methods(**MODEL), methods(**NEO4J, **MODEL)

    assert without.extractor("graphiti", Unrecorded()) is without.rules
    assert isinstance(both.extractor("graphiti", Unrecorded()), TemporalExtractor)
    assert len(set(both.versions().values())) == len(METHODS)
