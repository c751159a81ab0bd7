"""Classes of errors are found by their code, and errors have the field that they are about."""

from __future__ import annotations

import pytest

from agentic_rag_backend.errors import (
    AgenticRagError,
    InvalidRequest,
    ModelRateLimited,
    ResourceLimit,
    StoreUnavailable,
    UnreadableDocument,
    error_class,
    in_field,
)


def test_a_code_has_its_class() -> None:
    for error in (AgenticRagError, ModelRateLimited, ResourceLimit, StoreUnavailable, UnreadableDocument):
        assert error_class(error.code) is error


def test_an_unknown_code_has_no_class() -> None:
    assert error_class("nothing_of_the_kind") is None


def test_nested_fields_make_a_path() -> None:
    with pytest.raises(InvalidRequest) as refused, in_field("options"), in_field("weights"):
        raise InvalidRequest("must be a number", field="dense")
    assert (refused.value.field, str(refused.value)) == ("options.weights.dense", "must be a number")
    assert InvalidRequest("wrong").field is None
