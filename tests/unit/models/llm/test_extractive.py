"""The choice of no language model."""

from __future__ import annotations

import pytest

from agentic_rag_backend.errors import ModelReplyInvalid
from agentic_rag_backend.models.llm.base import ExtractiveModel, ModelRequest


async def test_every_request_is_refused() -> None:
    model, request = ExtractiveModel(), ModelRequest(prompt="x@1", messages=())
    assert not model.generative
    with pytest.raises(ModelReplyInvalid, match="LLM=extractive"):
        await model.complete(request)
    with pytest.raises(ModelReplyInvalid, match="LLM=extractive"):
        await anext(model.stream(request))
