"""Datasets: upload, generation, cases from answers, export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from agentic_rag_backend.domain.asked_questions import QUESTION_DAYS, QuestionFilter
from agentic_rag_backend.domain.document import VisibleChunk
from agentic_rag_backend.domain.evaluation import CaseSource, Dataset, EvaluationCase, GoldItem
from agentic_rag_backend.domain.size_limits import printable_name
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.evaluation.case_files import MAX_QUOTE_CHARACTERS, parse_cases, write_case
from agentic_rag_backend.evaluation.questions.question_generation import WORKFLOW as GENERATE
from agentic_rag_backend.evaluation.questions.question_rules import KINDS
from agentic_rag_backend.jobs.queue.job_queue import JobQueue
from agentic_rag_backend.stores.catalogue.base import Catalogue

MAX_GENERATED = 1000
MAX_NAMED_CHUNKS = 20_000
"""Chunks that the cases of a request may name. The text of each is read, and stored with the case."""
_PAGE = 500


class DatasetService:
    """Creates, extends and exports datasets.

    Chunk ids of uploaded cases are stored with the text of their chunks, so that the evidence is found again after the document
    was chunked anew.
    """

    def __init__(self, catalogue: Catalogue, queue: JobQueue) -> None:
        self._datasets = catalogue.datasets
        self._documents = catalogue.documents
        self._questions = catalogue.asked_questions
        self._queue = queue

    async def create(self, tenant: TenantId, name: str, cases: Sequence[EvaluationCase]) -> Dataset:
        """Create a dataset.

        Raises:
            InvalidRequest: the name or the number of cases is outside its limits, or a chunk id is not a visible chunk's.
        """
        return await self._datasets.create(tenant, printable_name(name), await self._add_quotes(tenant, cases))

    async def create_from_file(self, tenant: TenantId, name: str, content: bytes, media_type: str) -> Dataset:
        """Create a dataset from JSON Lines or CSV; see `case_files.parse_cases`."""
        return await self.create(tenant, name, await asyncio.to_thread(parse_cases, content, media_type))

    async def generate(self, tenant: TenantId, name: str, *, count: int, kinds: Sequence[str] = KINDS, seed: int = 0) -> Dataset:
        """Create an empty dataset, and queue the job that generates its cases.

        Raises:
            InvalidRequest: a value is outside its limits, or a kind is unknown.
        """
        if not 1 <= count <= MAX_GENERATED:
            raise InvalidRequest(f"generate.count must be between 1 and {MAX_GENERATED}; got {count}")
        unknown = [kind for kind in kinds if kind not in KINDS]
        if unknown or not kinds:
            raise InvalidRequest(f"generate.kinds must be some of {', '.join(KINDS)}; got {', '.join(unknown)[:100] or 'none'}")
        generation = {"count": count, "kinds": list(dict.fromkeys(kinds)), "seed": seed}
        return await self._datasets.create(
            tenant, printable_name(name), (), generation=generation, enqueue=self._queue.enqueuer(GENERATE)
        )

    async def add_cases(self, tenant: TenantId, dataset_id: str, cases: Sequence[EvaluationCase]) -> Dataset:
        """Add cases as a new version.

        Raises:
            NotFound: there is no such dataset.
            InvalidRequest: there are too many cases, or a chunk id is not a visible chunk's.
        """
        await self._datasets.dataset(tenant, dataset_id)
        return await self._datasets.add_cases(tenant, dataset_id, await self._add_quotes(tenant, cases))

    async def save_answer(self, tenant: TenantId, dataset_id: str, case: EvaluationCase) -> Dataset:
        """Add a case from an answer. Its evidence must have chunk ids, those of the answer's citations.

        Raises:
            NotFound: there is no such dataset.
            InvalidRequest: a chunk is not visible any more.
        """
        return await self.add_cases(tenant, dataset_id, [replace(case, source=CaseSource.ANSWER)])

    async def create_from_questions(self, tenant: TenantId, name: str, *, count: int, chosen: QuestionFilter) -> Dataset:
        """Create a dataset from at most ``count`` different questions that were kept, the newest ones.

        Raises:
            InvalidRequest: no question passes the filter, or the name is outside its limits.
        """
        return await self.create(tenant, name, await self._list_questions(tenant, count=count, chosen=chosen))

    async def add_questions(self, tenant: TenantId, dataset_id: str, *, count: int, chosen: QuestionFilter) -> Dataset:
        """Add kept questions as a new version. Questions that the dataset has already are left out.

        Raises:
            NotFound: there is no such dataset.
            InvalidRequest: no question passes the filter, or there are too many cases.
        """
        await self._datasets.dataset(tenant, dataset_id)
        cases = await self._list_questions(tenant, count=count, chosen=chosen)
        return await self._datasets.add_cases(tenant, dataset_id, cases, new_only=True)

    async def _list_questions(self, tenant: TenantId, *, count: int, chosen: QuestionFilter) -> list[EvaluationCase]:
        """Return the newest different questions as cases without an expected answer."""
        questions = await self._questions.list_distinct_texts(tenant, count=count, chosen=chosen)
        if not questions:
            raise InvalidRequest(
                f"no question of the last {QUESTION_DAYS} days is kept that fits; PATCH /features {{QUESTION_LOG_ENABLED: true}} "
                "keeps the questions from then on",
                field="from_questions",
            )
        return [EvaluationCase(question=question, source=CaseSource.QUESTION) for question in questions]

    async def export(self, tenant: TenantId, dataset_id: str, *, version: int | None = None) -> AsyncGenerator[bytes, None]:
        """Yield a version of a dataset as lines of JSON, which can be uploaded again. Changes meanwhile make other versions."""
        if version is None:
            version = (await self._datasets.dataset(tenant, dataset_id)).version
        cursor: str | None = None
        while True:
            page = await self._datasets.cases(tenant, dataset_id, limit=_PAGE, cursor=cursor, version=version)
            yield await asyncio.to_thread(lambda items: b"".join(map(write_case, items)), page.items)
            cursor = page.next_cursor
            if cursor is None:
                return

    async def _add_quotes(self, tenant: TenantId, cases: Sequence[EvaluationCase]) -> list[EvaluationCase]:
        """Return the cases with the text of the chunks that their evidence names, and the documents of these chunks."""
        chunk_ids = [item.chunk_id for case in cases for item in case.gold if item.chunk_id is not None]
        if len(chunk_ids) > MAX_NAMED_CHUNKS:
            raise InvalidRequest(
                f"the cases of a request may name at most {MAX_NAMED_CHUNKS} chunks; they name {len(chunk_ids)}. "
                "Add the other cases to the dataset with further requests"
            )
        chunks = await self._documents.hydrate(tenant, list(dict.fromkeys(chunk_ids))) if chunk_ids else {}
        return await asyncio.to_thread(lambda: [_with_quotes(case, chunks) for case in cases])


def _with_quotes(case: EvaluationCase, chunks: dict[str, VisibleChunk]) -> EvaluationCase:
    gold, document_ids = [], list(case.documents)
    for item in case.gold:
        chunk = chunks.get(item.chunk_id) if item.chunk_id is not None else None
        # The quote of an answer is the text of a document. Without its document, no deletion would remove it.
        if item.chunk_id is not None and chunk is None and (not item.quote or case.source is CaseSource.ANSWER):
            raise InvalidRequest(f"there is no chunk {item.chunk_id!r}; name evidence by quotes to keep it across documents")
        if chunk is not None:
            quote = item.quote or chunk.chunk.text[:MAX_QUOTE_CHARACTERS]
            item = GoldItem(quote=quote, chunk_id=item.chunk_id, document=chunk.chunk.document_id)
            document_ids.append(chunk.chunk.document_id)
        gold.append(item)
    return replace(case, gold=tuple(gold), documents=tuple(dict.fromkeys(document_ids)))
