"""Asks a language model for a JSON object within a time limit. Failures are returned, not raised: callers have a fallback."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelRequest
from agentic_rag_backend.models.pace import MOST
from agentic_rag_backend.prompts import Prompt
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

TOO_LATE = "model_timeout"
"""Failure code of a timeout. Other failures have the code of their error."""


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """The object, or None and the failure code. ``usage`` counts all attempts, including failed ones."""

    parsed: Mapping[str, Any] | None
    usage: Usage
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class StructuredCalls:
    """Calls of one model.

    Args:
        model_name: name of the model; None: the model's default.
        timeout_s: time limit of one call in seconds, including retries, from the moment it is sent. A reply that keeps arriving
            may take `models.pace.MOST` times as long, within the request's time.
    """

    model: LanguageModel
    model_name: str | None = None
    timeout_s: float = 20.0

    @property
    def possible(self) -> bool:
        """Whether the model writes text. The extractive model only selects sentences."""
        return self.model.generative

    async def ask(
        self,
        prompt: Prompt,
        values: Mapping[str, str],
        schema: Mapping[str, Any],
        *,
        max_tokens: int = 700,
        account: UsageAccount | None = None,
    ) -> StructuredReply:
        """Return the reply. Untrusted text in ``values`` must already be fenced.

        Args:
            account: counts the attempts while they are made, so that they are also counted if the caller cancels the call.
        """
        system, user = prompt.render(values)
        request = ModelRequest(
            prompt=prompt.id,
            messages=(Message("system", system), Message("user", user)),
            schema=schema,
            model=self.model_name,
            max_tokens=max_tokens,
            timeout_s=self.timeout_s,
            account=UsageAccount(account),
        )
        try:
            async with asyncio.timeout((1 + MOST) * self.timeout_s):  # for models without a clock of their own
                reply = await self.model.complete(request)
        except TimeoutError:
            _log.warning("structured_call_failed", prompt=prompt.id, code=TOO_LATE, timeout_s=self.timeout_s)
            return StructuredReply(None, request.account.usage, TOO_LATE)
        except ModelUnavailable as error:
            _log.warning("structured_call_failed", prompt=prompt.id, code=error.code, reason=error.message)
            return StructuredReply(None, request.account.usage, error.code)
        return StructuredReply(reply.parsed or {}, reply.usage)


@dataclass(slots=True)
class Spending:
    """Model calls of one request: at most ``allowed`` are started. ``failures`` lists error codes in order of occurrence."""

    allowed: int
    usage: Usage = field(default_factory=Usage)
    begun: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Calls that may still be started."""
        return max(0, self.allowed - self.begun)

    def begin(self, calls: int = 1) -> None:
        """Count started calls."""
        self.begun += calls

    def add_call(self, reply: StructuredReply) -> None:
        """Add the cost of a call, and its failure if it failed."""
        self.usage += reply.usage
        if reply.failure is not None:
            self.failures.append(reply.failure)


def number_in(item: Mapping[str, Any], name: str, *, low: float, high: float) -> float | None:
    """Return a number of an object, clamped to its limits. None if it is missing or not a number."""
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return min(high, max(low, float(value)))


def line_in(item: Mapping[str, Any], name: str, *, limit: int) -> str:
    """Return a text of an object as one line of at most ``limit`` characters. Empty if it is missing or not a text."""
    value = item.get(name)
    return " ".join(value.split())[:limit] if isinstance(value, str) else ""
