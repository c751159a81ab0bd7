"""Answers questions: retrieve, decide whether an answer is possible, write it, and check it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from agentic_rag_backend.answering.answerability.judge import AnswerJudge, Judgement
from agentic_rag_backend.answering.base import (
    AnswerEvent,
    Brief,
    CitationPolicy,
    CitationStyle,
    DoneEvent,
    ErrorEvent,
    RetrievalEvent,
    TokenEvent,
    UsageEvent,
    with_details,
    with_failures,
)
from agentic_rag_backend.answering.claims.base import VerifierFactory
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.contradicting import AnswerContradictions
from agentic_rag_backend.answering.conversation import Rewriter
from agentic_rag_backend.answering.corpus_wide.global_answers import GlobalAnswers
from agentic_rag_backend.answering.draft import of_model, of_quotations
from agentic_rag_backend.answering.endings import Ending, answer_of, refusal_events, with_first_sentence
from agentic_rag_backend.answering.evidence.context import (
    Context,
    Passage,
    PromptBudget,
    build_context,
    halve_context,
    theme_chunk_ids,
)
from agentic_rag_backend.answering.evidence.expansion import read_around, widen_context
from agentic_rag_backend.answering.generators.base import Assignment, Generated
from agentic_rag_backend.answering.generators.registry import GENERATORS, GeneratorParts, generator_warnings
from agentic_rag_backend.answering.quotations import introduce_bearers, passage_text, quotations_of
from agentic_rag_backend.answering.rendering import render_messages
from agentic_rag_backend.answering.writing import EXTRACTIVE, Writers
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.domain.usage import UsageAccount
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, in_field
from agentic_rag_backend.models.llm.base import LanguageModel, Message, ModelRequest, window_of
from agentic_rag_backend.prompts import Prompt, built_in, parse
from agentic_rag_backend.retrieval.registry import RetrieverRegistry
from agentic_rag_backend.retrieval.structured_calls import StructuredCalls
from agentic_rag_backend.retrieval.themes.overviews import ALL_DOCUMENTS, OVERVIEW
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

REQUIRED_PLACEHOLDERS = ("passages", "question")
PLACEHOLDERS = (*REQUIRED_PLACEHOLDERS, "themes", "refusal")
"""Placeholders that an answer's prompt may contain, and the required ones among them."""
MAX_HISTORY = 20
FALLBACK_SHARE = 0.75
"""Share of a request's time after which the model that writes its answer counts as failed."""
FOREIGN_RELEVANCE = 0.25
"""A question whose passages are less relevant (see `Retrieval.relevance`) is about none of the documents, unless its confidence
reaches `FOREIGN_CONFIDENCE`. Of 702 answerable questions of four sets, none is below both; of 480 questions about other
documents, 45 % are."""
FOREIGN_CONFIDENCE = 0.1
QUOTED_FACTOR = 2
"""Factor on the tokens of the evidence for quotations, which are read with their neighbours and cost no model's tokens."""
GLOBAL = "global"
"""The strategy whose answers are made of partial answers."""
DUAL_LEVEL = "dual_level"
SINGLE_FACTS = "hybrid"
"""The strategy that finds passages for the verification questions of a `GLOBAL` answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """Options of answers in this installation.

    ``min_confidence`` in [0, 1] is the confidence below which an answer without a language model is a refusal. ``window_tokens``
    is the context window of the models (None: by their names). ``context_tokens`` bounds the
    evidence of a prompt, ``max_tokens`` the reply. ``dual_level_model`` (None: the model's own) and
    ``dual_level_temperature`` in [0, 2] are for answers from both levels, as is ``dual_level_prompt`` (None: built in).
    ``model_patience_s`` is the model's time limit if there is a fallback (None: its own limit). ``citation_policy`` None is the
    generator's default. ``verification_questions`` (1 to 10) bounds the questions of a `verified` answer.
    """

    min_confidence: float = 0.25
    window_tokens: int | None = None
    generator: str = "attributed"
    context_tokens: int = 3000
    max_tokens: int = 1024
    temperature: float = 0.0
    dual_level_model: str | None = None
    dual_level_temperature: float = 0.3
    dual_level_prompt: Prompt | None = None
    model_patience_s: float | None = None
    citation_policy: CitationPolicy | None = None
    verification_questions: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerChecks:
    """Judgements of evidence and claims.

    ``judge`` estimates whether passages answer. ``verifier`` makes the verifier of an answer's claims. ``calls`` ask verification
    questions (None: of the same model). ``contradictions`` finds what contradicts the cited sentences (None: answers have none).
    """

    judge: AnswerJudge
    verifier: VerifierFactory = LexicalVerifier
    calls: StructuredCalls | None = None
    contradictions: AnswerContradictions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _AnswerPlan:
    """The validated inputs of one answer."""

    query: Query
    generator: str
    history: tuple[Message, ...] = ()
    style: CitationStyle = "numeric"
    policy: CitationPolicy | None = None
    prompt: Prompt | None = None
    model: str | None = None
    temperature: float | None = None
    both_levels: bool = False
    strategy: str = ""
    started: float = field(default_factory=time.perf_counter)


class AnswerService:
    """Answers from retrieved passages. A refusal has ``grounded`` False, no citations and a plain text.

    With a history, ``rewriter`` makes the question self-contained first; retrieval and the model read that form.

    If the model fails and ``quotes`` is set, quotations are the answer, and the trace of its retrieval records it (`writing`).

    Refused before a model is called: nothing was retrieved, or the question is foreign to the documents (`FOREIGN_RELEVANCE`).
    Refused after: the model replies that the documents do not answer. Without a language model, or in place of one that failed,
    an answer needs a confidence (see `draft`) of ``min_confidence``.
    """

    def __init__(
        self,
        *,
        retrievers: RetrieverRegistry,
        model: LanguageModel,
        documents: DocumentCatalogue,
        checks: AnswerChecks,
        options: AnswerOptions,
        global_answers: GlobalAnswers | None = None,
        quotes: bool = False,
        rewriter: Rewriter | None = None,
    ) -> None:
        self._contradictions = checks.contradictions
        self._global = global_answers
        self._retrievers = retrievers
        self._model = model
        writers = Writers(model, checks.verifier, quotes, options.model_patience_s)
        parts = GeneratorParts(writers, checks.calls or StructuredCalls(model), options.verification_questions)
        self._generators = {name: build(parts) for name, build in GENERATORS.items()}
        self._rewriter = rewriter or Rewriter()
        self._documents = documents
        self._judge = checks.judge
        self._options = options

    async def answer(
        self,
        query: Query,
        *,
        strategy: str,
        generator: str | None = None,
        history: Sequence[Message] = (),
        citation_style: CitationStyle = "numeric",
        citation_policy: CitationPolicy | None = None,
    ) -> Answer:
        """Retrieve with ``strategy`` and answer.

        Args:
            generator: None takes the installation's.
            history: earlier turns, oldest first, at most 20.
            citation_policy: for sentences that no passage states; None takes the installation's, then the generator's.

        Raises:
            InvalidRequest: unknown strategy or generator, or too long a history.
            ModelUnavailable: the language model failed and there is no fallback; retrieval alone still works.
        """
        plan = replace(self._make_plan(query, generator, history), style=citation_style, strategy=strategy)
        plan = replace(plan, policy=citation_policy or plan.policy)
        plan, retrieval = await self._retrieve_passages(plan)
        return await self._finish_answer(plan, retrieval)

    async def synthesise(
        self,
        query: Query,
        retrieval: Retrieval,
        *,
        prompt: str | None = None,
        model: str | None = None,
        temperature: float | None = None,
    ) -> Answer:
        """Answer from both levels of an existing retrieval; None takes the installation's dual-level choice.

        Raises:
            InvalidRequest: ``prompt`` (a prompt's text, see `prompts.parse`) lacks ``{{passages}}`` or ``{{question}}``.
            ModelUnavailable: the language model failed and there is no fallback.
        """
        parsed = None
        if prompt is not None:
            with in_field("prompt"):
                parsed = parse(prompt, required=REQUIRED_PLACEHOLDERS, allowed=PLACEHOLDERS)
            parsed = parsed if parsed.system else replace(parsed, system=built_in("dual_level").system)
        plan = self._make_plan(query, None, ())
        plan = replace(plan, prompt=parsed, model=model, temperature=temperature, both_levels=True, strategy=DUAL_LEVEL)
        return await self._finish_answer(plan, retrieval.with_warnings(self._list_warnings(plan)))

    async def stream(
        self,
        query: Query,
        *,
        strategy: str,
        generator: str | None = None,
        history: Sequence[Message] = (),
        citation_style: CitationStyle = "numeric",
        citation_policy: CitationPolicy | None = None,
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the answer as it is checked: results, then citations and sentences, usage, and the whole answer.

        A refusal has no citations; its sentence comes as a token. An error of ours ends the stream as an `ErrorEvent`.
        """
        try:
            plan = replace(self._make_plan(query, generator, history), style=citation_style, strategy=strategy)
            plan = replace(plan, policy=citation_policy or plan.policy)
            plan, retrieval = await self._retrieve_passages(plan)
            yield RetrievalEvent(retrieval)
            async with aclosing(self._stream_events(plan, retrieval)) as events:
                async for event in events:
                    yield event
        except AgenticRagError as error:
            yield ErrorEvent(error)

    # --- one answer

    def _make_plan(self, query: Query, generator: str | None, history: Sequence[Message]) -> _AnswerPlan:
        name = self._options.generator if generator is None else generator
        if name not in GENERATORS:
            raise InvalidRequest(f"no generator is named {name!r}; there are {', '.join(sorted(GENERATORS))}", field="generator")
        if len(history) > MAX_HISTORY:
            raise InvalidRequest(f"history has at most {MAX_HISTORY} turns; this one has {len(history)}")
        return _AnswerPlan(query=query, generator=name, history=tuple(history), policy=self._options.citation_policy)

    async def _retrieve_passages(self, plan: _AnswerPlan) -> tuple[_AnswerPlan, Retrieval]:
        """Make the question self-contained and search for it. The trace shows both forms of a question with a history."""
        retriever, warnings = self._retrievers.get(plan.strategy), self._list_warnings(plan)
        if not plan.history:
            return plan, (await retriever.retrieve(plan.query)).with_warnings(warnings)
        question = plan.query.text
        rewritten = await self._rewriter.rewrite(question, plan.history)
        plan = replace(plan, query=replace(plan.query, text=rewritten.question))
        retrieval = (await retriever.retrieve(plan.query)).with_warnings(warnings)
        retrieval = with_failures(retrieval, *([rewritten.failure] if rewritten.failure is not None else []))
        details = {"question": question, "self_contained": rewritten.question, "self_contained_by": rewritten.by}
        return plan, replace(retrieval, usage=retrieval.usage + rewritten.usage, trace=with_details(retrieval.trace, **details))

    def _list_warnings(self, plan: _AnswerPlan) -> tuple[str, ...]:
        return generator_warnings(plan.generator, generative=self._model.generative)

    async def _finish_answer(self, plan: _AnswerPlan, retrieval: Retrieval) -> Answer:
        async with aclosing(self._stream_events(plan, retrieval)) as events:
            async for event in events:
                if isinstance(event, DoneEvent):
                    return event.answer
        raise AssertionError("an answer's events end with the answer")

    async def _stream_events(self, plan: _AnswerPlan, retrieval: Retrieval) -> AsyncGenerator[AnswerEvent, None]:
        brief = await self._make_brief(plan, retrieval)
        if brief.refusal is not None:
            ending = Ending(plan.generator, plan.started, brief.retrieval, brief.usage, brief.answerable, brief.refusal)
            ending = replace(ending, nearest=brief.quotations, scale=plan.query.tuned.confidence)
            for event in refusal_events(ending):
                yield event
            return
        generated: Generated | None = None
        first_s: float | None = None
        async with aclosing(self._generators[plan.generator].stream(self._make_assignment(plan, brief))) as stream:
            async for part in stream:
                if isinstance(part, Generated):
                    generated = part
                    continue
                if first_s is None and isinstance(part, TokenEvent):
                    first_s = time.perf_counter() - plan.started
                yield part
        if generated is None:
            raise AssertionError("a generator's events end with the answer")
        ending = Ending(plan.generator, plan.started, generated.retrieval, generated.usage, 0.0, generated.refusal, generated)
        if generated.refusal is not None:
            for event in refusal_events(ending):
                yield event
            return
        sure = self._confidence_of(brief, generated)
        yield UsageEvent(generated.usage)
        timed = with_first_sentence(generated.retrieval, generated.model, first_s or 0.0)
        answer = answer_of(replace(ending, confidence=sure, retrieval=timed, scale=plan.query.tuned.confidence))
        if self._contradictions is not None:
            answer = await self._contradictions.add_contradictions(plan.query, answer)
        yield DoneEvent(answer)

    def _confidence_of(self, brief: Brief, generated: Generated) -> float:
        statuses = [claim.status for claim in generated.claims]
        if generated.model == EXTRACTIVE:
            # A failed sentence lowers the confidence of the others, but checked and sent sentences stay.
            sure = of_quotations(brief.answerable, statuses)
            return max(sure, self._options.min_confidence) if generated.supported else 0.0
        quotes = [support.quote for quotation in brief.quotations[:1] for support in quotation.supports]
        agrees = any(quote in citation.quote or citation.quote in quote for citation in generated.citations for quote in quotes)
        passages = brief.context.passages
        cited = {citation.chunk_id for citation in generated.citations}
        best = max((passage.score for passage in passages), default=0.0) or 1.0
        rank = max((passage.score for passage in passages if passage.chunk_ids & cited), default=0.0) / best
        return of_model(brief.answerable, statuses, agrees=agrees, rank=rank)

    def _make_assignment(self, plan: _AnswerPlan, brief: Brief) -> Assignment:
        async def retrieve_brief(question: str) -> Brief:
            strategy = SINGLE_FACTS if plan.strategy == GLOBAL else plan.strategy
            part = replace(plan, query=replace(plan.query, text=question), strategy=strategy, history=(), prompt=None)
            return await self._make_brief(part, await self._retrievers.get(strategy).retrieve(part.query))

        return Assignment(
            question=plan.query.text,
            brief=brief,
            investigate=retrieve_brief,
            budget=self._budget_of(brief.request.model if brief.request is not None else None),
            policy=plan.policy,
            style=plan.style,
            patience_s=self._patience_s(plan),
        )

    def _budget_of(self, model: str | None) -> PromptBudget:
        """Return the budget of a prompt for a model; None: the model's own."""
        options = self._options
        window = window_of(self._model, model, options.window_tokens)
        return PromptBudget(window, options.max_tokens, options.context_tokens)

    def _patience_s(self, plan: _AnswerPlan) -> float | None:
        """Return the model's time in seconds: most of the request's time, less the time of retrieval."""
        patience_s, timeout_s = self._options.model_patience_s, plan.query.timeout_s
        if timeout_s is not None:
            patience_s = min(patience_s or timeout_s, FALLBACK_SHARE * timeout_s)
        return None if patience_s is None else max(0.0, patience_s - (time.perf_counter() - plan.started))

    async def _make_brief(self, plan: _AnswerPlan, retrieval: Retrieval) -> Brief:
        """Return the brief of an answer: from the passages found, or from partial answers."""
        overview = retrieval.trace.details.get(OVERVIEW)
        # A model reads the passages of a document like those of any search.
        partial = plan.strategy == GLOBAL or overview == ALL_DOCUMENTS or (overview is not None and not self._model.generative)
        if partial and self._global is not None:
            return await self._global.brief(plan.query, retrieval, plan.history)
        return await self._brief_passages(plan, retrieval)

    async def _brief_passages(self, plan: _AnswerPlan, retrieval: Retrieval) -> Brief:
        options, generative = self._options, self._model.generative
        prompt, model = self._choose_prompt(plan, retrieval)
        sizes, budget = self._budget_of(model), options.context_tokens
        if generative:
            budget = sizes.evidence_tokens(prompt, plan.query.text, history=plan.history)
            evidence = retrieval
        else:
            evidence, budget = await read_around(retrieval, plan.query, self._documents), QUOTED_FACTOR * budget
        context = await self._build_context(plan.query, evidence, budget)
        brief = Brief(retrieval=retrieval, context=context, answerable=0.0, question=plan.query.text, usage=retrieval.usage)
        if not context.passages:
            return replace(brief, refusal="nothing_found")
        judgement = await self._judge_evidence(plan.query.text, context)
        details = {**judgement.details, "evidence_confidence": round(judgement.confidence, 4)}
        retrieval = replace(retrieval, trace=with_details(retrieval.trace, **details))
        quotable = judgement.confidence >= options.min_confidence
        quoted = [context.passages[quotation.passage] for quotation in judgement.quotations]
        brief = replace(
            brief,
            retrieval=retrieval,
            answerable=judgement.confidence,
            quotations=quotations_of(judgement, context),
            quotable=quotable,
            introduction=introduce_bearers(retrieval, quoted),
        )
        if _is_foreign(retrieval, judgement) if generative else not quotable:
            return replace(brief, refusal="below_confidence")
        if not generative:
            return brief
        context = await widen_context(context, plan.query, self._documents, budget_tokens=budget)
        messages = render_messages(prompt, plan.query.text, context, plan.history, window=sizes.window)
        request = replace(self._make_request(plan, retrieval, prompt, messages), model=model)

        def shorter_request() -> ModelRequest:
            fewer = halve_context(context)
            again = render_messages(prompt, plan.query.text, fewer, plan.history, window=self._budget_of(model).window)
            return replace(request, messages=again, account=UsageAccount(request.account))

        return replace(brief, context=context, request=request, shorter=shorter_request)

    async def _judge_evidence(self, question: str, context: Context) -> Judgement:
        return await self._judge.judge(question, [passage_text(passage) for passage in context.passages])

    async def select_passages(self, query: Query, retrieval: Retrieval) -> tuple[Passage, ...]:
        """Return the passages that an answer to the query would read, best first, divided by the weights of the levels."""
        return (await self._build_context(query, retrieval, self._options.context_tokens)).passages

    async def _build_context(self, query: Query, retrieval: Retrieval, budget_tokens: int) -> Context:
        visible = {hit.id: hit.visible for hit in retrieval.hits}
        absent = [chunk for chunk in theme_chunk_ids(retrieval) if chunk not in visible]
        if absent:
            visible |= await self._documents.hydrate(query.tenant_id, absent)
        return build_context(retrieval, visible, budget_tokens=budget_tokens)

    def _choose_prompt(self, plan: _AnswerPlan, retrieval: Retrieval) -> tuple[Prompt, str | None]:
        """Return the prompt and the model's name; None: the model's own."""
        options, both_levels = self._options, _both_levels(plan, retrieval)
        prompt = plan.prompt or (options.dual_level_prompt or built_in("dual_level") if both_levels else built_in("answer"))
        model = plan.model or (options.dual_level_model if both_levels else None)
        return prompt, model if self._model.generative else None

    def _make_request(
        self, plan: _AnswerPlan, retrieval: Retrieval, prompt: Prompt, messages: tuple[Message, ...]
    ) -> ModelRequest:
        options = self._options
        default = options.dual_level_temperature if _both_levels(plan, retrieval) else options.temperature
        return ModelRequest(
            prompt=prompt.id,
            messages=messages,
            temperature=plan.temperature if plan.temperature is not None else default,
            max_tokens=options.max_tokens,
        )


def _is_foreign(retrieval: Retrieval, judgement: Judgement) -> bool:
    """Return whether a question is about none of the documents. Relevance across languages is not calibrated."""
    relevance = retrieval.relevance if retrieval.hits and not retrieval.themes else 0.0
    return 0.0 < relevance < FOREIGN_RELEVANCE and judgement.confidence < FOREIGN_CONFIDENCE and not judgement.language


def _both_levels(plan: _AnswerPlan, retrieval: Retrieval) -> bool:
    return plan.both_levels or bool(retrieval.themes)
