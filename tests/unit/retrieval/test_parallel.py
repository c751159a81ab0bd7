"""Searches at the same time: whose errors end all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentic_rag_backend.domain.query import Query, Retrieval, Trace
from agentic_rag_backend.errors import AgenticRagError, FeatureDisabled, InvalidRequest, StoreUnavailable
from agentic_rag_backend.retrieval.legs import search_all

Ask = Callable[..., Query]


async def finds() -> Retrieval:
    return Retrieval(hits=(), trace=Trace(strategy="dense"))


async def fails(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize("error", [InvalidRequest("wrong"), FeatureDisabled("switched off")])
async def test_a_search_that_refuses_the_request_refuses_all(query: Ask, error: AgenticRagError) -> None:
    with pytest.raises(type(error)):
        await search_all(query(), {"dense": finds(), "other": fails(error)})


@pytest.mark.parametrize(("error", "code"), [(StoreUnavailable("away"), "store_unavailable"), (KeyError("a"), "KeyError")])
async def test_a_search_that_fails_leaves_the_others(query: Ask, error: Exception, code: str) -> None:
    outcome = await search_all(query(), {"dense": finds(), "other": fails(error)})
    assert list(outcome.found) == ["dense"]
    assert outcome.failed == {"other": code}
    with pytest.raises(type(error)):
        await search_all(query(), {"other": fails(error)})
