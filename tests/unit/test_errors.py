"""Classes of errors are found by their code."""

from __future__ import annotations

from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelRateLimited,
    ResourceLimit,
    StoreUnavailable,
    UnreadableDocument,
    error_class,
)


def test_a_code_has_its_class() -> None:
    for error in (AgenticRagError, ModelRateLimited, ResourceLimit, StoreUnavailable, UnreadableDocument):
        assert error_class(error.code) is error


def test_an_unknown_code_has_no_class() -> None:
    assert error_class("nothing_of_the_kind") is None
