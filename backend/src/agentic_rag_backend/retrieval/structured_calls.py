"""Ask a language model for a JSON object within a time; a failure is an outcome, which the asker can do without."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelRequest
from agentic_rag_backend.prompts import Prompt

_log = structlog.get_logger(__name__)

TOO_LATE = "model_timeout"
"""What a failure is called where the time was over; others by their error's code."""


@dataclass(frozen=True, slots=True)
class StructuredReply:
    """The object, or None and why there is none; ``usage`` counts every attempt, failed ones too."""

    parsed: Mapping[str, Any] | None
    usage: Usage
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class StructuredCalls:
    """Calls of one model.

    Args:
        model_name: the model asked; None: the model's own default.
        timeout_s: seconds one call may take, retries included; the model's own limit if that is less.
    """

    model: LanguageModel
    model_name: str | None = None
    timeout_s: float = 20.0

    @property
    def possible(self) -> bool:
        """Whether the model writes at all; the extractive one only selects."""
        return self.model.generative

    async def ask(
        self, prompt: Prompt, values: Mapping[str, str], schema: Mapping[str, Any], *, max_tokens: int = 700
    ) -> StructuredReply:
        """Return the reply; untrusted ``values`` come fenced."""
        system, user = prompt.render(values)
        request = ModelRequest(
            prompt=prompt.id,
            messages=(Message("system", system), Message("user", user)),
            schema=schema,
            model=self.model_name,
            max_tokens=max_tokens,
        )
        try:
            async with asyncio.timeout(self.timeout_s):
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
    """Model calls of one request: at most ``allowed`` are begun; ``failures`` by code, in the order of their coming."""

    allowed: int
    usage: Usage = field(default_factory=Usage)
    begun: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def left(self) -> int:
        """Calls that may still be begun."""
        return max(0, self.allowed - self.begun)

    def begin(self, calls: int = 1) -> None:
        """Count calls as begun."""
        self.begun += calls

    def ended(self, reply: StructuredReply) -> None:
        """Count what a call cost, and its failure."""
        self.usage += reply.usage
        if reply.failure is not None:
            self.failures.append(reply.failure)


def objects_in(parsed: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the objects in a list of a reply; what is something else is passed over."""
    items = parsed.get(name)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def number_in(item: Mapping[str, Any], name: str, *, low: float, high: float) -> float | None:
    """Return a number of an object, cut to its limits; None where there is none."""
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return min(high, max(low, float(value)))


def line_in(item: Mapping[str, Any], name: str, *, most: int) -> str:
    """Return a text of an object as one line of at most ``most`` characters; empty where there is none."""
    value = item.get(name)
    return " ".join(value.split())[:most] if isinstance(value, str) else ""
