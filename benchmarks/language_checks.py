"""Measures answers in German, French, Chinese and English: questions, and checks of sentences, within a language and across.

- ``answered``: questions with an answer whose first citation is of the right passage. Without a language model.
- ``refused``: questions about other matters that are refused. ``near misses refused``: questions without an answer about the
  things that the passages name.
- ``by a model``: questions that are answered if a model writes the right sentence in the language of the question. The passages
  may be in another one, so that the judge must let the question pass and the check must accept the sentence.
- ``kept``, ``dropped``: right sentences that pass the check, and wrong ones that do not.
"""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence

from agentic_rag_backend.answering.answerability.judge import AnswerJudge
from agentic_rag_backend.answering.answerability.language_judge import LanguageJudge
from agentic_rag_backend.answering.claims.reading import Claim
from agentic_rag_backend.answering.claims.verifiers.lexical import LexicalVerifier
from agentic_rag_backend.answering.claims.verifiers.translation import EmbeddingVerifier
from agentic_rag_backend.answering.evidence.context import Passage
from agentic_rag_backend.answering.service import AnswerChecks, AnswerOptions, AnswerService
from agentic_rag_backend.answering.similarity import RelativeSimilarity
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.query import Query
from agentic_rag_backend.domain.tenant import Tenant
from agentic_rag_backend.domain.usage import Usage
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.models.embedding.evidence_encoder import EvidenceEncoder
from agentic_rag_backend.models.llm.base import NOT_ANSWERED, ModelDelta, ModelReply, ModelRequest
from corpora import ingest_uploads
from report import ROOT

sys.path.insert(0, str(ROOT / "tests" / "fixtures"))

from language_answers import ASKED, CLAIMS, FURTHER_CLAIMS, NEAR_MISSES, PASSAGES, SUBJECTS, UNANSWERED
from language_sets import PASSAGES as OTHER_PASSAGES

Share = tuple[int, int]
"""Right cases, and all."""
STRATEGY = "hybrid"
SAID: Mapping[str, Mapping[int, int]] = {
    "de": {0: 0, 1: 1, 2: 4, 3: 3, 4: 6, 5: 9, 6: 11, 7: 13},
    "fr": {0: 0, 1: 1, 2: 4, 3: 3, 4: 6, 5: 9, 6: 11, 7: 13},
    "zh": {0: 0, 1: 1, 2: 4, 3: 3, 4: 6, 5: 9, 6: 11, 7: 13},
    "en": {0: 0, 1: 1, 2: 3, 3: 2, 4: 5, 5: 8, 6: 10, 7: 11},
}
"""Language → number of a question → number of the right sentence that a model writes."""


_QUESTION = re.compile(r"<question>(.*?)</question>", re.DOTALL)
_PASSAGE = re.compile(r'<passage id="(\d+)"[^>]*>(.*?)</passage>', re.DOTALL)


class ScriptedWriter:
    """A language model that answers each question with a prepared sentence about a passage."""

    generative = True
    name = "scripted"

    def __init__(self, said: Mapping[str, tuple[str, str]]) -> None:
        self._said = said

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the prepared sentence with the marker of its passage."""
        prompt = request.messages[-1].content
        question = _QUESTION.findall(prompt)[-1].strip()
        sentence, passage = self._said.get(question, (NOT_ANSWERED, ""))
        marker = next((number for number, text in _PASSAGE.findall(prompt) if text.strip() in passage), 0)
        return ModelReply(f"{sentence} [{marker}]" if marker else NOT_ANSWERED, Usage(), self.name)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelDelta, None]:
        """Yield the whole text."""
        yield ModelDelta((await self.complete(request)).text)

    async def close(self) -> None:
        """Nothing to release."""


def similarity_of(services: Container) -> RelativeSimilarity | None:
    """Return the comparison by the embedder of the settings, as the product makes it."""
    known = services.embedder.languages
    return RelativeSimilarity(services.embedder) if known is None or len(known) > 1 else None


async def checked(services: Container, similarity: RelativeSimilarity | None, code: str, of: str) -> dict[str, Share]:
    """Return the kept right sentences in a language about passages in the language ``of``, and the dropped wrong ones by kind."""
    held = [_passage(number, title, text) for number, (title, text) in enumerate(zip(SUBJECTS, PASSAGES[of], strict=True), 1)]
    cases = [(kind, held, number + 1, text) for kind, claims in CLAIMS[code].items() for number, text in claims]
    if code == of and code in FURTHER_CLAIMS:
        cases += [
            ("right" if holds else "further", [_passage(1, key, OTHER_PASSAGES[code][key])], 1, text)
            for key, holds, text in FURTHER_CLAIMS[code]
        ]
    counts: dict[str, list[bool]] = {}
    shared = EmbeddingVerifier(LexicalVerifier(held), similarity)
    for kind, passages, marker, text in cases:
        verifier = shared if passages is held else EmbeddingVerifier(LexicalVerifier(passages), similarity)
        (verdict,) = await verifier.verify([Claim(text, (marker,))])
        counts.setdefault(kind, []).append(verdict.holds == (kind == "right"))
    return {kind: (sum(right), len(right)) for kind, right in counts.items()}


def _passage(marker: int, title: str, text: str) -> Passage:
    return Passage(marker=marker, chunk_id=f"c{marker}", document_id=title, title=title, text=text, start_char=0, score=1.0)


async def tenants_of(services: Container) -> dict[str, Tenant]:
    """Return a tenant with the passages of each language."""
    found: dict[str, Tenant] = {}
    for code, passages in PASSAGES.items():
        made = await services.tenants.create(f"answers-{code}")
        pairs = zip(SUBJECTS, passages, strict=True)
        uploads = [Upload(content=text.encode(), media_type="text/plain", key=key, title=key) for key, text in pairs]
        await ingest_uploads(services, made.id, uploads)
        found[code] = await services.tenants.get(made.id)
    return found


async def answered(
    services: Container, similarity: RelativeSimilarity | None, tenant: Tenant, code: str, of: str
) -> dict[str, Share]:
    """Return the shares of right answers and refusals of the questions in a language about passages in the language ``of``."""
    written = _written_by_model(services, similarity, code, of)
    right, model = [], []
    for question, number in ASKED[code]:
        right.append(await _cites(services.answers, tenant, question, PASSAGES[of][number]))
        model.append(await _cites(written, tenant, question, PASSAGES[of][number]))
    figures = {"answered": right, "by a model": model}
    for name, questions in (("refused", UNANSWERED[code]), ("near misses refused", NEAR_MISSES[code])):
        asked = [Query(tenant=tenant, text=question) for question in questions]
        figures[name] = [not (await services.answers.answer(query, strategy=STRATEGY)).grounded for query in asked]
    return {name: (sum(found), len(found)) for name, found in figures.items()}


async def _cites(service: AnswerService, tenant: Tenant, question: str, passage: str) -> bool:
    answer = await service.answer(Query(tenant=tenant, text=question), strategy=STRATEGY)
    return answer.grounded and answer.citations[0].quote in passage


def _written_by_model(services: Container, similarity: RelativeSimilarity | None, code: str, of: str) -> AnswerService:
    said = {
        question: (CLAIMS[code]["right"][SAID[code][place]][1], PASSAGES[of][number])
        for place, (question, number) in enumerate(ASKED[code])
    }
    encoder = EvidenceEncoder(services.embedder)
    return AnswerService(
        retrievers=services.retrievers,
        model=ScriptedWriter(said),
        documents=services.catalogue.documents,
        options=AnswerOptions(),
        checks=AnswerChecks(
            judge=AnswerJudge(encoder, languages=LanguageJudge(similarity)),
            verifier=lambda passages, question, left_s: EmbeddingVerifier(LexicalVerifier(passages), similarity),
        ),
    )


async def measured(services: Container) -> dict[str, dict[str, Share]]:
    """Return the figures of each pair of languages: "de", or "en → de" for sentences and questions in English."""
    tenants, similarity = await tenants_of(services), similarity_of(services)
    found: dict[str, dict[str, Share]] = {}
    for of in PASSAGES:
        for code in PASSAGES:
            if code == of == "en":
                continue
            pair = code if code == of else f"{code} → {of}"
            found[pair] = {
                **await answered(services, similarity, tenants[of], code, of),
                **await checked(services, similarity, code, of),
            }
    return found


def table(found: Mapping[str, Mapping[str, Sequence[int]]]) -> list[str]:
    """Return the table of answers and checks."""
    asked = ("answered", "by a model", "refused", "near misses refused")
    kinds = tuple(dict.fromkeys(kind for row in found.values() for kind in row if kind not in asked))
    names = {**{kind: kind for kind in asked}, "right": "kept", **{kind: f"dropped: {kind}" for kind in kinds if kind != "right"}}
    columns = [*asked, "right", *(kind for kind in kinds if kind != "right")]
    lines = [f"| language | {' | '.join(names[each] for each in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for pair, row in found.items():
        cells = (f"{row[each][0]}/{row[each][1]}" if each in row else "" for each in columns)
        lines.append(f"| {pair} | {' | '.join(cells)} |")
    return [*lines, ""]
