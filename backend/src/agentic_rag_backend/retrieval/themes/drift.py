"""Drift: from themes to follow-up questions to passages (after DRIFT search of Microsoft's GraphRAG).

Themes suggest searches that the question does not name. In one call, a cheap model sketches an answer from the themes and
asks follow-up questions. Without a model, the follow-up questions are the question extended by each theme's keywords. Local
searches answer them in parallel, and their passages are merged with those of the question.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agentic_rag_backend.domain.query import Hit, Query, Retrieval, ThemeHit, Trace
from agentic_rag_backend.errors import AgenticRagError
from agentic_rag_backend.models.llm.base import list_of, object_of, objects_in, text_of
from agentic_rag_backend.prompts import built_in, fence
from agentic_rag_backend.retrieval.base import Retriever
from agentic_rag_backend.retrieval.options.model import SyntheticQuestionsOption, ThemesOptions, optional_field
from agentic_rag_backend.retrieval.structured_calls import Spending, StructuredCalls, line_in
from agentic_rag_backend.retrieval.themes.community import theme_search
from agentic_rag_backend.retrieval.themes.finder import FoundThemes, ThemeFinder, ThemeSearch
from agentic_rag_backend.telemetry.logs import get_logger

_log = get_logger(__name__)

ASKED_WEIGHT = 0.8
"""Score factor of passages that a model's follow-up question found, relative to passages of the original question."""
SEEN_WEIGHT = 0.5
"""Score factor of passages that a question extended by a theme's keywords found. A higher factor displaced passages of the
original question (theme questions of the examples, wanted documents among ten passages: .48 without, .44 to .46 at .8).
"""
KEYWORDS = 4
READ = 5
"""Number of themes that follow-up questions are made from."""
COUNTED = 20
"""Top passages of each search that are counted for the number of searches that found a passage."""
MAX_CHARACTERS = 400
"""Maximum length of a follow-up question and of the sketched answer."""
_SCHEMA = object_of({"answer": text_of(MAX_CHARACTERS), "follow_ups": list_of(object_of({"question": text_of(MAX_CHARACTERS)}))})


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftOptions:
    """Deployment defaults: follow-up questions, token budget of themes, model calls (one for follow-up questions, others for
    rating).
    """

    follow_ups: int = 3
    budget_tokens: int = 4000
    max_calls: int = 4


@dataclass(frozen=True, slots=True)
class Primer:
    """Additional search texts. ``sketch`` is the model's unverified answer, used as a search text only. Empty without a model."""

    follow_ups: tuple[str, ...]
    sketch: str = ""
    failure: str | None = None
    by_model: bool = False
    words: tuple[str, ...] = ()
    """The words of the themes that were added to the question. Empty if a model wrote the follow-up questions."""

    @property
    def weight(self) -> float:
        """Return the score factor of passages that these searches found."""
        return ASKED_WEIGHT if self.by_model else SEEN_WEIGHT


class DriftRequestOptions(SyntheticQuestionsOption, ThemesOptions):
    follow_ups: int = optional_field(ge=0, le=8, description="maximum number of follow-up questions")


class Drift:
    """Searches themes, then passages for the question and its follow-up questions. The module describes the steps.

    Args:
        finder: finds the themes.
        local: finds passages for the question and each follow-up question.
        calls: calls of the cheap model.
    """

    def __init__(self, finder: ThemeFinder, local: Retriever, calls: StructuredCalls, options: DriftOptions) -> None:
        self._finder = finder
        self._local = local
        self._calls = calls
        self._options = options

    async def retrieve(self, query: Query) -> Retrieval:
        """Return passages for the question and its follow-up questions, and the themes they were made from.

        Raises:
            AgenticRagError: the search for the question itself failed.
        """
        spending = Spending(int(query.options.get("max_calls", self._options.max_calls)))
        limit = int(query.options.get("follow_ups", self._options.follow_ups))
        search = theme_search(query, budget_tokens=self._options.budget_tokens)
        # The follow-up questions must not depend on the number of returned themes.
        search = replace(search, limit=max(search.limit, READ))
        local_search = asyncio.ensure_future(self._local.retrieve(_of_local(query, query.text)))
        try:
            themes, problem = await self._themes(query, search, spending)
            primer = await self._primer(query.text, themes.themes[:READ] if themes else (), limit, spending)
            texts = [*primer.follow_ups, *([primer.sketch] if primer.sketch else [])]
            followed = await asyncio.gather(
                *(self._local.retrieve(_of_local(query, text)) for text in texts), return_exceptions=True
            )
            local_retrieval = await local_search
        finally:
            local_search.cancel()
        answered, failed = _sorted_out(texts, followed)
        hidden = (*local_retrieval.trace.hidden, *([problem] if problem and themes is None else []), *failed)
        failures = [message for message in (problem, primer.failure, *failed) if message]
        hits = merge_hits(local_retrieval.hits, [message.hits for message in answered], weight=primer.weight)
        theme_hits = themes.themes if themes else ()
        return Retrieval(
            hits=hits,
            facts=local_retrieval.facts,
            themes=theme_hits,
            # Follow-up questions are made from existing content, so their hits are no evidence that the question can be answered.
            relevance=max(local_retrieval.relevance, max((theme.score for theme in theme_hits), default=0.0)),
            usage=spending.usage,
            trace=replace(_trace(local_retrieval, themes, primer, failures), hidden=hidden),
        )

    async def _themes(self, query: Query, search: ThemeSearch, spending: Spending) -> tuple[FoundThemes | None, str | None]:
        """Return the themes. On failure return None and the reason: passages alone are a valid answer."""
        if not search.rated:
            return await self._find_themes(query, search, spending)
        # One call is reserved for the follow-up questions.
        spending.allowed -= 1
        themes = await self._find_themes(query, search, spending)
        spending.allowed += 1
        return themes

    async def _find_themes(self, query: Query, search: ThemeSearch, spending: Spending) -> tuple[FoundThemes | None, str | None]:
        try:
            themes = await self._finder.find(query, search, spending)
        except AgenticRagError as error:
            _log.warning("drift_without_themes", tenant_id=query.tenant_id.value, code=error.code, reason=error.message)
            return None, f"the themes failed: {error.code}"
        return themes, "; ".join(themes.failures) or None

    async def _primer(self, question: str, themes: Sequence[ThemeHit], limit: int, spending: Spending) -> Primer:
        if not themes or not limit:
            return Primer(())
        plain = follow_ups_of_themes(question, themes, limit)
        if not self._calls.possible or not spending.left:
            return plain
        themes_text = "\n".join(
            fence("theme", f"{theme.summary}\n{_findings_text(theme)}", attributes={"name": theme.name}) for theme in themes
        )
        values = {"themes": themes_text, "question": fence("question", question), "most": str(limit)}
        spending.begin()
        reply = await self._calls.ask(built_in("drift_primer"), values, _SCHEMA, max_tokens=500)
        spending.add_call(reply)
        if reply.parsed is None:
            return replace(plain, failure=f"follow-up questions failed: {reply.failure}")
        follow_ups = (line_in(item, "question", limit=MAX_CHARACTERS) for item in objects_in(reply.parsed, "follow_ups"))
        fresh = tuple(dict.fromkeys(text for text in follow_ups if text and text != question))[:limit]
        return Primer(fresh, line_in(reply.parsed, "answer", limit=MAX_CHARACTERS), by_model=True)


def follow_ups_of_themes(question: str, themes: Sequence[ThemeHit], limit: int) -> Primer:
    """Return the question extended by the keywords of each of the best themes."""
    words = tuple(dict.fromkeys(" ".join(theme.keywords[:KEYWORDS]) or theme.name for theme in themes))[:limit]
    return Primer(tuple(f"{question[:MAX_CHARACTERS]} {about}" for about in words), words=words)


def merge_hits(local_hits: Sequence[Hit], followed: Sequence[Sequence[Hit]], *, weight: float) -> tuple[Hit, ...]:
    """Return the hits of all lists, each chunk once with its best score. Only follow-up hits are multiplied by ``weight``.

    Of equal scores, passages that more searches found come first, then those of the earlier list: ids of documents are random.
    """
    best = {hit.id: hit for hit in local_hits}
    times = Counter(hit.id for hits in (local_hits, *followed) for hit in hits[:COUNTED])
    for hits in followed:
        for hit in hits:
            if hit.id not in best or weight * hit.score > best[hit.id].score:
                best[hit.id] = replace(hit, score=weight * hit.score)
    return tuple(sorted(best.values(), key=lambda hit: (-hit.score, -times[hit.id])))


def _of_local(query: Query, text: str) -> Query:
    # The local search does not know the options for themes. It finds as many hits as `merge_hits` counts.
    return replace(query, text=text, options={}).with_candidates(COUNTED)


def _findings_text(theme: ThemeHit) -> str:
    return "\n".join(f"- {finding.statement}" for finding in theme.findings)


def _sorted_out(texts: Sequence[str], outcomes: Sequence[Retrieval | BaseException]) -> tuple[list[Retrieval], list[str]]:
    """Separate successful follow-up searches from failures. A failed search does not affect the others."""
    answered: list[Retrieval] = []
    failed: list[str] = []
    for text, outcome in zip(texts, outcomes, strict=True):
        if isinstance(outcome, Retrieval):
            answered.append(outcome)
            continue
        if not isinstance(outcome, Exception):
            raise outcome
        code = outcome.code if isinstance(outcome, AgenticRagError) else type(outcome).__name__
        _log.error("drift_follow_up_failed", characters=len(text), code=code, exc_info=outcome)
        failed.append(code)
    reasons = [f"{failed.count(code)} of {len(texts)} follow-up searches failed: {code}" for code in dict.fromkeys(failed)]
    return answered, reasons


def _trace(retrieval: Retrieval, themes: FoundThemes | None, primer: Primer, failures: Sequence[str]) -> Trace:
    own_trace = retrieval.trace
    return Trace(
        strategy="drift",
        methods_used=tuple(dict.fromkeys(("community", *own_trace.methods_used))),
        fusion="best of question and follow-up questions",
        failures=(*own_trace.failures, *failures),
        warnings=(*own_trace.warnings, *(themes.warnings if themes else ())),
        details={
            **own_trace.details,
            **({"generation": themes.pointer.generation, "communities_stale": themes.pointer.stale} if themes else {}),
            "themes": dict(themes.details) if themes else {},
            "follow_ups": list(primer.follow_ups if primer.by_model else primer.words),
            "asked_by": "model" if primer.by_model else "themes",
        },
    )
