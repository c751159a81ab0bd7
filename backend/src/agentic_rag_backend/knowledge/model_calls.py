"""Calls of a language model for one version of a document: within a budget of tokens, recorded, and never paid twice.

A retry of a job, and another version of the document, reuse every reply to an equal request. Failures are returned, not raised:
each caller has a fallback. A job waits for a model that does not answer (see `knowledge.absence`). After a failure that is not
about one request, or after four failures at once, no further request is sent.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelInputRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
    PromptTooLong,
)
from agentic_rag_backend.knowledge.absence import Absence, Persistence
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelDelta, ModelReply, ModelRequest
from agentic_rag_backend.prompts.inquiry import Inquiry
from agentic_rag_backend.stores.catalogue.base import ModelResultCatalogue
from agentic_rag_backend.telemetry.logs import get_logger

NO_MODEL = "no_model"
BUDGET_SPENT = "budget_spent"
TOO_LATE = ModelTimeout.code
INVALID = ModelReplyInvalid.code
_OF_ONE_REQUEST = frozenset({"", INVALID, ModelInputRefused.code, PromptTooLong.code})
"""Failures after which the model is asked about the rest of the document."""
MAX_TOKENS = 200_000
"""Default budget of one version, in tokens read and written."""
_AT_ONCE = 4
_CUT = "$cut"
"""Member of a recorded object whose reply was cut off. No schema has it."""

_log = get_logger(__name__)


Pause = Callable[[float, AgenticRagError], Awaitable[None]]
"""Waits for these seconds, because of this error."""


class ResultRecord(Protocol):
    """Results on record for one version of a document."""

    async def known(self, recipes: Sequence[str]) -> Mapping[str, Any]:
        """Return the recorded values by recipe. Failed calls have none."""

    async def keep(self, recipe: str, value: Any | None, usage: Usage) -> None:
        """Record a value with its cost. None: the call failed."""

    async def spent(self) -> Usage:
        """Return the cost of all calls for this version so far."""

    @property
    def pause(self) -> Pause | None:
        """Waits before the model is asked again, and shows the reason. None: somebody waits for the result, so nothing pauses."""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """`ResultRecord` in the catalogue."""

    results: ModelResultCatalogue
    tenant: TenantId
    document_id: str
    version: int
    pause: Pause | None = None

    async def known(self, recipes: Sequence[str]) -> Mapping[str, Any]:
        """Return the recorded values by recipe."""
        return await self.results.reuse(self.tenant, self.document_id, self.version, recipes)

    async def keep(self, recipe: str, value: Any | None, usage: Usage) -> None:
        """Record a value with its cost."""
        await self.results.save(self.tenant, self.document_id, self.version, recipe, value, usage)

    async def spent(self) -> Usage:
        """Return the cost of all calls for this version so far."""
        return await self.results.usage(self.tenant, self.document_id, self.version)


@dataclass(slots=True)
class Unrecorded:
    """`ResultRecord` that only counts, for previews."""

    usage: Usage = field(default_factory=Usage)
    pause: Pause | None = None

    async def known(self, recipes: Sequence[str]) -> Mapping[str, Any]:
        """Return nothing."""
        return {}

    async def keep(self, recipe: str, value: Any | None, usage: Usage) -> None:
        """Count the cost."""
        self.usage += usage

    async def spent(self) -> Usage:
        """Return the cost so far."""
        return self.usage


@dataclass(frozen=True, slots=True)
class Advice:
    """The object that the model returned, or None and the failure code.

    ``cut``: the reply was cut off, and the object has only the whole items before that. ``error``: the model's, if it has failed.
    """

    value: Mapping[str, Any] | None
    failure: str = ""
    cut: bool = False
    error: ModelUnavailable | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class DocumentModel:
    """The language model that reads documents during ingestion.

    Args:
        model: the model; an extractive one is never called.
        name: name of the model to call; None: the model's default.
        max_tokens: budget of one version, in tokens read and written. A call begins if its estimated tokens fit the rest.
        absence: how long jobs wait for a model that does not answer. None: they do not wait.
    """

    model: LanguageModel
    name: str | None = None
    max_tokens: int = MAX_TOKENS
    absence: Absence | None = None

    async def ask(
        self, inquiries: Sequence[Inquiry], record: ResultRecord, *, max_tokens: int | None = None, within_s: float | None = None
    ) -> list[Advice]:
        """Return the advice for each inquiry, in order. Several are sent at the same time.

        Args:
            max_tokens: a smaller budget than the model's.
            within_s: seconds for all calls together. None: only the model's own limit for each call.

        Raises:
            NotFound: the document was deleted.
        """
        advice, requests = dict[int, Advice](), [self._build_request(inquiry) for inquiry in inquiries]
        recipes = [self._recipe_of(request) for request in requests]
        recorded = await record.known(recipes)
        for number, recipe in enumerate(recipes):
            if recipe in recorded:
                advice[number] = _read_record(recorded[recipe])
        remaining = [number for number in range(len(inquiries)) if number not in advice]
        failure = "" if self.model.generative else NO_MODEL
        budget = min(self.max_tokens, self.max_tokens if max_tokens is None else max_tokens)
        ends = None if within_s is None else asyncio.get_running_loop().time() + within_s
        persistence = Persistence(self.absence)
        while remaining and not failure:
            tokens = budget - _count_tokens(await record.spent())
            group = _select_affordable([requests[number] for number in remaining[:_AT_ONCE]], remaining, tokens)
            if not group:
                failure = BUDGET_SPENT
                break
            persistence.begin()
            calls = [self._call_model(requests[item], inquiries[item].accepts, recipes[item], record, ends) for item in group]
            advice |= zip(group, await asyncio.gather(*calls), strict=True)
            remaining = remaining[len(group) :]
            again = [number for number in group if persistence.is_worth_waiting(number, advice[number].error)]
            if again and await self._wait_for_model(advice[again[0]].error, record):
                remaining = again + remaining
            else:
                answers = [advice[number] for number in group if not persistence.is_too_large(number)]
                failure = _lasting_failure(answers, len(group))
        return [advice.get(number) or Advice(None, failure) for number in range(len(inquiries))]

    async def _wait_for_model(self, error: ModelUnavailable | None, record: ResultRecord) -> bool:
        """Wait before the model is asked again. Return False, without waiting, if the jobs do without it now."""
        if self.absence is None or error is None or record.pause is None:
            return False
        pause_s = self.absence.pause_s(error)
        if pause_s is not None:
            await record.pause(pause_s, error)
        return pause_s is not None

    def _build_request(self, inquiry: Inquiry) -> ModelRequest:
        system, user = inquiry.prompt.render(inquiry.values)
        return ModelRequest(
            prompt=inquiry.prompt.id,
            messages=(Message("system", system), Message("user", user)),
            schema=inquiry.schema,
            partial=inquiry.partial,
            model=self.name,
            max_tokens=inquiry.max_tokens,
        )

    def _recipe_of(self, request: ModelRequest) -> str:
        parts = (request.prompt, self.name or self.model.name, *(message.content for message in request.messages))
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()

    async def answer(self, request: ModelRequest, record: ResultRecord, *, reserved: int = 0) -> Advice:
        """Return the advice for a request in the caller's own words.

        Args:
            reserved: tokens of the budget that other calls may still use.

        Raises:
            NotFound: the document was deleted.
        """
        request = replace(request, model=self.name)
        recipe = self._recipe_of(request)
        if recipe in (recorded := await record.known([recipe])):
            return _read_record(recorded[recipe])
        if not self.model.generative:
            return Advice(None, NO_MODEL)
        if self.max_tokens - _count_tokens(await record.spent()) - reserved < estimated_tokens(request):
            return Advice(None, BUDGET_SPENT)
        persistence = Persistence(self.absence)
        while True:
            persistence.begin()
            advice = await self._call_model(request, lambda _: True, recipe, record, None)
            if not persistence.is_worth_waiting(0, advice.error) or not await self._wait_for_model(advice.error, record):
                return advice

    async def _call_model(
        self,
        request: ModelRequest,
        accepts: Callable[[Mapping[str, Any]], bool],
        recipe: str,
        record: ResultRecord,
        ends: float | None,
    ) -> Advice:
        try:
            async with asyncio.timeout_at(ends):
                reply = await self.model.complete(request)
        except TimeoutError:
            advice = Advice(None, TOO_LATE)
        except ModelUnavailable as error:
            advice = Advice(None, error.code, error=error)
        else:
            if self.absence is not None:
                self.absence.end()
            value = dict(reply.parsed or {})
            advice = Advice(value, cut=reply.cut) if accepts(value) else Advice(None, INVALID)
        if advice.failure:
            _log.warning("document_model_failed", prompt=request.prompt, code=advice.failure)
        value_on_record = {**advice.value, _CUT: True} if advice.cut and advice.value is not None else advice.value
        await record.keep(recipe, value_on_record, request.account.usage)
        return advice


@dataclass(slots=True)
class VersionModel:
    """`LanguageModel` of one version for code that asks in its own words. It stays within the budget and records its calls.

    ``failure`` is the code of the first failure since it was last cleared. Callers of the model may hide an error.
    """

    asked: DocumentModel
    record: ResultRecord
    failure: str = ""
    _reserved: int = 0
    """Tokens of the budget that running calls may use."""

    generative = True

    @property
    def name(self) -> str:
        """The model that is asked."""
        return self.asked.name or self.asked.model.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the reply. ``usage`` is empty: the record counts it.

        Raises:
            ModelUnavailable: there is none; ``failure`` names the reason.
        """
        tokens = estimated_tokens(request)
        reserved, self._reserved = self._reserved, self._reserved + tokens
        try:
            advice = await self.asked.answer(request, self.record, reserved=reserved)
        finally:
            self._reserved -= tokens
        if advice.value is None:
            self.failure = self.failure or advice.failure
            raise ModelUnavailable(f"the language model gave no reply: {advice.failure}")
        return ModelReply("", Usage(), self.name, advice.value, cut=advice.cut)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Refuse: replies are recorded as a whole."""
        raise ModelUnavailable("a model that records its replies does not stream them")

    async def close(self) -> None:
        """Do nothing: the container closes the model."""


def _read_record(value: Mapping[str, Any] | None) -> Advice:
    """Return the advice of a value on record."""
    if value is None or _CUT not in value:
        return Advice(value)
    return Advice({name: item for name, item in value.items() if name != _CUT}, cut=True)


def estimated_tokens(request: ModelRequest) -> int:
    """Return the most tokens that a request may read and write, by an estimate of its words."""
    return text_tokens(message.content for message in request.messages) + request.max_tokens


def _count_tokens(usage: Usage) -> int:
    return usage.prompt_tokens + usage.completion_tokens


def _select_affordable(requests: Sequence[ModelRequest], numbers: Sequence[int], tokens: int) -> list[int]:
    """Return the numbers of the first requests that fit the budget together."""
    group = []
    for number, request in zip(numbers, requests, strict=False):
        tokens -= estimated_tokens(request)
        if tokens < 0:
            break
        group.append(number)
    return group


def _lasting_failure(answers: Sequence[Advice], group_size: int) -> str:
    """Return the failure because of which the model is not asked any more. Empty: there is none.

    Args:
        answers: without those of requests that are too large for the model.
        asked: size of the whole group.
    """
    failure = next((answer.failure for answer in answers if answer.failure not in _OF_ONE_REQUEST), "")
    if not failure and len(answers) == group_size == _AT_ONCE and all(answer.failure for answer in answers):
        failure = answers[0].failure  # this model is not up to the task: further calls would be paid for nothing
    return failure
