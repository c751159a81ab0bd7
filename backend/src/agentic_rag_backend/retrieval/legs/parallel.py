"""Runs several searches at the same time. A search that fails does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass

from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

SERVER_ERRORS = 500
"""HTTP status from which on an error is the server's. Errors below are the caller's."""


@dataclass(frozen=True, slots=True)
class LegOutcome:
    """The searches that succeeded, by name, and the code of the error of each other one."""

    found: Mapping[str, Retrieval]
    failed: Mapping[str, str]


async def search_all(query: Query, searches: Mapping[str, Awaitable[Retrieval]]) -> LegOutcome:
    """Run searches by name, and return those that succeeded, in the order of ``searches``.

    Raises:
        AgenticRagError: a search refused the request, such as `InvalidRequest` or `FeatureDisabled`.
        AgenticRagError: all searches failed. It is the error of the first one.
    """
    outcomes = await asyncio.gather(*searches.values(), return_exceptions=True)
    retrievals: dict[str, Retrieval] = {}
    failed: dict[str, str] = {}
    for name, outcome in zip(searches, outcomes, strict=True):
        if isinstance(outcome, Retrieval):
            retrievals[name] = outcome
            continue
        if not isinstance(outcome, Exception) or (isinstance(outcome, AgenticRagError) and outcome.status < SERVER_ERRORS):
            raise outcome
        failed[name] = outcome.code if isinstance(outcome, AgenticRagError) else type(outcome).__name__
        _log.error("inner_search_failed", tenant_id=query.tenant_id.value, code=failed[name], exc_info=outcome)
    if not retrievals:
        raise next(outcome for outcome in outcomes if isinstance(outcome, Exception))
    return LegOutcome(retrievals, failed)
