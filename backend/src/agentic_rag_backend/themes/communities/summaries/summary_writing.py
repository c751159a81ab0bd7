"""Write a community's summary with a language model, and fall back to the extractive one if the model fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentic_rag_backend.domain.answer import Usage
from agentic_rag_backend.domain.graph import CommunitySummary, Finding, Label, Support, contains_name
from agentic_rag_backend.errors import ModelReplyInvalid, ModelUnavailable
from agentic_rag_backend.fairness import current_actor
from agentic_rag_backend.language.tokens import estimate_tokens, text_tokens
from agentic_rag_backend.models.llm.base import (
    INTEGER,
    NUMBER,
    TEXT,
    LanguageModel,
    Message,
    ModelReply,
    ModelRequest,
    list_of,
    object_of,
    text_of,
)
from agentic_rag_backend.prompts import Prompt, built_in, fence
from agentic_rag_backend.telemetry.logs import get_logger
from agentic_rag_backend.themes.communities.summaries.community_evidence import Fact, SummaryEvidence
from agentic_rag_backend.themes.communities.summaries.extractive_summaries import (
    EXTRACTIVE_MODEL,
    EXTRACTIVE_VERSION,
    MAX_FINDINGS,
    extractive_summary,
)
from agentic_rag_backend.themes.communities.summaries.keywords import MAX_KEYWORDS, spread

_log = get_logger(__name__)

_NUMBER_TOKENS = 2
"""Tokens of a fact's number in the prompt."""
_REPLY_TOKENS = 700
_PART_CHARACTERS = 600
_TITLE_CHARACTERS = 200
_SCHEMA = object_of(
    {
        "title": text_of(_TITLE_CHARACTERS),
        "summary": TEXT,
        "keywords": list_of(TEXT, MAX_KEYWORDS),
        "findings": list_of(object_of({"statement": TEXT, "sources": list_of(INTEGER)}), MAX_FINDINGS),
        "rating": NUMBER,
    }
)


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary and its cost. ``failure`` is the reason if the extractive summary replaced the model's."""

    summary: CommunitySummary
    usage: Usage = field(default_factory=Usage)
    failure: ModelUnavailable | None = None


class Summariser:
    """Writes summaries: with the model if it is generative, otherwise extractive ones.

    Args:
        model: the model; an extractive one is never called.
        model_name: the name of the model to call; None: the model's own default.
        budget_tokens: most prompt tokens of one summary, estimated at four characters each.
        prompt: the built-in prompt.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        model_name: str | None = None,
        budget_tokens: int = 4_000,
        prompt: str = "community_summary",
    ) -> None:
        self._model = model
        self._asked = model_name
        self._budget_tokens = budget_tokens
        self._prompt: Prompt = built_in(prompt)

    @property
    def generative(self) -> bool:
        """Whether a model writes."""
        return self._model.generative

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The (prompt version, model) under which summaries are looked up, best first."""
        extractive = (EXTRACTIVE_VERSION, EXTRACTIVE_MODEL)
        return ((self._prompt.id, self._asked or self._model.name), extractive) if self.generative else (extractive,)

    async def write_summary(
        self, evidence: SummaryEvidence, term_weights: Mapping[str, float], *, by_model: bool
    ) -> WrittenSummary:
        """Return the summary; a model's failure is logged, named in the result and answered by the extractive summary."""
        return await self.instead_of(extractive_summary(evidence, term_weights), evidence, by_model=by_model)

    async def instead_of(self, plain: CommunitySummary, evidence: SummaryEvidence, *, by_model: bool) -> WrittenSummary:
        """As `write_summary`, with an existing extractive summary."""
        if not (by_model and self.generative):
            return WrittenSummary(plain)
        facts = self._within_budget(evidence)
        request = self._make_request(evidence, facts)
        try:
            reply = await self._model.complete(request)
        except ModelUnavailable as error:
            _log.warning("community_summary_failed", fingerprint=evidence.fingerprint, code=error.code, reason=error.message)
            return WrittenSummary(plain, request.account.usage, failure=error)
        try:
            return WrittenSummary(self._parse_reply(evidence, facts, reply, plain), reply.usage)
        except ModelReplyInvalid as error:
            _log.warning("community_summary_failed", fingerprint=evidence.fingerprint, code=error.code, reason=error.message)
            return WrittenSummary(plain, reply.usage, failure=error)

    def estimate_usage(self, evidence: SummaryEvidence) -> Usage:
        """Return the cost of writing this summary by the model, without calling it."""
        messages = self._make_request(evidence, self._within_budget(evidence)).messages
        return Usage(text_tokens(message.content for message in messages), _REPLY_TOKENS // 2, 1)

    def estimate_cost(self, usage: Usage) -> float | None:
        """Return the cost of an estimated usage in units of the currency. None: the price of the model is unknown."""
        return current_actor().estimate_cost(self._asked or self._model.name, usage)

    def _within_budget(self, evidence: SummaryEvidence) -> tuple[Fact, ...]:
        room = self._budget_tokens // 2
        chosen = []
        for fact in evidence.facts:
            room -= estimate_tokens(fact.statement) + _NUMBER_TOKENS
            if room < 0:
                break
            chosen.append(fact)
        return tuple(chosen)

    def _make_request(self, evidence: SummaryEvidence, facts: Sequence[Fact]) -> ModelRequest:
        entities = "\n".join(f"{entity.name} ({entity.type})" for entity in evidence.entities)
        system, user = self._prompt.render(
            {
                "entities": fence("entities", entities, attributes={"total": evidence.entity_count}),
                "parts": fence("parts", self._format_parts(evidence)) if evidence.children else "",
                "facts": fence("facts", "\n".join(f"{n}. {' '.join(f.statement.split())}" for n, f in enumerate(facts, 1))),
            }
        )
        return ModelRequest(
            prompt=self._prompt.id,
            messages=(Message("system", system), Message("user", user)),
            schema=_SCHEMA,
            model=self._asked,
            max_tokens=_REPLY_TOKENS,
        )

    def _format_parts(self, evidence: SummaryEvidence) -> str:
        room = self._budget_tokens // 2
        lines = []
        for child in sorted(evidence.children, key=lambda child: (-child.rating, child.name)):
            line = f"{child.name}: {child.summary[:_PART_CHARACTERS]}"
            room -= estimate_tokens(line)
            if room < 0:
                break
            lines.append(line)
        return "\n".join(lines)

    def _parse_reply(
        self, evidence: SummaryEvidence, facts: Sequence[Fact], reply: ModelReply, plain: CommunitySummary
    ) -> CommunitySummary:
        """Check the reply: findings must rest on facts that were given, and there must be a summary.

        Raises:
            ModelReplyInvalid: no JSON object, or no text in it.
        """
        parsed = reply.parsed or {}
        prose = _read_text(parsed.get("summary"))
        if not prose:
            raise ModelReplyInvalid("the reply holds no summary")
        title = _read_text(parsed.get("title"))[:_TITLE_CHARACTERS]
        words = dict.fromkeys(text for text in map(_read_text, _read_list(parsed.get("keywords"))) if text)
        prompt_version, model = self.keys[0]
        return replace(
            plain,
            title=_make_label(title, evidence, facts) if title else None,
            summary=prose,
            keywords=tuple(_make_label(text, evidence, facts) for text in [*words][:MAX_KEYWORDS]) or plain.keywords,
            findings=_read_findings(_read_list(parsed.get("findings")), evidence, facts) or plain.findings,
            rating=_read_rating(parsed.get("rating"), plain.rating),
            model=model,
            prompt_version=prompt_version,
            tokens=reply.usage.prompt_tokens + reply.usage.completion_tokens,
            sources=_all_sources(evidence, facts),
        )


def _all_sources(evidence: SummaryEvidence, facts: Sequence[Fact]) -> tuple[Support, ...]:
    """Return every source shown to the model, since its prose may rest on any of them; one passage for each name is enough."""
    children = evidence.children
    sources = [source for fact in facts for source in fact.sources]
    sources += [source for child in children for source in child.sources]
    names = [entity.passages for entity in evidence.entities]
    names += [label.sources for child in children for label in (*child.names, *((child.title,) if child.title else ()))]
    return tuple(dict.fromkeys([*sources, *(passages[0] for passages in names if passages)]))


def _make_label(text: str, evidence: SummaryEvidence, facts: Sequence[Fact]) -> Label:
    """Return a title or keyword with the evidence that contains it; without any, the text is the model's own, like the prose."""
    from_facts = [source for fact in facts if contains_name(fact.statement, text) for source in fact.sources]
    from_entities = [source for entity in evidence.entities if contains_name(entity.name, text) for source in entity.passages]
    return Label(text, spread([*from_facts, *from_entities]))


def _read_findings(items: Sequence[object], evidence: SummaryEvidence, facts: Sequence[Fact]) -> tuple[Finding, ...]:
    """Return the findings that cite facts. A finding about an entity that none of its facts names also depends on its name."""
    findings = []
    for item in items:
        statement = _read_text(item.get("statement")) if isinstance(item, Mapping) else ""
        numbers = _read_list(item.get("sources")) if isinstance(item, Mapping) else []
        valid = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= len(facts)]
        if statement and valid and len(valid) == len(numbers):
            cited_facts = [facts[number - 1] for number in valid]
            sources = [source for fact in cited_facts for source in fact.sources]
            for entity in evidence.entities:
                if contains_name(statement, entity.name) and not any(
                    contains_name(fact.statement, entity.name) for fact in cited_facts
                ):
                    sources += entity.passages[:1]
            findings.append(Finding(statement, tuple(dict.fromkeys(sources))))
    return tuple(findings[:MAX_FINDINGS])


def _read_rating(value: object, default: float) -> float:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10
    return float(value) if usable and isinstance(value, int | float) else default


def _read_text(value: object) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _read_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
