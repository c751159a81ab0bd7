"""Write an answer: with the model, or with a fallback if the model fails.

Sentences are checked while they arrive. A model that fails before a sentence was supported is replaced by the text of the brief
or by quotations. If a model breaks off after a supported sentence, the checked sentences stay.

Recognises replies in which a model says that the passages do not answer.

The prompts ask for one sentence, but models refuse in their own words, and in the language of the question. Such a reply is a
refusal only if no sentence of it is supported by a passage: "The report names no cause, because the inquiry goes on [1]" is an
answer. The words of the eight languages were chosen on 100 replies; `docs/reference/benchmarks/answers.md` has the figures on 100
others.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from agentic_rag_backend.answering.base import Brief, Refusal, with_failures
from agentic_rag_backend.answering.claims.base import Verdict, VerifierFactory
from agentic_rag_backend.answering.claims.reading import Claim, ClaimReader
from agentic_rag_backend.answering.draft import AnswerDraft, DraftEvent
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.errors import ModelBusy, ModelTimeout, ModelUnavailable, PromptTooLong
from agentic_rag_backend.language.languages import STOP_WORDS
from agentic_rag_backend.language.vocabulary.lexicon import Language, language_of_code
from agentic_rag_backend.language.words import content_forms
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, LanguageModel, ModelDelta, ModelRequest
from agentic_rag_backend.telemetry.logs import get_logger

_SENTINEL = content_forms(NOT_ANSWERED)
_FURTHER = ("unknown", "unclear", "insufficient", "lacks", "n/a", "nichts", "leider", "fehlt", "desconozco", "brak", "onbekend")
_LANGUAGES = tuple(map(language_of_code, STOP_WORDS))
_WORD = re.compile(r"n/a|[^\W\d_]+(?:['’][^\W\d_]+)*", re.IGNORECASE)
_SOURCES = re.compile(
    r"\b(?:passages?|documents?|documentation|context|sources?|texts?|excerpts?|snippets?|fragments?|material|information|evidence|"
    r"provided|"
    r"(?:text)?passagen?|textstellen?|textausschnitt\w*|auszüg\w*|kontext\w*|dokument\w*|unterlagen|quellen|"
    r"extraits?|contexte|"
    r"pasajes?|fragmentos?|contexto|documentos?|textos?|fuentes|"
    r"passagg\w+|bran[io]|contesto|document[io]|test[io]|font[ei]|"
    r"trechos?|fontes|"
    r"documenten|teksten?|fragmenten|bronnen|"
    r"fragment\w*|kontekst\w*|tek[sś]\w*|źródł\w*)\b",
    re.IGNORECASE,
)


def is_sentinel(text: str) -> bool:
    """Return whether a sentence is the one that the prompts ask for."""
    return content_forms(text) == _SENTINEL


def refuses(reply: str, *, cites: bool) -> bool:
    """Return whether a reply, of which no passage states a sentence, says that the passages do not answer.

    Args:
        cites: whether it has a marker. Then it must also mention the passages: "Nobody knows who built it [1]" is an answer.
    """
    sentences = re.split(r"(?<=[.!?])\s+|\n+", reply)
    if any(map(is_sentinel, sentences)):
        return True
    # Half of a JSON object is no sentence.
    if reply.lstrip(" \n`json").startswith("{"):
        return False
    return any(map(_is_denial, _WORD.findall(reply.casefold()))) and (not cites or _SOURCES.search(reply) is not None)


def _is_denial(word: str) -> bool:
    if word in _FURTHER or word.endswith(("n't", "n’t")):
        return True
    return any(form in language.negations or form in language.denying_verbs for language, form in _forms_of(word))


def _forms_of(word: str) -> list[tuple[Language, str]]:
    return [(language, language.form_of(word)) for language in _LANGUAGES]


_log = get_logger(__name__)

EXTRACTIVE = "extractive"
"""Model name of an answer without a model."""
_LABEL = re.compile(r"[\W_]*+(?:sources?|references?|citations?|answer|quellen|antwort|réponse|respuesta)?[\W_]*+", re.IGNORECASE)
"""A sentence without a statement: marks, or the heading of a list of sources."""
CUT_OFF = "the model's answer was cut off: it reached its limit of tokens, or repeated itself"
EMPTY_REPLY = "the model's reply was empty, or only reasoning"
Sentences = AsyncGenerator[DraftEvent, None]


@dataclass(frozen=True, slots=True)
class Writers:
    """The writers of answers.

    Args:
        model: asked first.
        quotes: whether quotations replace a model that fails; otherwise the answer fails too, unless the brief has a text.
        patience_s: seconds after which the model counts as failed, so that time is left for another answer; None: its own limit.
        verifier: makes the verifier of an answer's claims.
    """

    model: LanguageModel
    verifier: VerifierFactory
    quotes: bool = False
    patience_s: float | None = None


class Writing:
    """The state of one answer being written. `retrieval`, `model`, `usage` and `refuses` are complete after `sentences`.

    Args:
        left_s: seconds left for models that check the answer; None: their own limits.
    """

    def __init__(self, writers: Writers, brief: Brief, left_s: float | None = None) -> None:
        self._writers = writers
        self._brief = brief
        self._cites = False
        self._verifier = writers.verifier(brief.context.passages, brief.question, left_s)
        self.retrieval = brief.retrieval
        self.model = EXTRACTIVE
        self.usage = brief.usage
        self.refuses = False
        """Whether the reply states that the documents do not answer."""
        self.has_sentinel = False
        """Whether it does so in the words that the prompts ask for."""
        self._unquotable = False
        self._has_text = True
        self._sent_before = frozenset[str]()
        """Sentences of reasoning that were sent. The reply does not repeat them."""

    @property
    def refusal(self) -> Refusal:
        """The reason for an answer without a sentence."""
        return "model_refused" if self.refuses else "below_confidence" if self._unquotable else "no_claim_held"

    async def sentences(self, draft: AnswerDraft) -> Sentences:
        """Yield citations and sentences as ``draft`` accepts them.

        Raises:
            ModelUnavailable: the model failed and there is no fallback.
        """
        async for event in self._write_sentences(draft):
            yield event
        self.usage += self._verifier.usage
        self.retrieval = with_failures(self.retrieval, *dict.fromkeys(self._verifier.failures))

    async def _write_sentences(self, draft: AnswerDraft) -> Sentences:
        if self._brief.request is None:
            async for event in self._without_model(draft):
                yield event
            return
        self.model = self._brief.request.model or self._writers.model.name
        try:
            async for event in self._read_deltas(self._stream_model(self._brief.request), draft):
                yield event
            if draft.begun or self.refuses:
                return
            reason = "the passages state no sentence of the model's answer" if self._has_text else EMPTY_REPLY
        except ModelUnavailable as error:
            if not self._has_fallback(draft):
                raise
            _log.warning("answer_without_model", prompt=self._brief.request.prompt, code=error.code, reason=error.message)
            verb = "broke off its" if draft.begun else "did not write the"
            reason = f"the model {verb} answer: {error.code}"
        if not draft.begun and self._has_fallback(draft):
            self._unquotable = not self._brief.quotable
            if not self._unquotable:
                # The failed model's text is not part of this answer.
                draft.forget_omitted_sentences()
                async for event in self._without_model(draft):
                    yield event
        self.retrieval = with_failures(self.retrieval, reason)

    def _has_fallback(self, draft: AnswerDraft) -> bool:
        """Return whether a fallback exists; the brief's text counts only while nothing was sent."""
        return self._writers.quotes or bool(self._brief.text and not draft.begun)

    async def _without_model(self, draft: AnswerDraft) -> Sentences:
        """Write the brief's text, or else its quotations, which need no check."""
        self.model = EXTRACTIVE
        draft.introduction = self._brief.introduction
        if not self._brief.text:
            for event in draft.add(self._brief.quotations):
                yield event
            return
        async for event in self._read_deltas(_deltas_of(self._brief.text), draft):
            yield event

    async def _stream_model(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the model's text, within its time. A prompt that is too long is sent once more with fewer passages."""
        patience_s = self._writers.patience_s
        deadline = None if patience_s is None else asyncio.get_running_loop().time() + patience_s
        try:
            async for delta in self._stream_in_time(request, deadline):
                yield delta
        except PromptTooLong:
            if self._brief.shorter is None:
                raise
            self.retrieval = with_failures(
                self.retrieval, "the prompt was too long for the model: it read the better half of the passages"
            )
            async for delta in self._stream_in_time(self._brief.shorter(), deadline):
                yield delta

    async def _stream_in_time(self, request: ModelRequest, deadline: float | None) -> AsyncGenerator[ModelDelta, None]:
        started = time.perf_counter()
        try:
            async with aclosing(self._writers.model.stream(request)) as deltas:
                while (delta := await _next_delta(deltas, deadline)) is not None:
                    yield delta
        except TimeoutError as error:
            self.usage += request.account.usage
            waited = time.perf_counter() - started
            if not request.account.usage.calls:
                raise ModelBusy(f"model {self.model!r} was busy with other calls for {waited:.3g} s") from error
            raise ModelTimeout(f"model {self.model!r} did not end its answer within {waited:.3g} s") from error
        except ModelUnavailable:
            self.usage += request.account.usage
            raise

    async def _read_deltas(self, deltas: AsyncGenerator[ModelDelta, None], draft: AnswerDraft) -> Sentences:
        reader, spent, cut = ClaimReader(), Usage(), False
        waiting: list[Verdict] = []
        try:
            async with aclosing(deltas):
                async for delta in deltas:
                    spent, cut = delta.usage or spent, cut or delta.cut
                    if delta.restart:
                        # The text so far was reasoning. Sentences of it that were sent are supported, and stay.
                        reader, waiting = ClaimReader(), []
                        self._cites = self.refuses = self.has_sentinel = False
                        draft.forget_omitted_sentences()
                        self._sent_before = frozenset(claim.text for claim in draft.claims)
                    waiting += await self._check_claims(reader.feed(delta.text))
                    for event in self._send_events(waiting, draft):
                        yield event
        except ModelUnavailable:
            # The sentences before the failure are complete. Unverified ones alone are no answer.
            if draft.supported or any(verdict.holds for verdict in waiting):
                for event in draft.add(waiting):
                    yield event
            raise
        self.usage += spent
        self._has_text = bool(reader.text.strip())
        if cut:
            self.retrieval = with_failures(self.retrieval, CUT_OFF)
        waiting += await self._check_claims(reader.finish(cut=cut))
        if self._cites or not self._record_refusal(reader.text, waiting, draft):
            waiting = await self._verifier.settle(waiting)
        if not self._record_refusal(reader.text, waiting, draft):
            for event in draft.add(waiting):
                yield event

    def _record_refusal(self, reply: str, verdicts: Sequence[Verdict], draft: AnswerDraft) -> bool:
        """Return whether a reply refuses, and record it. With a supported sentence, it is an answer."""
        if draft.supported or any(verdict.holds for verdict in verdicts):
            return False
        self.refuses = self.refuses or refuses(reply, cites=self._cites)
        return self.refuses

    async def _check_claims(self, claims: Sequence[Claim]) -> list[Verdict]:
        """Return the verdicts of the claims that state something, and record whether the reply refuses or cites."""
        self._cites = self._cites or any(claim.markers for claim in claims)
        self.has_sentinel = self.has_sentinel or any(is_sentinel(claim.text) for claim in claims)
        self.refuses = self.refuses or self.has_sentinel
        fresh = [claim for claim in claims if " ".join(claim.text.split()) not in self._sent_before]
        statements = [claim for claim in fresh if not is_sentinel(claim.text) and _LABEL.fullmatch(claim.text.strip()) is None]
        return await self._verifier.verify(statements) if statements else []

    def _send_events(self, waiting: list[Verdict], draft: AnswerDraft) -> list[DraftEvent]:
        """Return the events of the first verdicts in ``waiting`` that are final, and remove them.

        Nothing unverified is sent before a supported sentence: together with it, it may be a refusal in the model's own words.
        """
        events: list[DraftEvent] = []
        while waiting and not self._verifier.may_change(waiting[0]) and (draft.supported or waiting[0].status != "unverified"):
            events += draft.add([waiting.pop(0)])
        return events


async def _deltas_of(text: str) -> AsyncGenerator[ModelDelta, None]:
    yield ModelDelta(text)


async def _next_delta(deltas: AsyncGenerator[ModelDelta, None], deadline: float | None) -> ModelDelta | None:
    # No timeout may span a yield: it would interrupt the reader's own work.
    async with asyncio.timeout_at(deadline):
        return await anext(deltas, None)
