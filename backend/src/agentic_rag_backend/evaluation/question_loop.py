"""The loop of a run: asks every case in every configuration that has no outcome yet, within the budget of tokens.

With a judge, it also compares the answers of the first configuration with those of the others.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from agentic_rag_backend.domain.evaluation import CaseOutcome, EvaluationCase, PairVerdict, RunPlan
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.evaluation.gold import EvidenceFinder
from agentic_rag_backend.evaluation.pair_judge import PairJudge
from agentic_rag_backend.evaluation.question_asking import Asker
from agentic_rag_backend.jobs.runner import Run
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue, RunCatalogue

ASK = "ask"


@dataclass(slots=True)
class QuestionLoop:
    """Asks the questions of a run. ``outcomes`` are those of earlier attempts; the new ones are added and recorded.

    The configurations of a case follow each other, so that a slow minute of the machine affects all of them alike. Another one
    begins with each case, because the later ones of a case profit from what the first one has loaded.

    Args:
        concurrency: cases that are asked at once.
        judge: compares answers. None: nobody does.
    """

    asker: Asker
    documents: DocumentCatalogue
    runs: RunCatalogue
    run: Run
    run_id: str
    plan: RunPlan
    concurrency: int
    judge: PairJudge | None = None
    outcomes: dict[tuple[str, str], CaseOutcome] = field(default_factory=dict)
    verdicts: dict[tuple[str, str], PairVerdict] = field(default_factory=dict)
    _ids: dict[str, str] = field(default_factory=dict)

    @property
    def spent_tokens(self) -> int:
        """Tokens of all outcomes and verdicts."""
        parts: list[CaseOutcome | PairVerdict] = [*self.outcomes.values(), *self.verdicts.values()]
        return sum(part.prompt_tokens + part.completion_tokens for part in parts)

    def keep_outcome(self, outcome: CaseOutcome) -> None:
        """Keep what the summary reads of a recorded outcome: no ids of chunks, and one text for equal ids of documents."""
        documents = tuple(self._ids.setdefault(document_id, document_id) for document_id in outcome.documents)
        self.outcomes[outcome.case_id, outcome.configuration] = replace(outcome, chunks=(), documents=documents)

    def keep_outcomes(self, outcomes: Iterable[CaseOutcome]) -> None:
        """Keep recorded outcomes of an earlier attempt."""
        for outcome in outcomes:
            self.keep_outcome(outcome)

    async def ask_cases(self, caller: Principal, cases: Sequence[EvaluationCase], *, case_count: int | None = None) -> list[str]:
        """Ask what has no outcome, and return the reasons why questions were left out.

        Args:
            case_count: cases of the run. None: ``cases`` are all of them.

        Raises:
            StoreUnavailable, ModelUnavailable: something does not answer now. What was asked is recorded.
            JobStopped: the run was cancelled.
        """
        finder = EvidenceFinder(self.documents, self.run.tenant, partial(self.asker.search_text, caller))
        total = (len(cases) if case_count is None else case_count) * len(self.plan.configurations)
        budget, spent = self.plan.max_tokens, self.spent_tokens
        for start in range(0, len(cases), self.concurrency):
            await self.run.report_progress(ASK, len(self.outcomes), total)
            if budget is not None and spent >= budget:
                return self._list_omissions(total, budget)
            batch = cases[start : start + self.concurrency]
            results = await asyncio.gather(*(self._ask_case(caller, finder, case) for case in batch), return_exceptions=True)
            for result in results:
                if isinstance(result, BaseException):
                    raise result
                spent += result
        return []

    def _list_omissions(self, total: int, budget: int) -> list[str]:
        """Return what the budget left out of ``total`` questions and the comparisons of their answers."""
        names = [configuration["name"] for configuration in self.plan.configurations]
        comparisons = total // len(names) * (len(names) - 1) if self.judge is not None else 0
        omissions = []
        if len(self.outcomes) < total:
            omissions.append(f"{total - len(self.outcomes)} of {total} questions were not asked")
        if len(self.verdicts) < comparisons:
            omissions.append(f"{comparisons - len(self.verdicts)} of {comparisons} pairs of answers were not compared")
        return [f"{omission}: {budget} tokens are used up" for omission in omissions]

    async def _ask_case(self, caller: Principal, finder: EvidenceFinder, case: EvaluationCase) -> int:
        """Ask a case in the configurations that have no outcome, and have the answers compared. Return the number of tokens."""
        turn = zlib.crc32(case.id.encode()) % len(self.plan.configurations)
        order = (*self.plan.configurations[turn:], *self.plan.configurations[:turn])
        unasked = [configuration for configuration in order if (case.id, configuration["name"]) not in self.outcomes]
        evidence = await finder.find(case) if unasked else []
        missing_items, tokens = sum(item.missing for item in evidence), 0
        texts: dict[str, str] = {}
        for configuration in unasked:
            name = configuration["name"]
            outcome, texts[name] = await self.asker.ask(caller, self.plan, configuration, case, evidence)
            outcome = replace(outcome, gold_missing=missing_items)
            await self.runs.save_outcome(self.run.tenant, self.run_id, outcome)
            self.keep_outcome(outcome)
            await self.run.count_save()
            tokens += outcome.prompt_tokens + outcome.completion_tokens
        if self.judge is not None:
            tokens += await self._compare_answers(caller, self.judge, case, texts)
        return tokens

    async def _compare_answers(self, caller: Principal, judge: PairJudge, case: EvaluationCase, texts: dict[str, str]) -> int:
        """Have the answers to a case compared that have no verdict. Return the number of tokens.

        Args:
            texts: answers by configuration. Those of an earlier attempt are missing, and are written again.
        """
        baseline, *others = self.plan.configurations
        tokens = 0
        for other in others:
            names = (baseline["name"], other["name"])
            if (case.id, names[1]) in self.verdicts:
                continue
            repeated: list[CaseOutcome] = []
            for configuration in (baseline, other):
                if configuration["name"] not in texts:
                    outcome, texts[configuration["name"]] = await self.asker.ask(caller, self.plan, configuration, case, ())
                    repeated.append(outcome)
            verdict = await judge.compare(case, names, (texts[names[0]], texts[names[1]]))
            for outcome in repeated:
                verdict = verdict.with_usage(outcome)
            await self.runs.save_verdict(self.run.tenant, self.run_id, verdict)
            self.verdicts[case.id, names[1]] = verdict
            await self.run.count_save()
            tokens += verdict.prompt_tokens + verdict.completion_tokens
        return tokens
