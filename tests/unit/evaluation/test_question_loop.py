"""The loop asks what has no outcome, in every configuration, and stops at the budget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from agentic_rag_backend.domain.evaluation import CaseOutcome, EvaluationCase, PairChoice, PairVerdict, RunPlan
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelUnavailable
from agentic_rag_backend.evaluation.question_loop import QuestionLoop

CASES = [EvaluationCase(id=str(number), question=f"Who is {number}?") for number in range(6)]
PLAN = RunPlan(dataset_id="d", dataset_version=1, configurations=({"name": "a"}, {"name": "b"}))


@dataclass
class FakeAsker:
    """Answers with ten tokens. ``fails`` is a question that the model does not answer."""

    fails: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)

    async def ask(
        self, _caller: Any, _plan: RunPlan, configuration: Any, case: EvaluationCase, _evidence: Any
    ) -> tuple[CaseOutcome, str]:
        if case.id == self.fails:
            raise ModelUnavailable("the model is down")
        self.asked.append((case.id, configuration["name"]))
        name = configuration["name"]
        outcome = CaseOutcome(configuration=name, case_id=case.id, prompt_tokens=7, completion_tokens=3, calls=1, cost=0.1)
        return outcome, f"{case.id} {name}"

    async def search_text(self, _caller: Any, _text: str) -> list[Any]:
        return []


def loop_of(asker: FakeAsker, concurrency: int = 1, **plan: Any) -> tuple[QuestionLoop, list[CaseOutcome]]:
    saved: list[CaseOutcome] = []

    async def save_outcome(_tenant: TenantId, _run_id: str, outcome: CaseOutcome) -> None:
        saved.append(outcome)

    async def nothing(*_: Any) -> None:
        return None

    async def save_verdict(_tenant: TenantId, _run_id: str, _verdict: PairVerdict) -> None:
        return None

    run = SimpleNamespace(tenant=TenantId.new(), report_progress=nothing, count_save=nothing)
    runs = SimpleNamespace(save_outcome=save_outcome, save_verdict=save_verdict)
    loop = QuestionLoop(asker, None, runs, run, "run", replace(PLAN, **plan), concurrency)  # type: ignore[arg-type]
    return loop, saved


async def test_every_case_is_asked_once_in_each_configuration_beginning_with_either() -> None:
    asker = FakeAsker()
    loop, saved = loop_of(asker, 4)
    assert await loop.ask_cases(None, CASES) == []  # type: ignore[arg-type]
    assert sorted(asker.asked) == sorted((case.id, name) for case in CASES for name in ("a", "b"))
    assert len(saved) == 12
    begun = {next(name for id, name in asker.asked if id == case.id) for case in CASES}
    assert begun == {"a", "b"}, "no configuration always profits from what the other one loaded"


async def test_outcomes_of_an_earlier_attempt_are_not_asked_again() -> None:
    failing = FakeAsker(fails="3")
    loop, saved = loop_of(failing, 2)
    with pytest.raises(ModelUnavailable):
        await loop.ask_cases(None, CASES)  # type: ignore[arg-type]
    assert {outcome.case_id for outcome in saved} == {"0", "1", "2"}, "the other case of the batch is recorded"
    asker = FakeAsker()
    again, _ = loop_of(asker, 2)
    again.outcomes.update({(outcome.case_id, outcome.configuration): outcome for outcome in saved})
    assert await again.ask_cases(None, CASES) == []  # type: ignore[arg-type]
    assert {id for id, _ in asker.asked} == {"3", "4", "5"}


async def test_the_budget_ends_the_run_and_counts_earlier_tokens() -> None:
    asker = FakeAsker()
    loop, saved = loop_of(asker, max_tokens=50)
    loop.outcomes["9", "a"] = CaseOutcome(configuration="a", case_id="9", prompt_tokens=15)
    (reason,) = await loop.ask_cases(None, CASES)  # type: ignore[arg-type]
    assert len(saved) == 4, "15 tokens of before, and 20 for each case"
    assert reason == "7 of 12 questions were not asked: 50 tokens are used up"


@dataclass
class FakeJudge:
    """Prefers the second configuration for five tokens. ``fails`` is a case for which the model does not answer."""

    fails: str = ""
    compared: list[tuple[str, tuple[str, str]]] = field(default_factory=list)

    async def compare(self, case: EvaluationCase, names: tuple[str, str], texts: tuple[str, str]) -> PairVerdict:
        if case.id == self.fails:
            raise ModelUnavailable("the model is down")
        self.compared.append((case.id, texts))
        verdict = PairVerdict(baseline=names[0], configuration=names[1], case_id=case.id, choices=(PairChoice.CONFIGURATION,) * 2)
        return verdict.with_usage(Usage(4, 1, 2, cost_nanos=10**8))


async def test_a_judge_compares_each_pair_once_also_after_a_kill() -> None:
    """A pair whose answers were lost with the process costs its answers again, and no verdict is paid twice."""
    loop, saved = loop_of(FakeAsker())
    failing = FakeJudge(fails="2")
    loop.judge = failing  # type: ignore[assignment]
    with pytest.raises(ModelUnavailable):
        await loop.ask_cases(None, CASES)  # type: ignore[arg-type]
    assert [id for id, _ in failing.compared] == ["0", "1"]
    assert len(saved) == 6, "the outcomes of the case that was not judged are recorded"

    asker, judge = FakeAsker(), FakeJudge()
    again, saved_again = loop_of(asker)
    again.judge = judge  # type: ignore[assignment]
    again.outcomes.update({(outcome.case_id, outcome.configuration): outcome for outcome in saved})
    again.verdicts.update(loop.verdicts)
    assert await again.ask_cases(None, CASES) == []  # type: ignore[arg-type]
    assert judge.compared == [(id, (f"{id} a", f"{id} b")) for id in "2345"]
    assert sorted(asker.asked) == sorted((id, name) for id in "2345" for name in "ab")
    assert len(saved_again) == 6, "the first outcome of a question stays"
    assert (again.verdicts["2", "b"].prompt_tokens, again.verdicts["3", "b"].prompt_tokens) == (18, 4)
    assert again.verdicts["2", "b"].cost == pytest.approx(0.3)
    assert again.spent_tokens == 12 * 10 + 6 * 5 + 20


async def test_the_budget_counts_the_judge() -> None:
    loop, saved = loop_of(FakeAsker(), max_tokens=50)
    loop.judge = FakeJudge()  # type: ignore[assignment]
    reasons = await loop.ask_cases(None, CASES)  # type: ignore[arg-type]
    assert len(saved) == 4, "25 tokens for each case"
    assert reasons == [
        "8 of 12 questions were not asked: 50 tokens are used up",
        "4 of 6 pairs of answers were not compared: 50 tokens are used up",
    ]
