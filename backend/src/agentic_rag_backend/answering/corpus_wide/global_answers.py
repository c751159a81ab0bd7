"""Answers to corpus-wide questions: partial answers from themes are scored, and the useful ones are merged into one answer.

Map: `partial_answers` by the cheap model, or `select_overview` without a model or after every call of it failed. Reduce: one call
of the answer's own model over the best points and the passages behind them. If no point is left, or the best is below
``ANSWER_MIN_CONFIDENCE``, the answer is a refusal and no further call is made.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.base import Brief, with_details, with_failures
from agentic_rag_backend.answering.corpus_wide.document_overview import (
    introduce_document,
    introduce_mentions,
    list_mentions,
    select_central,
)
from agentic_rag_backend.answering.corpus_wide.overview import Collected, introduce_themes, nearest_passages, select_overview
from agentic_rag_backend.answering.corpus_wide.partial_answers import (
    BEST_SCORE,
    MAP_REPLY_TOKENS,
    MAX_FINDINGS,
    PartialAnswers,
    Point,
    ThemeWithPassages,
    partial_answers,
    themes_with_passages,
)
from agentic_rag_backend.answering.evidence.context import Context, Passage, PromptBudget, theme_chunk_ids
from agentic_rag_backend.answering.quotations import passage_text, quotations_of
from agentic_rag_backend.answering.rendering import with_history
from agentic_rag_backend.domain.query import Query, Retrieval
from agentic_rag_backend.language.questions.kinds import asked_for
from agentic_rag_backend.language.questions.overviews import asks_about_everything
from agentic_rag_backend.language.sentences import with_full_stop
from agentic_rag_backend.language.tokens import text_tokens
from agentic_rag_backend.models.embedding.base import TextEncoder
from agentic_rag_backend.models.embedding.calibration import Calibrator
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, Message, ModelRequest, window_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls
from agentic_rag_backend.retrieval.themes.overviews import ALL_DOCUMENTS, MENTIONED, OVERVIEW
from agentic_rag_backend.stores.catalogue.base import DocumentCatalogue

STAND_IN_POINTS = 8
"""Number of points that form the answer if the model fails to write it."""


OF_EVERYTHING = 0.9
"""Confidence of an overview of all themes without a model. It answers by its nature; this value is not fitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalAnswerOptions:
    """Deployment defaults of corpus-wide answers.

    Args:
        budget_tokens: token budget of the themes and passages for partial answers.
        max_calls: maximum number of model calls per request.
        context_tokens: token budget of the points and passages for the final answer.
        max_tokens: maximum length of the answer.
        model: model that writes the answer; None: the default.
        window_tokens: context window of the models; None: by their names.
    """

    budget_tokens: int = 12_000
    max_calls: int = 8
    context_tokens: int = 3_000
    max_tokens: int = 1024
    temperature: float = 0.0
    model: str | None = None
    window_tokens: int | None = None
    min_confidence: float = 0.25


class GlobalAnswers:
    """Prepares answers from themes, as the module describes."""

    def __init__(
        self,
        *,
        calls: StructuredCalls,
        encoder: TextEncoder,
        judge: AnswerJudge,
        documents: DocumentCatalogue,
        options: GlobalAnswerOptions,
        calibrator: Calibrator,
    ) -> None:
        self._calls = calls
        self._judge = judge
        self._encoder = encoder
        self._documents = documents
        self._options = options
        self._calibrator = calibrator

    async def brief(self, query: Query, retrieval: Retrieval, history: Sequence[Message] = ()) -> Brief:
        """Return the brief for writing an answer from themes or, for an overview of one document, from its central sentences."""
        if retrieval.trace.details.get(OVERVIEW, ALL_DOCUMENTS) != ALL_DOCUMENTS and retrieval.backing is not None:
            subject, hits = retrieval.trace.details.get(MENTIONED), retrieval.backing.hits
            if subject is not None:
                points = list_mentions(subject, hits[: query.limit])
                return self._brief_points(query, retrieval, points, introduce_mentions(subject, hits) if points else "")
            points = list((await select_central(hits, self._encoder)).points)
            return self._brief_points(query, retrieval, points, introduce_document(points, hits))
        return await self._brief_themes(query, retrieval, history)

    async def _brief_themes(self, query: Query, retrieval: Retrieval, history: Sequence[Message]) -> Brief:
        """Make partial answers from the themes. Return the brief for writing the final answer from them."""
        ids = theme_chunk_ids(retrieval, limit=MAX_FINDINGS)
        visible = await self._documents.hydrate(query.tenant_id, ids) if ids else {}
        budget = int(query.options.get("budget_tokens", self._options.budget_tokens))
        room = self._map_room(query.text, budget)
        themes = themes_with_passages(retrieval.themes, visible, budget_tokens=budget, most_tokens=room)
        # Rating the themes has used calls. One call is reserved for the answer.
        spending = Spending(self._allow_calls(query) - retrieval.usage.calls - 1)
        of_all = asks_about_everything(query.text)
        partial, by_model = await self._ask_partial(query.text, themes, spending, room)
        answerable = max(partial.scores, default=0.0)
        # Themes always answer "What are these documents about?", also if the model finds nothing in them.
        by_model = by_model and not (of_all and not partial.points)
        if not by_model:
            hits = retrieval.backing.hits if retrieval.backing is not None else ()
            calibration = await self._calibrator.current_calibration()
            collected = Collected(retrieval.themes, visible, hits, calibration.questions)
            plain, answerable = await self._without_model(query.text, collected)
            partial = replace(plain, calls=partial.calls, failed=partial.failed)
        reasons = _list_reasons(partial, by_model=by_model and bool(themes), possible=self._calls.possible)
        points, context = _fit_points(partial.points, self._evidence_tokens(query.text, history))
        details = _details_of(themes, partial, points, by_model=by_model)
        traced = replace(retrieval, trace=with_details(retrieval.trace, partial_answers=details))
        brief = Brief(
            retrieval=with_failures(traced, *reasons),
            context=context,
            answerable=answerable,
            question=query.text,
            text=stand_in(points),
            usage=retrieval.usage + spending.usage,
        )
        if not points:
            return replace(brief, answerable=0.0, refusal="nothing_found")
        if answerable < self._options.min_confidence and not by_model and not of_all:
            return replace(brief, refusal="below_confidence")
        if not self._calls.possible and asked_for(query.text).fact:
            # Similar sentences make an account, but not a fact. For a fact, the judge decides whether one states it.
            return await self._make_brief(brief)
        if not by_model:
            return replace(brief, introduction=introduce_themes(points, retrieval.themes, of_all=of_all))
        if self._allow_calls(query) <= retrieval.usage.calls + spending.begun:
            return brief
        return replace(brief, request=self._make_request(query.text, points, context, history))

    def _brief_points(self, query: Query, retrieval: Retrieval, candidates: Sequence[Point], introduction: str) -> Brief:
        points, context = _fit_points(candidates, self._options.context_tokens)
        brief = Brief(
            retrieval=retrieval,
            context=context,
            answerable=OF_EVERYTHING,
            question=query.text,
            text=stand_in(points),
            usage=retrieval.usage,
            introduction=introduction,
        )
        return brief if points else replace(brief, answerable=0.0, refusal="nothing_found")

    async def _make_brief(self, brief: Brief) -> Brief:
        """Return the brief of an answer that quotes its passages, or of a refusal."""
        judgement = await self._judge.judge(brief.question, [passage_text(passage) for passage in brief.context.passages])
        brief = replace(brief, answerable=judgement.confidence, text="", quotations=quotations_of(judgement, brief.context))
        if judgement.confidence < self._options.min_confidence:
            return replace(brief, refusal="below_confidence")
        return brief

    def _allow_calls(self, query: Query) -> int:
        return int(query.options.get("max_calls", self._options.max_calls))

    def _window_tokens(self, model: str | None) -> int:
        return window_of(self._calls.model, model, self._options.window_tokens)

    def _map_room(self, question: str, wanted_tokens: int) -> int:
        """Return the token budget of the themes and passages in one call for partial answers."""
        budget = PromptBudget(self._window_tokens(self._calls.model_name), MAP_REPLY_TOKENS, wanted_tokens)
        return budget.evidence_tokens(built_in("global_map"), question)

    def _evidence_tokens(self, question: str, history: Sequence[Message]) -> int:
        """Return the token budget of the points and passages of the answer."""
        options = self._options
        if not self._calls.possible:
            return options.context_tokens
        budget = PromptBudget(self._window_tokens(options.model), options.max_tokens, options.context_tokens)
        return budget.evidence_tokens(built_in("global_answer"), question, history=history)

    async def _ask_partial(
        self, question: str, themes: Sequence[ThemeWithPassages], spending: Spending, room: int
    ) -> tuple[PartialAnswers, bool]:
        """Return the model's partial answers, and whether a model wrote any."""
        if not self._calls.possible or not spending.left:
            return PartialAnswers(()), False
        answers = await partial_answers(question, themes, self._calls, spending, room=room)
        return answers, not answers.calls or len(answers.failed) < answers.calls

    async def _without_model(self, question: str, collected: Collected) -> tuple[PartialAnswers, float]:
        """Return the documents' own sentences, and the chance that they answer."""
        if asks_about_everything(question):
            return await select_overview(question, collected, self._encoder, of_all=True), OF_EVERYTHING
        return await asyncio.gather(
            select_overview(question, collected, self._encoder), self._judge.account(question, nearest_passages(collected))
        )

    def _make_request(self, question: str, points: Sequence[Point], context: Context, history: Sequence[Message]) -> ModelRequest:
        prompt = built_in("global_answer")
        lines = [f"{' '.join(point.statement.split())} (passages {_number_passages(point)})" for point in points]
        values = {
            "points": fence("points", "\n".join(f"- {line}" for line in lines)),
            "passages": "\n".join(
                fence("passage", passage.text, attributes={"id": passage.marker, "title": passage.title})
                for passage in context.passages
            ),
            "question": fence("question", question),
            "refusal": NOT_ANSWERED,
        }
        return ModelRequest(
            prompt=prompt.id,
            messages=with_history(prompt, values, history, window=self._window_tokens(self._options.model)),
            model=self._options.model,
            temperature=self._options.temperature,
            max_tokens=self._options.max_tokens,
        )


def stand_in(points: Sequence[Point]) -> str:
    """Return the best points as an answer: checked sentences with the numbers of their passages."""
    sentences = (
        f"{with_full_stop(point.statement)} {''.join(f'[{passage.marker}]' for passage in point.passages)}"
        for point in points[:STAND_IN_POINTS]
    )
    return " ".join(sentences)


def _fit_points(points: Sequence[Point], budget_tokens: int) -> tuple[list[Point], Context]:
    """Return the best points whose text and passages fit, each passage numbered once, from 1."""
    selected: list[Point] = []
    numbers: dict[tuple[str, int], Passage] = {}
    remaining = budget_tokens
    for point in points:
        fresh = [passage for passage in point.passages if (passage.chunk_id, passage.start_char) not in numbers]
        size = text_tokens([point.statement, *(passage.text for passage in fresh)])
        if selected and size > remaining:
            break
        remaining -= size
        for passage in fresh:
            numbers[passage.chunk_id, passage.start_char] = replace(
                passage, marker=len(numbers) + 1, score=point.score / BEST_SCORE
            )
        cited = dict.fromkeys((passage.chunk_id, passage.start_char) for passage in point.passages)
        selected.append(replace(point, passages=tuple(numbers[key] for key in cited)))
    return selected, Context(tuple(numbers.values()))


def _number_passages(point: Point) -> str:
    return ", ".join(str(passage.marker) for passage in point.passages)


def _list_reasons(partial: PartialAnswers, *, by_model: bool, possible: bool) -> list[str]:
    counts = Counter(partial.failed)
    reasons = [f"{count} of {partial.calls} partial answers failed: {code}" for code, count in counts.items()]
    if possible and not by_model and partial.calls:
        reasons.append("the answer was put together without the model")
    return reasons


def _details_of(
    themes: Sequence[ThemeWithPassages], partial: PartialAnswers, used: Sequence[Point], *, by_model: bool
) -> Mapping[str, object]:
    return {
        "written_by": "model" if by_model else "extractive",
        "themes": len(themes),
        "passages": sum(len(theme.passages) for theme in themes),
        "tokens": sum(theme.tokens for theme in themes),
        "calls": partial.calls,
        "failed": len(partial.failed),
        "points": len(partial.points),
        "zero": partial.zero,
        "unsupported": partial.unsupported,
        "used": len(used),
    }
