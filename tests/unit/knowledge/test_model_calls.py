"""Model calls for a document: a budget, a record, and no further call after a failure that is not about one request."""

from __future__ import annotations

import asyncio
from typing import Any

from scripted_models import COST, Record, Reply, ScriptedModel

from agentic_rag_backend.errors import (
    AgenticRagError,
    ModelInputRefused,
    ModelRateLimited,
    ModelRefused,
    ModelReplyInvalid,
    ModelTimeout,
    ModelUnavailable,
)
from agentic_rag_backend.knowledge.absence import Absence
from agentic_rag_backend.knowledge.model_calls import DocumentModel
from agentic_rag_backend.models.llm.base import ExtractiveModel, Message, ModelRequest
from agentic_rag_backend.prompts import parse
from agentic_rag_backend.prompts.inquiry import Inquiry

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def inquiries(*texts: str) -> list[Inquiry]:
    prompt = parse("Answer {{text}}")
    return [
        Inquiry(prompt=prompt, values={"text": text}, schema=SCHEMA, max_tokens=10, accepts=lambda reply: reply.get("n") != 13)
        for text in texts
    ]


def number(prompt: str) -> Reply:
    return {"n": int(prompt.split()[-1])}


async def test_a_reply_on_record_is_not_paid_again() -> None:
    model, record = ScriptedModel(number), Record()
    asked = DocumentModel(model)
    assert [each.value for each in await asked.ask(inquiries("1", "2"), record)] == [{"n": 1}, {"n": 2}]
    assert [each.value for each in await asked.ask(inquiries("2", "3"), record)] == [{"n": 2}, {"n": 3}]
    assert model.prompts == ["Answer 1", "Answer 2", "Answer 3"]
    assert record.usage.calls == 3
    await DocumentModel(model, "another").ask(inquiries("1"), record)
    assert len(model.prompts) == 4, "another model has results of its own"


async def test_a_refused_reply_is_paid_and_asked_for_again() -> None:
    model, record = ScriptedModel(number), Record()
    for _ in range(2):
        first, second = await DocumentModel(model).ask(inquiries("13", "2"), record)
        assert (first.value, first.failure, second.value) == (None, "model_reply_invalid", {"n": 2})
    assert model.prompts == ["Answer 13", "Answer 2", "Answer 13"]
    assert record.usage.calls == 3


async def test_a_call_that_does_not_fit_the_budget_is_not_made() -> None:
    model, record = ScriptedModel(number), Record()
    asked = DocumentModel(model, max_tokens=3 * (COST.prompt_tokens + COST.completion_tokens) + 20)
    found = await asked.ask(inquiries(*map(str, range(40))), record)
    paid = len(model.prompts)
    assert 3 <= paid < 8, "four are sent at the same time"
    assert [each.failure for each in found] == [""] * paid + ["budget_spent"] * (40 - paid)
    again = await asked.ask(inquiries("99"), record)
    assert again[0].failure == "budget_spent", "the budget is of the version, not of one call of ask"
    assert (await DocumentModel(model).ask(inquiries("98"), record, max_tokens=0))[0].failure == "budget_spent"
    assert len(model.prompts) == paid


async def test_an_unavailable_model_is_not_asked_further() -> None:
    for error in (ModelUnavailable("down"), ModelRateLimited("busy")):
        model = ScriptedModel(lambda prompt, error=error: error)  # type: ignore[misc]
        found = await DocumentModel(model).ask(inquiries(*map(str, range(20, 40))), Record())
        assert len(model.prompts) == 4
        assert {each.failure for each in found} == {error.code}
    for single in (ModelInputRefused("too long"), ModelReplyInvalid("no JSON")):
        model = ScriptedModel(lambda prompt, error=single: error if prompt.endswith(" 20") else number(prompt))  # type: ignore[misc]
        found = await DocumentModel(model).ask(inquiries(*map(str, range(20, 40))), Record())
        assert [each.failure for each in found] == [single.code] + [""] * 19


async def test_a_model_whose_replies_are_all_unusable_is_not_asked_further() -> None:
    model, record = ScriptedModel(lambda prompt: {"n": 13}), Record()
    found = await DocumentModel(model).ask(inquiries(*map(str, range(20, 40))), record)
    assert len(model.prompts) == 4
    assert {each.failure for each in found} == {"model_reply_invalid"}


async def test_time_ends_all_calls() -> None:
    class Slow(ScriptedModel):
        async def complete(self, request: Any) -> Any:
            await asyncio.sleep(30 if request.messages[-1].content.endswith(" 1") else 0)
            return await super().complete(request)

    found = await DocumentModel(Slow(number)).ask(inquiries("0", "1", "2", "3", "4"), Record(), within_s=0.2)
    assert [each.failure for each in found] == ["", "model_timeout", "", "", "model_timeout"]


async def test_the_extractive_model_is_never_asked() -> None:
    model = ExtractiveModel()
    assert (await DocumentModel(model).ask(inquiries("1"), Record()))[0].failure == "no_model"


class Waiting(Record):
    """The record of a job: it waits without a pause, and lists the reasons."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []
        self.pause = self._pause

    async def _pause(self, pause_s: float, error: AgenticRagError) -> None:
        assert pause_s > 0
        self.reasons.append(error.code)


class Clock:
    """Advances by a second with every reading."""

    now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


async def test_a_job_waits_for_a_model_that_is_away_and_goes_on() -> None:
    failures = iter([ModelUnavailable("down")] * 6 + [ModelRateLimited("limited")])
    model, record = ScriptedModel(lambda prompt: next(failures, None) or number(prompt)), Waiting()
    found = await DocumentModel(model, absence=Absence(3600)).ask(inquiries(*map(str, range(20, 29))), record)
    assert [each.value for each in found] == [{"n": n} for n in range(20, 29)]
    assert record.reasons == ["model_unavailable", "model_unavailable"]
    assert len(model.prompts) == 9 + 7, "only what failed is repeated"


async def test_jobs_wait_together_for_as_long_as_their_patience_allows() -> None:
    away = [True]
    model = ScriptedModel(lambda prompt: ModelUnavailable("down") if away[0] else number(prompt))
    asked = DocumentModel(model, absence=Absence(5, clock=Clock()))
    first, second = Waiting(), Waiting()
    assert {each.failure for each in await asked.ask(inquiries("1", "2"), first)} == {"model_unavailable"}
    assert len(first.reasons) > 2
    paid = len(model.prompts)
    assert {each.failure for each in await asked.ask(inquiries("3"), second)} == {"model_unavailable"}
    assert (len(model.prompts) - paid, second.reasons) == (1, []), "the next document does not wait anew"
    away[0] = False
    assert [each.value for each in await asked.ask(inquiries("3"), second)] == [{"n": 3}]
    away[0] = True
    await asked.ask(inquiries("4"), second)
    assert second.reasons, "after a reply, the patience begins again"


async def test_a_request_that_alone_takes_too_long_is_given_up_and_the_others_go_on() -> None:
    model = ScriptedModel(lambda prompt: ModelTimeout("slow") if prompt.endswith("20") else number(prompt))
    record = Waiting()
    found = await DocumentModel(model, absence=Absence(3600)).ask(inquiries(*map(str, range(20, 40))), record)
    assert [each.failure for each in found] == ["model_timeout"] + [""] * 19
    assert model.prompts.count("Answer 20") == 3


async def test_nobody_waits_for_a_model_that_refuses_or_while_a_request_waits() -> None:
    for error in (ModelRefused("key"), ModelReplyInvalid("no JSON")):
        model, record = ScriptedModel(lambda prompt, error=error: error), Waiting()  # type: ignore[misc]
        await DocumentModel(model, absence=Absence(3600)).ask(inquiries("1"), record)
        assert (len(model.prompts), record.reasons) == (1, [])
    model = ScriptedModel(lambda prompt: ModelUnavailable("down"))
    await DocumentModel(model, absence=Absence(3600)).ask(inquiries("1"), Record())
    assert len(model.prompts) == 1


async def test_a_request_in_the_callers_own_words_waits_too() -> None:
    failures = iter([ModelUnavailable("down")])
    model, record = ScriptedModel(lambda prompt: next(failures, None) or number(prompt)), Waiting()
    request = ModelRequest(prompt="own@1", messages=(Message("system", ""), Message("user", "Answer 7")))
    advice = await DocumentModel(model, absence=Absence(3600)).answer(request, record)
    assert (advice.value, record.reasons) == ({"n": 7}, ["model_unavailable"])


async def test_an_absence_without_calls_is_forgotten() -> None:
    clock = Clock()
    absence = Absence(50, clock=clock)
    while absence.pause_s(ModelUnavailable("down")) is not None:
        clock.now += 10
    assert absence.pause_s(ModelUnavailable("down")) is None
    clock.now += 10_000
    assert absence.pause_s(ModelUnavailable("down")) is not None
