"""``verified``: a first answer, verification questions, independent answers to them, and a revision.

After Chain-of-Verification (Dhuliawala et al. 2023, factored variant), with two differences: the questions are answered from
passages retrieved for each of them, and every sentence of every answer is checked against its passages. Model calls: one for the
first answer, one for the questions, one for each question, one for the revision.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agentic_rag_backend.answering.base import Brief, with_failures
from agentic_rag_backend.answering.draft import AnswerDraft, DraftEvent
from agentic_rag_backend.answering.evidence.context import Passage, size_tokens
from agentic_rag_backend.answering.generators.base import Assignment, Generated
from agentic_rag_backend.answering.generators.checked_sentences import SentenceGenerator, collect_events, finish_generation
from agentic_rag_backend.answering.rendering import fenced_passages, with_history
from agentic_rag_backend.answering.writing import EXTRACTIVE, Writers, Writing
from agentic_rag_backend.domain.answer import CheckedQuestion, Verification
from agentic_rag_backend.domain.usage import Usage, UsageAccount
from agentic_rag_backend.errors import AgenticRagError, ModelUnavailable
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, ModelRequest, list_of, object_of, text_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

MAX_QUESTION_CHARACTERS = 300
MAX_QUESTIONS = 10
_SCHEMA = object_of({"questions": list_of(text_of(MAX_QUESTION_CHARACTERS), MAX_QUESTIONS)})


class _VerificationFailed(Exception):
    """A step failed; the message is for the trace. The first answer is the answer."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """An answered question and the passages that its answer cites."""

    question: CheckedQuestion
    passages: tuple[Passage, ...] = ()
    usage: Usage = field(default_factory=Usage)
    failure: str | None = None


class VerifiedGenerator:
    """Writes an answer, verifies it, and revises it. If a step fails, the first answer is the answer, and the trace says so.

    Args:
        writers: without a language model, the `attributed` generator answers.
        calls: asks for the questions; its time limit applies to the questions and to each answer.
        max_questions: from 1 to 10.
    """

    name = "verified"

    def __init__(self, writers: Writers, calls: StructuredCalls, max_questions: int) -> None:
        self.writers = replace(writers, quotes=False)
        self.calls = calls
        self.max_questions = max_questions
        self._first = SentenceGenerator("attributed", writers, "checked")
        # A question that the model cannot answer has no answer.
        self.independent = SentenceGenerator("attributed", self.writers, "strict", part=True)

    async def generate(self, assignment: Assignment) -> Generated:
        """Return the whole answer; see `Generator`."""
        return await collect_events(self, assignment)

    async def stream(self, assignment: Assignment) -> AsyncGenerator[DraftEvent | Generated, None]:
        """Yield each sentence of the revision when it is checked; see `Generator`."""
        loop = asyncio.get_running_loop()
        ends_at = None if assignment.patience_s is None else loop.time() + assignment.patience_s
        first_draft = await self._first.generate(assignment)
        if first_draft.refusal is not None:
            yield replace(first_draft, generator=self.name)
            return
        revising = _Revising(self, assignment, first_draft, ends_at)
        draft = AnswerDraft(assignment.policy or "checked", assignment.style)
        try:
            waiting: list[DraftEvent] = []
            async with aclosing(revising.sentences(draft)) as sentences:
                async for event in sentences:
                    waiting.append(event)
                    while waiting and revising.replaces_first(draft):
                        yield waiting.pop(0)
        except (_VerificationFailed, ModelUnavailable) as error:
            reason = f"the model did not revise the answer: {error.code}" if isinstance(error, ModelUnavailable) else str(error)
            _log.warning("answer_not_verified", reason=reason)
            for final_event in revising.after(draft, reason):
                yield final_event
            return
        for final_event in revising.after(draft):
            yield final_event


class _Revising:
    """The state of one answer between its first version and its revision."""

    def __init__(self, generator: VerifiedGenerator, assignment: Assignment, generated: Generated, ends_at: float | None) -> None:
        self._generator = generator
        self._assignment = assignment
        self._first = generated
        self._ends_at = ends_at
        self._usage = generated.usage
        self._failures: list[str] = []
        self._verification: Verification | None = None
        self._writing: Writing | None = None

    async def sentences(self, draft: AnswerDraft) -> AsyncGenerator[DraftEvent, None]:
        """Ask and answer the questions, then yield the revision's sentences as ``draft`` accepts them."""
        if self._assignment.brief.request is None or self._first.model == EXTRACTIVE:
            raise _VerificationFailed("the answer was not verified: no language model wrote it")
        try:
            async with asyncio.timeout_at(self._ends_at):
                checked = await self._answer_questions(await self._ask_questions())
        except TimeoutError:
            raise _VerificationFailed("the answer was not verified: no time was left") from None
        questions = tuple(item.question for item in checked)
        self._verification = Verification(self._first.text, questions)
        brief = self._make_revision(self._assignment.brief.request, checked)
        left_s = self._left_s()
        self._writing = Writing(replace(self._generator.writers, patience_s=left_s), brief, left_s)
        async with aclosing(self._writing.sentences(draft)) as sentences:
            async for event in sentences:
                yield event

    def replaces_first(self, draft: AnswerDraft) -> bool:
        """Return whether the revision so far is better than the first answer. Unverified sentences replace no supported one."""
        return draft.begun and (draft.supported > 0 or self._first.supported == 0)

    def after(self, draft: AnswerDraft, reason: str | None = None) -> list[DraftEvent | Generated]:
        """Return the last events: the revised answer, or the first answer if nothing was sent.

        A refusal replaces the first answer if it has the words that the prompt asks for: "No change is needed" denies, too.
        """
        writing = self._writing
        usage = writing.usage if writing is not None else self._usage
        if writing is not None:
            revised = replace(finish_generation(self._generator.name, draft, writing), verification=self._verification)
            refuses = reason is None and revised.refusal == "model_refused"
            if self.replaces_first(draft) or (refuses and (writing.has_sentinel or self._first.supported == 0)):
                reasons = (*self._failures, *([reason] if reason else []))
                return [replace(revised, retrieval=with_failures(revised.retrieval, *reasons))]
            reason = reason or "no sentence of the revised answer was supported"
        trace = with_failures(self._first.retrieval, *self._failures, f"{reason}; the attributed generator answered")
        return [*self._first.events, replace(self._first, retrieval=trace, usage=usage)]

    async def _ask_questions(self) -> list[str]:
        prompt = built_in("verification_questions")
        limit = self._generator.max_questions
        values = {
            "question": fence("question", self._assignment.question),
            "answer": fence("answer", _join_supported_sentences(self._first)),
            "count": str(limit),
        }
        reply = await self._timed_calls().ask(prompt, values, _SCHEMA, max_tokens=400)
        self._usage += reply.usage
        if reply.parsed is None:
            raise _VerificationFailed(f"the model did not ask verification questions: {reply.failure}")
        questions_given = reply.parsed.get("questions")
        lines = (
            (" ".join(line.split())[:MAX_QUESTION_CHARACTERS] for line in questions_given if isinstance(line, str))
            if questions_given
            else ()
        )
        questions = list(dict.fromkeys(line for line in lines if line))[:limit]
        if not questions:
            raise _VerificationFailed("the model did not ask verification questions: none in its reply")
        return questions

    async def _answer_questions(self, questions: Sequence[str]) -> list[_Checked]:
        """Answer the questions at the same time, each from its own passages."""
        checked = await asyncio.gather(*(self._answer_question(question) for question in questions))
        self._usage += sum((item.usage for item in checked), Usage())
        failures = [item.failure for item in checked if item.failure is not None]
        if len(failures) == len(checked):
            raise _VerificationFailed(f"no verification question could be answered: {failures[0]}")
        if failures:
            share = f"{len(failures)} of {len(checked)}"
            self._failures.append(f"{share} verification questions could not be answered: {failures[0]}")
        return checked

    async def _answer_question(self, question: str) -> _Checked:
        unanswered = CheckedQuestion(question=question, answer=NOT_ANSWERED, grounded=False)
        try:
            brief = await self._assignment.investigate(question)
        except AgenticRagError as error:
            return _Checked(unanswered, failure=error.code)
        if brief.refusal is not None:
            return _Checked(unanswered, usage=brief.usage)
        patience_s = self._generator.calls.timeout_s if self._ends_at is None else self._timed_calls().timeout_s
        task = replace(self._assignment, question=question, brief=brief, policy="strict", style="numeric", patience_s=patience_s)
        try:
            answer = await self._generator.independent.generate(task)
        except ModelUnavailable as error:
            spent = brief.request.account.usage if brief.request is not None else Usage()
            return _Checked(unanswered, usage=brief.usage + spent, failure=error.code)
        if answer.refusal is not None:
            return _Checked(unanswered, usage=answer.usage)
        cited = {citation.chunk_id for citation in answer.citations}
        passages = tuple(passage for passage in brief.context.passages if passage.chunk_ids & cited)
        result = CheckedQuestion(question=question, answer=answer.text, grounded=answer.supported > 0, citations=answer.citations)
        return _Checked(result, passages, answer.usage)

    def _make_revision(self, request: ModelRequest, checked: Sequence[_Checked]) -> Brief:
        brief = self._assignment.brief
        prompt = built_in("verified_revision")
        checks = "\n".join(f"Question: {item.question.question}\nAnswer: {item.question.answer}" for item in checked)
        texts = (self._assignment.question, _join_supported_sentences(self._first), checks)
        passages = self._collect_evidence(checked, self._assignment.budget.evidence_tokens(prompt, *texts))
        context = replace(brief.context, passages=passages)
        values = {
            "passages": fenced_passages(context.passages),
            "question": fence("question", self._assignment.question),
            "answer": fence("answer", _join_supported_sentences(self._first)),
            "checks": fence("checks", checks),
            "refusal": NOT_ANSWERED,
        }
        # A new account: the usage of the first answer is counted.
        revised_request = replace(request, prompt=prompt.id, messages=with_history(prompt, values), account=UsageAccount())
        # A shorter prompt of the first answer is no revision.
        brief = replace(brief, request=revised_request, shorter=None, text="")
        return replace(brief, retrieval=self._first.retrieval, context=context, usage=self._usage)

    def _collect_evidence(self, checked: Sequence[_Checked], tokens: int) -> tuple[Passage, ...]:
        """Return the passages that fit: first the passages that the answers cite, then the others of the first answer."""
        first_passages = self._assignment.brief.context.passages
        cited = {citation.chunk_id for citation in self._first.citations}
        candidates = [passage for passage in first_passages if passage.chunk_ids & cited]
        candidates += [passage for item in checked for passage in item.passages]
        candidates += [passage for passage in first_passages if not passage.chunk_ids & cited]
        selected: dict[tuple[str, int], Passage] = {}
        for passage in candidates:
            key = (passage.chunk_id, passage.start_char)
            size = size_tokens([passage])
            if key not in selected and (size <= tokens or not selected):
                selected[key] = replace(passage, marker=len(selected) + 1, beside=None)
                tokens -= size
        return tuple(selected.values())

    def _timed_calls(self) -> StructuredCalls:
        left_s = self._left_s()
        calls = self._generator.calls
        return calls if left_s is None else replace(calls, timeout_s=min(calls.timeout_s, left_s))

    def _left_s(self) -> float | None:
        return None if self._ends_at is None else max(0.0, self._ends_at - asyncio.get_running_loop().time())


def _join_supported_sentences(answer: Generated) -> str:
    """Return the supported sentences of an answer without markers."""
    return " ".join(claim.text for claim in answer.claims if claim.supported) or answer.text
