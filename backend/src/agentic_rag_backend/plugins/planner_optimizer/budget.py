"""A language model whose requests are counted and limited."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace

from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.models.llm.base import LanguageModel, ModelDelta, ModelReply, ModelRequest


class BudgetSpent(Exception):
    """No request to the model is left. It is no `AgenticRagError`, because nothing may fall back for it."""


class BudgetedModel:
    """Another model, asked at most ``max_calls`` times.

    Retries count. Only those of the requests in flight may exceed the limit. All calls are made on one event loop.

    Args:
        max_calls: at least 1.
    """

    def __init__(self, model: LanguageModel, max_calls: int) -> None:
        self._model = model
        self._max_calls = max_calls
        self._in_flight = 0
        self._account = UsageAccount()

    @property
    def generative(self) -> bool:
        """Whether the model writes text."""
        return self._model.generative

    @property
    def name(self) -> str:
        """The model that is used if a request names none."""
        return self._model.name

    @property
    def usage(self) -> Usage:
        """The consumption so far."""
        return self._account.usage

    def end(self) -> None:
        """Refuse all further requests."""
        self._max_calls = 0

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the reply.

        Raises:
            BudgetSpent: no request is left.
            ModelUnavailable: as the model itself.
        """
        if self.usage.calls + self._in_flight >= self._max_calls:
            raise BudgetSpent(f"all {self._max_calls} requests to the model were made")
        account = UsageAccount(request.account)
        self._in_flight += 1
        try:
            return await self._model.complete(replace(request, account=account))
        finally:
            self._in_flight -= 1
            self._account.add_usage(account.usage)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Refuse: no caller needs streams."""
        raise NotImplementedError("a budgeted model answers in one piece")

    async def close(self) -> None:
        """Do nothing: the model belongs to the caller."""
