"""Operations of the server, one method each.

Written by `make client` from the OpenAPI description. Do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from functools import cached_property
from typing import Any, Literal

from agentic_rag_client import models
from agentic_rag_client.answer_events import AnswerEvent, read_answer
from agentic_rag_client.downloads import AsyncDownload
from agentic_rag_client.event_streams import AsyncEventStream
from agentic_rag_client.files import DatasetFiles, DocumentFiles, TenantArchives
from agentic_rag_client.job_events import JobEvent, JobEvents, read_job
from agentic_rag_client.methods import Mode, Resource, download, event_stream, listing, operation
from agentic_rag_client.pages import AsyncPages
from agentic_rag_client.parameters import (
    CaseRequest,
    Chunking,
    ConfigurationRequest,
    DocumentState,
    EntityFieldBody,
    EntityTypeBody,
    GenerateBody,
    JobKind,
    JobState,
    JudgeBody,
    Parameter,
    Questions,
    QuestionsBody,
    Rating,
    RelationTypeBody,
    SavedAnswer,
    Scope,
    StopBody,
    Turn,
    UsageGroup,
    Weights,
)
from agentic_rag_client.requests import Call, fill_path


class Documents(DocumentFiles[Mode]):
    """Operations of `client.documents`."""

    @operation
    async def add(
        self,
        text: str,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        title: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        media_type: Literal["text/plain", "text/markdown"] | None = None,
        chunking: Chunking | None = None,
        extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = None,
        questions: Questions | None = None,
    ) -> models.Submission:
        """Upload a document as JSON, or files as multipart.

        Queue one document (JSON) or several files (multipart), each with its own job.

        The same key with other content is a new version. With the same content, the response is 200 with `unchanged`.

        Args:
            text: plain text or Markdown.
            if_match: the `etag` of the response that is to be unchanged.
            idempotency_key: default: a new one.
            title: default: the title or first heading of the file, its name, or the beginning of its text with `…` at the
                end, which names no entity.
            key: your id of the document; the same key again is a new version; default: SHA-256 of the content.
            metadata: JSON scalars and lists of them, at most 64 keys.
            extraction: method of extraction; default: EXTRACTION.
            questions: synthetic questions; default: SYNTHETIC_QUESTIONS.
        """
        return await self._session.read(Call.of("POST /api/v1/documents", locals(), keyed=True), models.Submission)

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: DocumentState | None = None,
        key: str | None = None,
        parent_id: str | None = None,
        filter: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> AsyncPages[models.Document]:
        """List documents, newest first.

        List documents. `metadata.NAME=VALUE` in the query string selects documents with that metadata.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
            parent_id: only the attachments of this document.
            filter: the filter grammar of searches, as JSON.
            metadata: selects documents whose metadata NAME has this value; may be given for several names.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/documents", locals()), models.Document)

    @operation
    async def delete_matching(
        self,
        *,
        state: DocumentState | None = None,
        key: str | None = None,
        parent_id: str | None = None,
        filter: Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> models.DeletedDocuments:
        """Delete matching documents.

        Hide up to 1,000 documents immediately and queue the removal of each. At least one parameter must select them.

        If `remaining` is true, repeat the request.

        Args:
            parent_id: only the attachments of this document.
            filter: the filter grammar of searches, as JSON.
            metadata: selects documents whose metadata NAME has this value; may be given for several names.
        """
        return await self._session.read(Call.of("DELETE /api/v1/documents", locals()), models.DeletedDocuments)

    @operation
    async def get(self, document_id: str) -> models.DocumentDetail:
        """Get a document.

        Return a document. Its `ETag` identifies its newest version, title and metadata.

        `attachments` are the documents of a message's attachments, oldest first; each may have attachments of its own.
        """
        return await self._session.read(Call.of("GET /api/v1/documents/{document_id}", locals()), models.DocumentDetail)

    @operation
    async def update(
        self,
        document_id: str,
        *,
        if_match: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> models.Document:
        """Change a document's title and metadata.

        Merge metadata by key (null removes a key) and set the title. The content is not processed again, unless the value of
        one of the ontology's `entity_fields` changes.

        `meta.search` is `current` if search and its filters have the change. If it is `pending`, they get it soon, without
        another request.

        Args:
            if_match: the `etag` of the response that is to be unchanged.
            metadata: merged by key into the existing metadata; null removes a key.
        """
        return await self._session.read(Call.of("PATCH /api/v1/documents/{document_id}", locals()), models.Document)

    @operation
    async def delete(self, document_id: str, *, if_match: str | None = None) -> models.JobAccepted:
        """Delete a document.

        Hide the document immediately and queue its removal. The job's result is the receipt.

        Args:
            if_match: the `etag` of the response that is to be unchanged.
        """
        return await self._session.read(Call.of("DELETE /api/v1/documents/{document_id}", locals()), models.JobAccepted)

    @listing
    def chunks(self, document_id: str, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Chunk]:
        """List a document's chunks.

        List the visible version's chunks in reading order.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/documents/{document_id}/chunks", locals()), models.Chunk)

    @operation
    async def chunk_again(
        self,
        document_id: str,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        strategy: Literal["recursive", "fixed", "structure", "ast", "parent_child", "semantic", "agentic", "proposition"]
        | None = None,
        chunk_size: int | None = None,
        overlap: int | None = None,
        unit: Literal["tokens", "characters"] | None = None,
        percentile: int | None = None,
        parent_size: int | None = None,
        questions: Questions | None = None,
    ) -> models.Submission:
        """Chunk a document again.

        Queue a version of the same content and metadata with other chunks. The old chunks stay until it is ready.

        Args:
            if_match: the `etag` of the response that is to be unchanged.
            idempotency_key: default: a new one.
            chunk_size: default: 220 tokens or 1000 characters; `semantic`: 512 or 2000; `ast` and `agentic`: 500 or 2000.
            overlap: at most half of chunk_size; default: 32 tokens or 100 characters (`semantic`: 50 or 200; `ast` and
                `agentic`: 0), or that share of a smaller chunk_size.
            percentile: strategy `semantic`: percentile of the distances of sentences above which it cuts.
            parent_size: strategies `parent_child` and `proposition`: largest parent, in the unit; default: 500 tokens or 2000
                characters, at least twice chunk_size.
            questions: default: the document's options.
        """
        return await self._session.read(
            Call.of("POST /api/v1/documents/{document_id}/chunks", locals(), keyed=True), models.Submission
        )

    @operation
    async def extract_again(
        self,
        document_id: str,
        *,
        if_match: str | None = None,
        idempotency_key: str | None = None,
        extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = None,
    ) -> models.Submission:
        """Extract a document's knowledge again.

        Queue a version of the same content and metadata, whose entities and relationships are extracted again.

        The version follows the current ontology. Its method stays the document's method. Results on record are reused:
        neither vectors nor replies of a language model are computed twice. The old knowledge stays until the version is
        ready.

        Args:
            if_match: the `etag` of the response that is to be unchanged.
            idempotency_key: default: a new one.
            extraction: method, which the document keeps; default: the document's own.
        """
        return await self._session.read(
            Call.of("POST /api/v1/documents/{document_id}/extract", locals(), keyed=True), models.Submission
        )

    @download
    def content(self, document_id: str) -> AsyncDownload:
        """Get a document's original.

        Return the uploaded bytes as an attachment, of the visible version, or of the newest if none is visible.
        """
        return AsyncDownload(self._session, Call.of("GET /api/v1/documents/{document_id}/content", locals()))

    @operation
    async def page(self, document_id: str, page: int) -> models.Page:
        """Get a page's text with boxes.

        Return a page of the visible version, with the place of each line. 404 if the format has no pages.

        Args:
            page: page, slide or chapter, from 1.
        """
        return await self._session.read(Call.of("GET /api/v1/documents/{document_id}/pages/{page}", locals()), models.Page)

    @download
    def page_image(
        self, document_id: str, page: int, *, scale: float | None = None, highlight: Sequence[str] | None = None
    ) -> AsyncDownload:
        """Get a picture of a page.

        Draw a page of a PDF file, with the boxes of a citation marked. 404 if the original was not kept.

        Args:
            page: page, slide or chapter, from 1.
            scale: pixels a point; 1 gives 72 dots per inch.
            highlight: box to mark, as in `bbox`: `left,bottom,right,top`; can be repeated.
        """
        return AsyncDownload(self._session, Call.of("GET /api/v1/documents/{document_id}/pages/{page}/image", locals()))

    @operation
    async def preview(
        self,
        *,
        text: str | None = None,
        document_id: str | None = None,
        media_type: str | None = None,
        chunking: Chunking | None = None,
        extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = None,
        limit: int | None = None,
    ) -> models.Preview:
        """Preview the chunks of a document.

        Parse and chunk a document of at most 2 MiB, and return its chunks. Nothing is stored.

        Args:
            text: a text of `media_type`.
            document_id: a stored document, instead of `text`.
            media_type: media type of `text`; `text/x-python` is source code.
            chunking: default: the defaults of an upload.
            extraction: method of extraction for `ingestion`; default: that of an upload.
            limit: maximum chunks to return; `count` has all of them.
        """
        return await self._session.read(Call.of("POST /api/v1/chunking/preview", locals(), repeatable=True), models.Preview)


class Chunks(Resource[Mode]):
    """Operations of `client.chunks`."""

    @operation
    async def get(self, chunk_id: str) -> models.ChunkInDocument:
        """Get a chunk.

        Return a chunk of a visible version, with its neighbours, the parent around it, its entities and relationships.

        If the graph store does not respond, entities and relationships are left out, and `meta.warnings` says so.
        """
        return await self._session.read(Call.of("GET /api/v1/chunks/{chunk_id}", locals()), models.ChunkInDocument)

    @operation
    async def extract_again(
        self,
        chunk_id: str,
        *,
        idempotency_key: str | None = None,
        extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = None,
    ) -> models.Submission:
        """Extract a chunk's entities and relationships.

        Queue a version of the chunk's document, as `POST /documents/{document_id}/extract` does.

        With `dry_run`, extract from this chunk alone and return what was found. Nothing is written to the graph. A reply of a
        language model is recorded, so that it is not paid again.

        Args:
            idempotency_key: default: a new one.
            extraction: method, which the document keeps; default: the document's own.
        """
        return await self._session.read(
            Call.of("POST /api/v1/chunks/{chunk_id}/extract", locals(), keyed=True), models.Submission
        )

    @operation
    async def preview_extraction(
        self,
        chunk_id: str,
        *,
        idempotency_key: str | None = None,
        extraction: Literal["rules", "llm", "rules+llm", "graphiti"] | None = None,
    ) -> models.ChunkExtraction:
        """Extract a chunk's entities and relationships.

        Queue a version of the chunk's document, as `POST /documents/{document_id}/extract` does.

        With `dry_run`, extract from this chunk alone and return what was found. Nothing is written to the graph. A reply of a
        language model is recorded, so that it is not paid again.

        Args:
            idempotency_key: default: a new one.
            extraction: method, which the document keeps; default: the document's own.
        """
        return await self._session.read(
            Call.of("POST /api/v1/chunks/{chunk_id}/extract", locals() | {"dry_run": True}, keyed=True, repeatable=True),
            models.ChunkExtraction,
        )


class Jobs(JobEvents[Mode]):
    """Operations of `client.jobs`."""

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: JobState | None = None,
        kind: JobKind | None = None,
        document_id: str | None = None,
    ) -> AsyncPages[models.Job]:
        """List jobs, newest first.

        List the tenant's jobs.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/jobs", locals()), models.Job)

    @operation
    async def get(self, job_id: str) -> models.Job:
        """Get a job.

        Return a job.
        """
        return await self._session.read(Call.of("GET /api/v1/jobs/{job_id}", locals()), models.Job)

    @operation
    async def cancel(self, job_id: str, *, idempotency_key: str | None = None) -> models.JobAccepted:
        """Cancel a job.

        Request the cancellation of a job. It becomes `cancelled` after its clean-up.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(Call.of("POST /api/v1/jobs/{job_id}/cancel", locals(), keyed=True), models.JobAccepted)

    @operation
    async def retry(self, job_id: str, *, idempotency_key: str | None = None) -> models.JobAccepted:
        """Retry a job.

        Queue a failed, partial or cancelled job again. Finished work is not repeated.

        A partial ingestion gets a new version of the same content, for which only the failed chunks are processed again. The
        document stays unchanged until that version is ready.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(Call.of("POST /api/v1/jobs/{job_id}/retry", locals(), keyed=True), models.JobAccepted)

    @event_stream
    def events(self, job_id: str) -> AsyncEventStream[JobEvent]:
        """Follow a job as server-sent events.

        Send `stage` and `progress` when they change, and `done` with the job at the end.

        If the key is revoked or the tenant is deleted, the stream ends with `error`.
        """
        return AsyncEventStream(read_job(self._session, Call.of("GET /api/v1/jobs/{job_id}/events", locals())))


class Answers(Resource[Mode]):
    """Operations of `client.answers`."""

    @operation
    async def create(
        self,
        query: str,
        *,
        timeout_ms: int | None = None,
        cache: bool | None = None,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        options: Mapping[str, Any] | None = None,
        rerank: bool | str | Mapping[str, Any] | None = None,
        corrective: bool | Mapping[str, Any] | None = None,
        strategy: str | None = None,
        limit: int | None = None,
        weights: Weights | None = None,
        generator: str | None = None,
        history: Sequence[Turn] | None = None,
        citation_style: Literal["numeric", "title", "none"] | None = None,
        citation_policy: Literal["strict", "checked", "mark"] | None = None,
        fields: Sequence[str] | None = None,
    ) -> models.Answer:
        """Answer a question with checked citations.

        Answer the question, or refuse (`grounded: false`) if the documents do not contain the answer.

        The text is `answer`; `POST /search/dual-level` calls it `synthesized_answer`.

        Args:
            query: the question, 1 to 8,000 characters.
            timeout_ms: time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`.
            cache: false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB).
            min_score: least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit.
            filters: filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and
                `community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. See
                docs/reference/filters.md.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            options: options of the strategy.
            rerank: name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`,
                `timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for
                `hybrid`, otherwise false.
            corrective: true: grade the results, and search other wordings if too few are relevant; or an object with
                `relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false.
            strategy: see GET /strategies; default: DEFAULT_STRATEGY.
            limit: maximum results and maximum themes, 1 to 100; default: 5, or DUAL_LEVEL_LOW_LIMIT for dual-level searches.
            generator: `attributed` (only supported sentences), `standard` (all, unsupported ones marked) or `verified`
                (revised after verification questions).
            citation_style: form of citations in the text: [1], (Title) or none; the list of citations is the same.
            citation_policy: sentences that are not supported: `strict` leaves them out; `checked` leaves out contradicted
                ones and keeps others with the mark [unverified]; `mark` also keeps contradicted ones, with the mark
                [unsupported]; default: `mark` for `standard`, otherwise `checked`.
            fields: parts of `data` that the response has, such as `answer` and `citations`, and fields of `sources`, such as
                `content` or `sources.content`; named fields of a part leave out its other fields; default: everything.
        """
        return await self._session.read(Call.of("POST /api/v1/answers", locals(), repeatable=True), models.Answer)

    @operation
    async def stop(self, stream_id: str) -> None:
        """Stop a streamed answer.

        Stop the model call and forget the events.
        """
        await self._session.send(Call.of("DELETE /api/v1/answers/streams/{stream_id}", locals()))

    @event_stream
    def stream(
        self,
        query: str,
        *,
        timeout_ms: int | None = None,
        cache: bool | None = None,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        options: Mapping[str, Any] | None = None,
        rerank: bool | str | Mapping[str, Any] | None = None,
        corrective: bool | Mapping[str, Any] | None = None,
        strategy: str | None = None,
        limit: int | None = None,
        weights: Weights | None = None,
        generator: str | None = None,
        history: Sequence[Turn] | None = None,
        citation_style: Literal["numeric", "title", "none"] | None = None,
        citation_policy: Literal["strict", "checked", "mark"] | None = None,
        resumable: bool | None = None,
        fields: Sequence[str] | None = None,
    ) -> AsyncEventStream[AnswerEvent]:
        """Answer a question with checked citations.

        Answer the question, or refuse (`grounded: false`) if the documents do not contain the answer.

        The text is `answer`; `POST /search/dual-level` calls it `synthesized_answer`.

        Args:
            query: the question, 1 to 8,000 characters.
            timeout_ms: time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`.
            cache: false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB).
            min_score: least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit.
            filters: filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and
                `community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. See
                docs/reference/filters.md.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            options: options of the strategy.
            rerank: name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`,
                `timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for
                `hybrid`, otherwise false.
            corrective: true: grade the results, and search other wordings if too few are relevant; or an object with
                `relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false.
            strategy: see GET /strategies; default: DEFAULT_STRATEGY.
            limit: maximum results and maximum themes, 1 to 100; default: 5, or DUAL_LEVEL_LOW_LIMIT for dual-level searches.
            generator: `attributed` (only supported sentences), `standard` (all, unsupported ones marked) or `verified`
                (revised after verification questions).
            citation_style: form of citations in the text: [1], (Title) or none; the list of citations is the same.
            citation_policy: sentences that are not supported: `strict` leaves them out; `checked` leaves out contradicted
                ones and keeps others with the mark [unverified]; `mark` also keeps contradicted ones, with the mark
                [unsupported]; default: `mark` for `standard`, otherwise `checked`.
            resumable: go on with a streamed answer although nobody follows it, for STREAM_RESUME_S (120 s).
            fields: parts of `data` that the response has, such as `answer` and `citations`, and fields of `sources`, such as
                `content` or `sources.content`; named fields of a part leave out its other fields; default: everything.
        """
        return AsyncEventStream(
            read_answer(self._session, Call.of("POST /api/v1/answers", locals() | {"stream": True}, repeatable=True))
        )

    @event_stream
    def resume(self, stream_id: str, *, last_event_id: str | None = None) -> AsyncEventStream[AnswerEvent]:
        """Resume a streamed answer.

        Send the rest of a streamed answer. Its address is `Content-Location` of the first response.

        Only the key that asked can resume it, at the same server process, until `STREAM_RESUME_S` (120 s) after its last
        connection. 404 otherwise, and if a document that it quotes was deleted or changed.

        Args:
            last_event_id: number of the last event received; default: 0.
        """
        return AsyncEventStream(read_answer(self._session, Call.of("GET /api/v1/answers/streams/{stream_id}", locals())))


class Feedback(Resource[Mode]):
    """Operations of `client.feedback`."""

    @operation
    async def give(
        self,
        answer_id: str,
        rating: Rating,
        *,
        citation: int | None = None,
        result: str | None = None,
        reason: str | None = None,
        correction: str | None = None,
        question: str | None = None,
    ) -> models.Feedback:
        """Rate an answer, a citation or a result.

        Record feedback. Feedback of the same key on the same subject is replaced, so a repeated request changes nothing.

        Args:
            answer_id: `id` of `POST /answers`, `answer_id` of `POST /search/dual-level`.
            citation: marker of one citation of the answer.
            result: id of a chunk among the answer's `sources`.
            correction: what the answer should have said.
            question: the question that was answered: tuning learns only from feedback that has it.
        """
        return await self._session.read(Call.of("POST /api/v1/feedback", locals(), repeatable=True), models.Feedback)

    @listing
    def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        rating: Rating | None = None,
        strategy: str | None = None,
        answer_id: str | None = None,
        question: str | None = None,
    ) -> AsyncPages[models.Feedback]:
        """List feedback, newest first.

        List the feedback of all keys of the tenant.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
            question: feedback on answers to this question.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/feedback", locals()), models.Feedback)


class Graph(Resource[Mode]):
    """Operations of `client.graph`."""

    @listing
    def entities(
        self, *, name: str | None = None, type: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.EntityItem]:
        """List and search entities.

        List the entities that visible documents mention, by decreasing number of mentions; of a search, whole names first.

        Args:
            name: a name or alias, its beginning, or the beginning of one of its words; case and punctuation do not count.
            type: such as `person`, in any case and in either English spelling.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/graph/entities", locals()), models.EntityItem)

    @operation
    async def entity(
        self,
        entity_id: str,
        *,
        relation_types: Sequence[str] | None = None,
        limit: int | None = None,
        as_of: datetime | str | None = None,
    ) -> models.EntityDetail:
        """Get an entity.

        Return an entity with its names, chunks and heaviest relationships, of visible documents only.

        Args:
            relation_types: only relationships of these types, in any case: separated by commas, or repeated.
            limit: maximum chunks, and maximum relationships, 1 to 100.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
        """
        return await self._session.read(Call.of("GET /api/v1/graph/entities/{entity_id}", locals()), models.EntityDetail)

    @operation
    async def neighbourhood(
        self,
        entity_id: str,
        *,
        hops: int | None = None,
        relation_types: Sequence[str] | None = None,
        limit: int | None = None,
        mentions: bool | None = None,
        as_of: datetime | str | None = None,
        also: Sequence[str] | None = None,
        positions: bool | None = None,
    ) -> models.Neighbourhood:
        """Get the entities around an entity.

        Return the entities within `hops` relationships, with the relationships between them as edges; at most 500 entities.

        Args:
            hops: 1 to 4.
            relation_types: only relationships of these types, in any case: separated by commas, or repeated.
            limit: maximum entities around it, 1 to 200.
            mentions: if no relationship connects the entity with another one, return entities that share its chunks.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            also: ids of further entities, repeated: the union of all neighbourhoods.
            positions: return `x` and `y` of each node: places on a map, connected ones near.
        """
        return await self._session.read(
            Call.of("GET /api/v1/graph/entities/{entity_id}/neighbourhood", locals()), models.Neighbourhood
        )

    @operation
    async def paths(
        self,
        *,
        source: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        query: str | None = None,
        max_hops: int | None = None,
        relation_types: Sequence[str] | None = None,
        min_weight: float | None = None,
        direction: Literal["any", "out", "in"] | None = None,
        mentions: bool | None = None,
        limit: int | None = None,
        as_of: datetime | str | None = None,
    ) -> models.Paths:
        """Find paths between entities.

        Return the best paths between two entities, or among the entities that a question names.

        Args:
            source: id or name of an entity, or up to 10 of them.
            target: id or name of an entity, or up to 10 of them.
            query: a question, instead of `source` and `target`: paths among the entities that it names.
            max_hops: steps of a path, 1 to 4.
            relation_types: only relationships of these types, in any case; excludes shared mentions.
            min_weight: least weight of a step.
            direction: `out`: every step follows its relationship from source to target; `in`: the opposite; both exclude
                shared mentions.
            mentions: if no path consists of relationships, also use steps between entities that one chunk mentions.
            limit: maximum paths, 1 to 50.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
        """
        return await self._session.read(Call.of("POST /api/v1/graph/paths", locals(), repeatable=True), models.Paths)

    @listing
    def contradictions(
        self,
        *,
        entity: str | None = None,
        kind: Literal["denial", "exclusive", "date", "number"] | None = None,
        min_confidence: float | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.Contradiction]:
        """List contradictions.

        List the statements of visible documents that cannot both be true, entity by entity, the likeliest first.

        A page reads a bounded number of chunks. It may be short or empty and still have a next page.

        Args:
            entity: only about this entity: an id or name.
            kind: only of this kind.
            min_confidence: least confidence; lower ones are often none.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/graph/contradictions", locals()), models.Contradiction)

    @download
    def export(self, *, format: Literal["graphml", "json"] | None = None, as_of: datetime | str | None = None) -> AsyncDownload:
        """Export the graph.

        Return the visible entities and relationships as a file for Gephi, Cytoscape, NetworkX and other programs.

        Args:
            format: `json`: nodes and edges in the node-link form.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
        """
        return AsyncDownload(self._session, Call.of("GET /api/v1/graph/export", locals()))

    @operation
    async def merge_entities(self, entity_id: str, entity_ids: Sequence[str], *, reason: str | None = None) -> models.GraphEdit:
        """Merge entities into an entity.

        Make other entities this one, with their names, mentions and relationships. Later documents follow it, too.

        Args:
            entity_ids: entities that become this one.
            reason: a remark for the record.
        """
        return await self._session.read(Call.of("POST /api/v1/graph/entities/{entity_id}/merge", locals()), models.GraphEdit)

    @operation
    async def split_entity(
        self,
        entity_id: str,
        *,
        document_ids: Sequence[str] | None = None,
        names: Sequence[str] | None = None,
        entity_ids: Sequence[str] | None = None,
        name: str | None = None,
        type: str | None = None,
        reason: str | None = None,
    ) -> models.GraphEdit:
        """Split an entity.

        Take documents, names, or merged entities out of an entity. Later documents follow it, too.

        Args:
            document_ids: documents in which the name means another entity, which is created.
            names: names that become entities of their own, in all documents.
            entity_ids: entities that were merged into it.
            name: with `document_ids`: the name of the new entity; null: as the documents say.
            type: with `document_ids`: the type of the new entity.
            reason: a remark for the record.
        """
        return await self._session.read(Call.of("POST /api/v1/graph/entities/{entity_id}/split", locals()), models.GraphEdit)

    @operation
    async def rename_entity(
        self, entity_id: str, *, name: str | None = None, type: str | None = None, reason: str | None = None
    ) -> models.GraphEdit:
        """Rename an entity.

        Give an entity another name or type. Later documents do not change it.

        Args:
            name: null: unchanged.
            type: such as `person`; null: unchanged.
            reason: a remark for the record.
        """
        return await self._session.read(Call.of("POST /api/v1/graph/entities/{entity_id}/rename", locals()), models.GraphEdit)

    @operation
    async def delete_entity(self, entity_id: str, *, reason: str | None = None) -> models.GraphEdit:
        """Delete an entity.

        Delete an entity with its mentions and relationships, in later documents, too. Documents and chunks stay.

        Args:
            reason: a remark for the record.
        """
        return await self._session.read(Call.of("DELETE /api/v1/graph/entities/{entity_id}", locals()), models.GraphEdit)

    @listing
    def edits(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.GraphEdit]:
        """List edits of the graph.

        List the edits of the graph, the newest first, with those that were undone.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/graph/edits", locals()), models.GraphEdit)

    @operation
    async def edit(self, number: int) -> models.GraphEdit:
        """Get an edit of the graph.

        Return an edit, also one that was undone.

        Args:
            number: the edit's number.
        """
        return await self._session.read(Call.of("GET /api/v1/graph/edits/{number}", locals()), models.GraphEdit)

    @operation
    async def undo_edit(self, number: int) -> models.GraphEdit:
        """Undo an edit of the graph.

        Undo an edit. The edits after it stay in effect.

        Args:
            number: the edit's number.
        """
        return await self._session.read(Call.of("DELETE /api/v1/graph/edits/{number}", locals()), models.GraphEdit)


class Communities(Resource[Mode]):
    """Operations of `client.communities`."""

    @listing
    def list(
        self, *, level: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Community]:
        """List communities.

        List the current generation by level and decreasing size.

        Args:
            level: 0 is the coarsest.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/communities", locals()), models.Community)

    @operation
    async def get(self, community_id: str) -> models.Community:
        """Get a community.

        Return a community of the current generation.
        """
        return await self._session.read(Call.of("GET /api/v1/communities/{community_id}", locals()), models.Community)


class Raptor(Resource[Mode]):
    """Operations of `client.raptor`."""

    @listing
    def list(
        self, *, level: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.RaptorNode]:
        """List the tree's nodes.

        List the current tree's nodes by level and decreasing size.

        Args:
            level: 1: clusters of passages.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/raptor", locals()), models.RaptorNode)

    @operation
    async def get(self, node_id: str) -> models.RaptorNode:
        """Get a node of the tree.

        Return a node of the current tree.
        """
        return await self._session.read(Call.of("GET /api/v1/raptor/{node_id}", locals()), models.RaptorNode)


class Features(Resource[Mode]):
    """Operations of `client.features`."""

    @operation
    async def list(self) -> Sequence[models.Flag]:
        """Feature flags.

        Return each flag's effective value, default and source.
        """
        return await self._session.read_list(Call.of("GET /api/v1/features", locals()), models.Flag)

    @operation
    async def update(self, changes: Mapping[str, bool | float | None]) -> Sequence[models.Flag]:
        """Set features of this tenant.

        Set flags. Every process applies them from the next request on.

        Args:
            changes: Flags to set; null restores the default.
        """
        return await self._session.read_list(Call("PATCH", "/api/v1/features", body=changes), models.Flag)


class Ontology(Resource[Mode]):
    """Operations of `client.ontology`."""

    @operation
    async def get(self) -> models.Ontology:
        """Types of entities and relationships.

        Return the types that a language model uses when it extracts from documents of this tenant.
        """
        return await self._session.read(Call.of("GET /api/v1/ontology", locals()), models.Ontology)

    @operation
    async def replace(
        self,
        entity_types: Sequence[EntityTypeBody],
        *,
        relation_types: Sequence[RelationTypeBody] | None = None,
        entity_fields: Sequence[EntityFieldBody] | None = None,
    ) -> models.Ontology:
        """Replace the ontology.

        Replace the ontology of this tenant. It applies to documents that are processed from now on.

        The deployment's own ontology makes the tenant follow the deployment again.

        Args:
            entity_types: 1 to 50; an entity of none of them is `other`.
            relation_types: at most 100; empty: any relation.
            entity_fields: at most 20; a string, or each string of a list, is an entity of all chunks of the document.
        """
        return await self._session.read(Call.of("PUT /api/v1/ontology", locals()), models.Ontology)


class Admin(Resource[Mode]):
    """Operations of `client.admin`."""

    @operation
    async def rebuild_communities(
        self,
        *,
        idempotency_key: str | None = None,
        mode: Literal["incremental", "full"] | None = None,
        levels: int | None = None,
        summarize: bool | None = None,
        dry_run: bool | None = None,
        max_cluster_size: int | None = None,
        min_community_size: int | None = None,
        resolution: float | None = None,
    ) -> models.JobAccepted:
        """Rebuild communities.

        Queue a rebuild, or join a running rebuild. Readers see the current generation until the new one is complete.

        Args:
            idempotency_key: default: a new one.
            levels: levels of the hierarchy.
            summarize: false: only extractive summaries, no model call.
            dry_run: estimate model calls and tokens, change nothing.
        """
        return await self._session.read(
            Call.of("POST /api/v1/admin/communities/rebuild", locals(), keyed=True), models.JobAccepted
        )

    @operation
    async def communities(self) -> models.CommunityStatus:
        """State of the communities.

        Return generation, staleness, the last job and the figures of the last rebuild.
        """
        return await self._session.read(Call.of("GET /api/v1/admin/communities", locals()), models.CommunityStatus)

    @operation
    async def rebuild_raptor(
        self,
        *,
        idempotency_key: str | None = None,
        mode: Literal["incremental", "full"] | None = None,
        summarize: bool | None = None,
        dry_run: bool | None = None,
        max_levels: int | None = None,
        cluster_size: int | None = None,
        max_clusters_per_level: int | None = None,
        method: Literal["mixture", "kmeans"] | None = None,
    ) -> models.JobAccepted:
        """Build the tree.

        Queue a build, or join a running build. Readers see the current tree until the new one is complete.

        Args:
            idempotency_key: default: a new one.
            summarize: false: only extractive summaries, no model call.
            dry_run: estimate model calls and tokens, change nothing.
            max_levels: levels of summaries above the passages.
            cluster_size: approximate number of children of a node.
        """
        return await self._session.read(Call.of("POST /api/v1/admin/raptor/rebuild", locals(), keyed=True), models.JobAccepted)

    @operation
    async def raptor(self) -> models.TreeStatus:
        """State of the tree.

        Return generation, staleness, the last job and the figures of the last build.
        """
        return await self._session.read(Call.of("GET /api/v1/admin/raptor", locals()), models.TreeStatus)

    @operation
    async def reconcile(
        self, *, idempotency_key: str | None = None, repair: bool | None = None, confirm: bool | None = None
    ) -> models.JobAccepted:
        """Compare the stores, and repair them.

        Queue a comparison of catalogue, graph, vectors and originals, or join a running one. The job's result is the report.

        Args:
            idempotency_key: default: a new one.
            repair: false: report differences, change nothing.
            confirm: with `repair`: remove data of no known document, even if it is much (`withheld` counts it).
        """
        return await self._session.read(Call.of("POST /api/v1/admin/reconcile", locals(), keyed=True), models.JobAccepted)

    @operation
    async def reconciliation(self) -> models.ReconcileStatus:
        """The last comparison of the stores.

        Return the interval of scheduled comparisons, and the last comparison with its report.
        """
        return await self._session.read(Call.of("GET /api/v1/admin/reconcile", locals()), models.ReconcileStatus)


class Tuning(Resource[Mode]):
    """Operations of `client.tuning`."""

    @operation
    async def propose(
        self,
        *,
        idempotency_key: str | None = None,
        datasets: Sequence[str] | None = None,
        feedback: bool | None = None,
        parameters: Sequence[Parameter] | None = None,
        metric: Literal["recall", "all_gold", "ndcg", "mrr"] | None = None,
        k: int | None = None,
        seed: int | None = None,
        dry_run: bool | None = None,
    ) -> models.TuningAccepted:
        """Propose better values for the tenant's searches.

        Queue a job that learns values on one half of the cases and checks them on the other. Nothing changes before `accept`.

        With `dry_run`, the response is the number of cases and searches.

        Args:
            idempotency_key: default: a new one.
            datasets: ids of datasets; default: all; an empty list: none.
            feedback: rated answers are cases, too: feedback that has its `question`, and good citations or a correction;
                `confidence` is learned from all rated answers.
            parameters: what may change; default: all that searches of the tenant use.
            metric: measure of results that must improve.
            k: results of each question that count.
            seed: another seed splits the cases into other halves.
            dry_run: return the expected work, and start nothing.
        """
        return await self._session.read(Call.of("POST /api/v1/admin/tuning", locals(), keyed=True), models.TuningAccepted)

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Proposal]:
        """List proposals of tuning, newest first.

        List the tenant's proposals without their evidence.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/admin/tuning", locals()), models.Proposal)

    @operation
    async def get(self, proposal_id: str) -> models.Proposal:
        """Get a proposal of tuning with its evidence.

        Return a proposal: the values before and after, and their measures on both halves of the cases.
        """
        return await self._session.read(Call.of("GET /api/v1/admin/tuning/{proposal_id}", locals()), models.Proposal)

    @operation
    async def delete(self, proposal_id: str) -> None:
        """Delete a proposal of tuning.

        Delete a proposal that has ended and whose values are not in use.
        """
        await self._session.send(Call.of("DELETE /api/v1/admin/tuning/{proposal_id}", locals()))

    @operation
    async def accept(self, proposal_id: str, *, idempotency_key: str | None = None) -> models.Proposal:
        """Use the proposed values.

        Use the proposed values in every search of the tenant that does not set them itself, from the next request on.

        If documents changed since the proposal was measured, `warnings` says so. If the embedder or other values changed, it
        is refused with 409.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(
            Call.of("POST /api/v1/admin/tuning/{proposal_id}/accept", locals(), keyed=True), models.Proposal
        )

    @operation
    async def roll_back(self, proposal_id: str, *, idempotency_key: str | None = None) -> models.Proposal:
        """Restore the values before.

        Restore the values that an accepted proposal replaced, from the next request on.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(
            Call.of("POST /api/v1/admin/tuning/{proposal_id}/rollback", locals(), keyed=True), models.Proposal
        )


class Datasets(DatasetFiles[Mode]):
    """Operations of `client.datasets`."""

    @operation
    async def create(
        self,
        name: str,
        *,
        idempotency_key: str | None = None,
        cases: Sequence[CaseRequest] | None = None,
        generate: GenerateBody | None = None,
        from_questions: QuestionsBody | None = None,
    ) -> models.Dataset:
        """Create a dataset from cases or a file, or generate one.

        Create a dataset. With `generate`, a job makes the cases from the tenant's own documents, by rules without a model.

        Args:
            idempotency_key: default: a new one.
            from_questions: requires the scope `admin`.
        """
        return await self._session.read(Call.of("POST /api/v1/evaluation/datasets", locals(), keyed=True), models.Dataset)

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Dataset]:
        """List datasets, newest first.

        List the tenant's datasets without their cases.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/datasets", locals()), models.Dataset)

    @operation
    async def get(self, dataset_id: str) -> models.Dataset:
        """Get a dataset.

        Return a dataset without its cases.
        """
        return await self._session.read(Call.of("GET /api/v1/evaluation/datasets/{dataset_id}", locals()), models.Dataset)

    @operation
    async def delete(self, dataset_id: str) -> None:
        """Delete a dataset.

        Delete a dataset in all versions, with its runs and their outcomes.
        """
        await self._session.send(Call.of("DELETE /api/v1/evaluation/datasets/{dataset_id}", locals()))

    @listing
    def cases(
        self, dataset_id: str, *, version: int | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.Case]:
        """List the cases of a dataset.

        List the cases of a version in the order in which they were added.

        Args:
            version: version of the dataset; default: the current one.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/datasets/{dataset_id}/cases", locals()), models.Case)

    @operation
    async def add_cases(
        self,
        dataset_id: str,
        *,
        idempotency_key: str | None = None,
        cases: Sequence[CaseRequest] | None = None,
        answer: SavedAnswer | None = None,
        from_questions: QuestionsBody | None = None,
    ) -> models.Dataset:
        """Add cases to a dataset.

        Add cases, an answer as a case, or questions that users asked, as a new version. Earlier versions stay as they are.

        Args:
            idempotency_key: default: a new one.
            from_questions: requires the scope `admin`.
        """
        return await self._session.read(
            Call.of("POST /api/v1/evaluation/datasets/{dataset_id}/cases", locals(), keyed=True), models.Dataset
        )

    @operation
    async def remove_case(self, dataset_id: str, case_id: str) -> models.Dataset:
        """Remove a case from a dataset.

        Remove a case from the next version. Earlier versions keep it.
        """
        return await self._session.read(
            Call.of("DELETE /api/v1/evaluation/datasets/{dataset_id}/cases/{case_id}", locals()), models.Dataset
        )

    @download
    def export(self, dataset_id: str, *, version: int | None = None) -> AsyncDownload:
        """Export a dataset.

        Return a version as JSON Lines, which can be uploaded again.

        Args:
            version: version of the dataset; default: the current one.
        """
        return AsyncDownload(self._session, Call.of("GET /api/v1/evaluation/datasets/{dataset_id}/export", locals()))


class Runs(Resource[Mode]):
    """Operations of `client.runs`."""

    @operation
    async def start(
        self,
        dataset: str,
        configurations: Sequence[ConfigurationRequest],
        *,
        idempotency_key: str | None = None,
        version: int | None = None,
        k: int | None = None,
        metrics: Sequence[
            Literal[
                "recall",
                "all_gold",
                "ndcg",
                "mrr",
                "correct",
                "contains",
                "token_f1",
                "must_say",
                "faithfulness",
                "answered_answerable",
                "refused_unanswerable",
                "contradictions",
            ]
        ]
        | None = None,
        max_tokens: int | None = None,
        judge: JudgeBody | None = None,
        dry_run: bool | None = None,
    ) -> models.RunAccepted:
        """Run configurations over a dataset.

        Queue a job that asks every case in every configuration and measures the results. It survives restarts of the server.

        With `dry_run`, the response is the expected number of questions and tokens.

        Args:
            dataset: id of the dataset.
            idempotency_key: default: a new one.
            version: version of the dataset; default: the current one.
            k: results of each question.
            metrics: metrics that must be measured; without one of an answer, no answers are written; default: all.
            max_tokens: budget: no question is asked after this many tokens; the run is then `partial`.
            judge: compare answers by a model, which costs two calls for each pair; default: no.
            dry_run: return the expected work, and start nothing.
        """
        return await self._session.read(Call.of("POST /api/v1/evaluation/runs", locals(), keyed=True), models.RunAccepted)

    @listing
    def list(self, *, dataset: str | None = None, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Run]:
        """List evaluation runs, newest first.

        List the tenant's runs without their results.

        Args:
            dataset: only runs over this dataset.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/runs", locals()), models.Run)

    @operation
    async def get(self, run_id: str, *, baseline: str | None = None) -> models.Run:
        """Get an evaluation run.

        Return a run with its metrics, and the differences from its first configuration or from another run.

        Args:
            baseline: id of another run: `differences` are then those from this run.
        """
        return await self._session.read(Call.of("GET /api/v1/evaluation/runs/{run_id}", locals()), models.Run)

    @operation
    async def delete(self, run_id: str) -> None:
        """Delete an evaluation run.

        Delete a run that has ended, with its outcomes.
        """
        await self._session.send(Call.of("DELETE /api/v1/evaluation/runs/{run_id}", locals()))

    @download
    def report(self, run_id: str, *, baseline: str | None = None) -> AsyncDownload:
        """Report of an evaluation run.

        Return the report of a run that has ended.

        Args:
            baseline: id of another run: `differences` are then those from this run.
        """
        return AsyncDownload(self._session, Call.of("GET /api/v1/evaluation/runs/{run_id}/report", locals()))

    @listing
    def outcomes(self, run_id: str, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Outcome]:
        """List the outcomes of a run's questions.

        List one outcome for each case and configuration that was asked.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/runs/{run_id}/outcomes", locals()), models.Outcome)


class Experiments(Resource[Mode]):
    """Operations of `client.experiments`."""

    @operation
    async def start(
        self,
        name: str,
        configurations: Sequence[ConfigurationRequest],
        *,
        idempotency_key: str | None = None,
        share: float | None = None,
        stop: StopBody | None = None,
    ) -> models.Experiment:
        """Compare two configurations on requests.

        Start an experiment. From now on, a hash of each question decides which configuration searches and answers it.

        Args:
            idempotency_key: default: a new one.
            share: share of the questions that take part.
        """
        return await self._session.read(Call.of("POST /api/v1/evaluation/experiments", locals(), keyed=True), models.Experiment)

    @listing
    def list(self, *, limit: int | None = None, cursor: str | None = None) -> AsyncPages[models.Experiment]:
        """List experiments, newest first.

        List the tenant's experiments without their figures.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/experiments", locals()), models.Experiment)

    @operation
    async def get(self, experiment_id: str) -> models.Experiment:
        """Get an experiment with its figures.

        Return the figures until now. They may be read at any time: intervals and p hold at all looks together.
        """
        return await self._session.read(
            Call.of("GET /api/v1/evaluation/experiments/{experiment_id}", locals()), models.Experiment
        )

    @operation
    async def delete(self, experiment_id: str) -> None:
        """Delete an experiment.

        Delete an experiment that has ended, with its outcomes.
        """
        await self._session.send(Call.of("DELETE /api/v1/evaluation/experiments/{experiment_id}", locals()))

    @operation
    async def stop(self, experiment_id: str, *, idempotency_key: str | None = None) -> models.Experiment:
        """End an experiment.

        End an experiment. Requests are answered as before it, from the next one on. The figures stay.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(
            Call.of("POST /api/v1/evaluation/experiments/{experiment_id}/stop", locals(), keyed=True), models.Experiment
        )


class AskedQuestions(Resource[Mode]):
    """Operations of `client.questions`."""

    @listing
    def list(
        self, *, rating: Rating | None = None, grounded: bool | None = None, limit: int | None = None, cursor: str | None = None
    ) -> AsyncPages[models.AskedQuestion]:
        """List kept questions, newest first.

        List the questions that users asked, if the tenant allowed to keep them (`QUESTION_LOG_ENABLED`).

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/questions", locals()), models.AskedQuestion)

    @operation
    async def delete(self, question_id: str) -> None:
        """Delete a kept question.

        Delete the text of a kept question.
        """
        await self._session.send(Call.of("DELETE /api/v1/evaluation/questions/{question_id}", locals()))

    @operation
    async def delete_all(self) -> models.QuestionsForgotten:
        """Delete all kept questions.

        Delete the texts of all kept questions. Datasets that were made from them stay.
        """
        return await self._session.read(Call.of("DELETE /api/v1/evaluation/questions", locals()), models.QuestionsForgotten)


class Scores(Resource[Mode]):
    """Operations of `client.scores`."""

    @operation
    async def submit(
        self,
        query: str,
        *,
        idempotency_key: str | None = None,
        answer: str | None = None,
        expected_answer: str | None = None,
        retrieved_chunk_ids: Sequence[str] | None = None,
        gold_chunk_ids: Sequence[str] | None = None,
        contexts: Sequence[str] | None = None,
        scores: Mapping[str, Any] | None = None,
        strategy: str | None = None,
        configuration: str | None = None,
    ) -> models.RecordedScores:
        """Submit scores of an answer.

        Record the caller's scores. Missing ones that the request allows to compute are computed, and marked as `computed`.

        Args:
            idempotency_key: default: a new one.
            retrieved_chunk_ids: best first.
            gold_chunk_ids: chunks that contain the answer.
            contexts: texts, at most 100000 characters together; default: of `retrieved_chunk_ids`.
            scores: by metric.
            strategy: strategy of the answer.
            configuration: a name of the caller for everything else that may differ.
        """
        return await self._session.read(Call.of("POST /api/v1/evaluation/submit", locals(), keyed=True), models.RecordedScores)

    @listing
    def metrics(
        self,
        *,
        from_: date | str | None = None,
        to: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        strategy: str | None = None,
        configuration: str | None = None,
    ) -> AsyncPages[models.ScoreGroup]:
        """Means of submitted scores over time.

        Return the means of each day (UTC), strategy and configuration, the newest day first.

        Args:
            from_: first day, in UTC; default: 30 days with `to` as the last.
            to: last day; at most 366 days; default: today.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/evaluation/metrics", locals()), models.ScoreGroup)


class Tenants(TenantArchives[Mode]):
    """Operations of `client.tenants`."""

    @operation
    async def create(self, name: str, *, idempotency_key: str | None = None) -> models.Tenant:
        """Create a tenant.

        Create a tenant without keys.

        Args:
            idempotency_key: default: a new one.
        """
        return await self._session.read(Call.of("POST /api/v1/tenants", locals(), keyed=True), models.Tenant)

    @listing
    def list(
        self, *, limit: int | None = None, cursor: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncPages[models.Tenant]:
        """List tenants.

        List tenants, newest first. `labels.NAME=VALUE` in the query string selects tenants with that label.

        Args:
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
            labels: selects tenants whose label NAME has this value; may be given for several names.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/tenants", locals()), models.Tenant)

    @operation
    async def get(self, tenant_id: str) -> models.Tenant:
        """Get a tenant.

        Return a tenant.
        """
        return await self._session.read(Call.of("GET /api/v1/tenants/{tenant_id}", locals()), models.Tenant)

    @operation
    async def change(
        self, tenant_id: str, *, name: str | None = None, suspended: bool | None = None, labels: Mapping[str, str] | None = None
    ) -> models.Tenant:
        """Rename, label or suspend a tenant.

        Change the fields that are given. A suspended tenant keeps its data; its keys are refused, and its jobs wait.

        Args:
            suspended: true: the tenant's keys are refused and its jobs wait; false: the tenant is active again.
            labels: replace the tenant's labels; at most 20, each of at most 256 characters.
        """
        return await self._session.read(Call.of("PATCH /api/v1/tenants/{tenant_id}", locals()), models.Tenant)

    @operation
    async def delete(self, tenant_id: str) -> models.DeletedTenant:
        """Delete a tenant.

        Refuse the tenant's requests immediately and remove its data. The receipt counts the removed data.

        If the removal takes longer than 30 s, or a store fails, it continues in the background and the status is 202.
        """
        return await self._session.read(Call.of("DELETE /api/v1/tenants/{tenant_id}", locals()), models.DeletedTenant)

    @listing
    def usage(
        self,
        *,
        from_: date | str | None = None,
        to: date | str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncPages[models.TenantUsage]:
        """Usage and cost of each tenant.

        Return the usage of each tenant in a period, in order of the tenants' ids. Removed tenants have none.

        `meta` has the period and the currency.

        Args:
            from_: first day, in UTC; default: 30 days with `to` as the last.
            to: last day; at most 366 days; default: today.
            limit: items per page, 1 to 100.
            cursor: `meta.nextCursor` of the previous page.
        """
        return AsyncPages(self._session, Call.of("GET /api/v1/tenants/usage", locals()), models.TenantUsage)

    @operation
    async def quota(self, tenant_id: str) -> models.Quota:
        """Get a tenant's quota.

        Return the limits that were set for a tenant, and the use of all limits that apply.
        """
        return await self._session.read(Call.of("GET /api/v1/tenants/{tenant_id}/quota", locals()), models.Quota)

    @operation
    async def set_quota(self, tenant_id: str, limits: Mapping[str, float | None]) -> models.Quota:
        """Set a tenant's quota.

        Replace the limits of a tenant. null: no limit. A limit that is left out has its default, `QUOTA_…`.

        Every process applies them from the next request on. Jobs that wait for a quota start again.

        Args:
            limits: limits by name; None: no limit; a limit that is left out has its default.
        """
        return await self._session.read(
            Call("PUT", fill_path("/api/v1/tenants/{tenant_id}/quota", tenant_id), body=limits), models.Quota
        )

    @operation
    async def set_key_quota(self, tenant_id: str, key_id: str, limits: Mapping[str, float | None]) -> models.Key:
        """Set a key's quota.

        Replace the limits of a key. It also has those of its tenant. Without limits in the body, it has no others.

        Args:
            limits: limits by name; None: no limit.
        """
        return await self._session.read(
            Call("PUT", fill_path("/api/v1/tenants/{tenant_id}/keys/{key_id}/quota", tenant_id, key_id), body=limits), models.Key
        )

    @download
    def export(self, tenant_id: str) -> AsyncDownload:
        """Export a tenant.

        Return the tenant's data at one moment as an archive. It contains no keys and no secrets.
        """
        return AsyncDownload(self._session, Call.of("POST /api/v1/tenants/{tenant_id}/export", locals()))

    @operation
    async def create_key(
        self,
        tenant_id: str,
        *,
        idempotency_key: str | None = None,
        name: str | None = None,
        scopes: Sequence[Scope] | None = None,
        expires_at: datetime | str | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> models.Key:
        """Issue a key.

        Issue a key. Its secret is in this response only; a repetition with the same `Idempotency-Key` does not show it.

        Args:
            idempotency_key: default: a new one.
            name: unique among the tenant's keys that work.
            expires_at: time from which on the key is refused; a year, month or day means its end; default zone: UTC; null: it
                does not expire.
            filter: the key reads only documents that pass this filter, and may only have the scope `read`; null: it reads all
                documents; see docs/guide/restricted-keys.md.
        """
        return await self._session.read(Call.of("POST /api/v1/tenants/{tenant_id}/keys", locals(), keyed=True), models.Key)

    @operation
    async def keys(self, tenant_id: str) -> Sequence[models.Key]:
        """List a tenant's keys.

        List keys, newest first, without secrets, including revoked keys.
        """
        return await self._session.read_list(Call.of("GET /api/v1/tenants/{tenant_id}/keys", locals()), models.Key)

    @operation
    async def rotate_key(
        self, tenant_id: str, key_id: str, *, idempotency_key: str | None = None, overlap_s: int | None = None
    ) -> models.Key:
        """Rotate a key.

        Issue a key with the name, the scopes and the length of life of another, which ends after the overlap.

        The secret is in this response only.

        Args:
            idempotency_key: default: a new one.
            overlap_s: seconds for which the replaced key still works; 0: it ends immediately.
        """
        return await self._session.read(
            Call.of("POST /api/v1/tenants/{tenant_id}/keys/{key_id}/rotate", locals(), keyed=True), models.Key
        )

    @operation
    async def revoke_key(self, tenant_id: str, key_id: str) -> None:
        """Revoke a key.

        Revoke a key. Every process refuses the next request with it, and ends its open streams within seconds.
        """
        await self._session.send(Call.of("DELETE /api/v1/tenants/{tenant_id}/keys/{key_id}", locals()))


class Health(Resource[Mode]):
    """Operations of `client.health`."""

    @operation
    async def live(self) -> models.Live:
        """Liveness of the process.

        Return immediately.
        """
        return await self._session.read(Call.of("GET /health/live", locals()), models.Live, enveloped=False)

    @operation
    async def ready(self) -> models.Ready:
        """Readiness of the stores and the embedder.

        Ping every store. 503 if one does not respond within 5 s, or if the embedder is unavailable.

        If the language model is unavailable, the status is `degraded`: searches work, and answers are extractive.
        """
        return await self._session.read(Call.of("GET /health/ready", locals(), accepted=503), models.Ready, enveloped=False)

    @download
    def metrics(self) -> AsyncDownload:
        """Metrics in Prometheus's text format.

        Return metrics of requests, model calls, stores, workers and jobs. Without the catalogue, its metrics are absent.
        """
        return AsyncDownload(self._session, Call.of("GET /metrics", locals()))


class Operations(Resource[Mode]):
    """The operations of a client."""

    @operation
    async def search(
        self,
        query: str,
        *,
        timeout_ms: int | None = None,
        cache: bool | None = None,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        options: Mapping[str, Any] | None = None,
        rerank: bool | str | Mapping[str, Any] | None = None,
        corrective: bool | Mapping[str, Any] | None = None,
        strategy: str | None = None,
        limit: int | None = None,
        weights: Weights | None = None,
        fields: Sequence[str] | None = None,
    ) -> models.SearchResults:
        """Find chunks, facts and themes.

        Retrieve without writing an answer.

        Args:
            query: the question, 1 to 8,000 characters.
            timeout_ms: time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`.
            cache: false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB).
            min_score: least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit.
            filters: filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and
                `community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. See
                docs/reference/filters.md.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            options: options of the strategy.
            rerank: name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`,
                `timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for
                `hybrid`, otherwise false.
            corrective: true: grade the results, and search other wordings if too few are relevant; or an object with
                `relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false.
            strategy: see GET /strategies; default: DEFAULT_STRATEGY.
            limit: maximum results and maximum themes, 1 to 100; default: 5, or DUAL_LEVEL_LOW_LIMIT for dual-level searches.
            fields: parts of `data` that the response has, such as `results` and `trace`, and fields of `results`, such as
                `content` or `results.content`; named fields of a part leave out its other fields; default: everything.
        """
        return await self._session.read(Call.of("POST /api/v1/search", locals(), repeatable=True), models.SearchResults)

    @operation
    async def search_dual_level(
        self,
        query: str,
        *,
        timeout_ms: int | None = None,
        cache: bool | None = None,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        options: Mapping[str, Any] | None = None,
        rerank: bool | str | Mapping[str, Any] | None = None,
        corrective: bool | Mapping[str, Any] | None = None,
        low_limit: int | None = None,
        high_limit: int | None = None,
        low_weight: float | None = None,
        high_weight: float | None = None,
        preset: Literal["factoid", "conceptual", "balanced", "research", "auto"] | None = None,
        synthesize: bool | None = None,
        prompt: str | None = None,
        fields: Sequence[str] | None = None,
    ) -> models.DualLevel:
        """Search both levels in parallel and answer from them.

        Return chunks and communities with their scores and, unless `synthesize` is false, a cited answer from both.

        The answer is `synthesized_answer`; `POST /answers` calls it `answer`.

        Args:
            query: the question, 1 to 8,000 characters.
            timeout_ms: time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`.
            cache: false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB).
            min_score: least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit.
            filters: filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and
                `community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. See
                docs/reference/filters.md.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            options: options of the strategy.
            rerank: name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`,
                `timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for
                `hybrid`, otherwise false.
            corrective: true: grade the results, and search other wordings if too few are relevant; or an object with
                `relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false.
            preset: auto: by the form of the question.
            prompt: prompt that replaces the built-in one; must contain {{passages}} and {{question}}.
            fields: parts of `data` that the response has, such as `synthesized_answer` and `citations`, and fields of
                `low_level_results`, such as `content` or `low_level_results.content`; named fields of a part leave out its
                other fields; default: everything.
        """
        return await self._session.read(Call.of("POST /api/v1/search/dual-level", locals(), repeatable=True), models.DualLevel)

    @operation
    async def explain(
        self,
        query: str,
        document_id: str,
        *,
        timeout_ms: int | None = None,
        cache: bool | None = None,
        min_score: float | None = None,
        filters: Mapping[str, Any] | None = None,
        as_of: datetime | str | None = None,
        options: Mapping[str, Any] | None = None,
        rerank: bool | str | Mapping[str, Any] | None = None,
        corrective: bool | Mapping[str, Any] | None = None,
        strategy: str | None = None,
        limit: int | None = None,
        weights: Weights | None = None,
    ) -> models.Explain:
        """Explain why a search returns or omits a document.

        Return the document's rank in each leg and in the result, and the reason for its omission.

        Args:
            query: the question, 1 to 8,000 characters.
            timeout_ms: time limit in milliseconds, at most REQUEST_TIMEOUT_S; then 504 `timeout`.
            cache: false: search again, even if the results of an equal search are in the cache (SEARCH_CACHE_MB).
            min_score: least `score` of a result, 0 to 1, after reranking; facts and themes have no such limit.
            filters: filter over metadata, `document_id`, `key`, `title`, `source`, `language`, `entity`, `entity_type` and
                `community`; operators are eq, ne, in, nin, gt, gte, lt, lte, contains, prefix, exists and missing. See
                docs/reference/filters.md.
            as_of: only facts that were valid at this time; a year, month or day means its end; default zone: UTC.
            options: options of the strategy.
            rerank: name of a reranker, see GET /rerankers; or an object with `name`, `top_n`, `candidates`, `min_score`,
                `timeout_ms` and options of the reranker; true: the default one; false: none; default: HYBRID_RERANK for
                `hybrid`, otherwise false.
            corrective: true: grade the results, and search other wordings if too few are relevant; or an object with
                `relevance_threshold`, `max_refinement_attempts`, `min_relevant` and `max_calls`; default: false.
            strategy: see GET /strategies; default: DEFAULT_STRATEGY.
            limit: maximum results and maximum themes, 1 to 100; default: 5, or DUAL_LEVEL_LOW_LIMIT for dual-level searches.
        """
        return await self._session.read(Call.of("POST /api/v1/search/explain", locals(), repeatable=True), models.Explain)

    @operation
    async def label(
        self,
        text: str,
        *,
        limit: int | None = None,
        strategy: str | None = None,
        labels: Sequence[str] | None = None,
        filters: Mapping[str, Any] | None = None,
        method: Literal["votes", "model"] | None = None,
    ) -> models.Label:
        """Label a text by the labelled documents that are nearest to it.

        Return the label that the nearest documents with the metadata `label` have, or that a language model chooses from
        theirs.

        The text is not kept.

        Args:
            text: the text, 1 to 8,000 characters.
            limit: number of labelled documents that vote.
            strategy: how labelled documents are found, see GET /strategies; default: hybrid.
            labels: labels to choose from; default: those of the documents that vote.
            filters: filter of the labelled documents; see docs/reference/filters.md.
            method: `votes`: the documents decide; `model`: a language model decides, and reads them as examples; default:
                `model` if one is configured.
        """
        return await self._session.read(Call.of("POST /api/v1/label", locals(), repeatable=True), models.Label)

    @operation
    async def status(self) -> models.Status:
        """Version, stores, models, features, counts.

        Return the status of the server and of the caller's tenant.
        """
        return await self._session.read(Call.of("GET /api/v1/status", locals()), models.Status)

    @operation
    async def usage(
        self, *, from_: date | str | None = None, to: date | str | None = None, by: UsageGroup | None = None
    ) -> models.UsageReport:
        """Usage and cost of this tenant.

        Return model calls, tokens, cost and requests by day, stage, model or key, and the size of the tenant's documents.

        `quota` has the use of each limit now. Calls of jobs count for the key whose request began the job. What other
        processes of the server did in the last two seconds may be missing.

        Args:
            from_: first day, in UTC; default: 30 days with `to` as the last.
            to: last day; at most 366 days; default: today.
        """
        return await self._session.read(Call.of("GET /api/v1/usage", locals()), models.UsageReport)

    @operation
    async def tenant(self) -> models.OwnTenant:
        """Get the tenant of this key.

        Return the caller's tenant, with the use of its limits and of the limits of the key.
        """
        return await self._session.read(Call.of("GET /api/v1/tenants/me", locals()), models.OwnTenant)

    @operation
    async def strategies(self) -> Sequence[models.Strategy]:
        """Retrieval strategies.

        List the strategies with their options and, if a strategy is unavailable, the reason.
        """
        return await self._session.read_list(Call.of("GET /api/v1/strategies", locals()), models.Strategy)

    @operation
    async def rerankers(self) -> Sequence[models.Reranker]:
        """Rerankers.

        List the rerankers with their options and, if a reranker is unavailable, the reason. `rerank` of a search names one.
        """
        return await self._session.read_list(Call.of("GET /api/v1/rerankers", locals()), models.Reranker)

    @cached_property
    def documents(self) -> Documents[Mode]:
        """Operations of documents."""
        return Documents(self._session)

    @cached_property
    def chunks(self) -> Chunks[Mode]:
        """Operations of chunks."""
        return Chunks(self._session)

    @cached_property
    def jobs(self) -> Jobs[Mode]:
        """Operations of jobs."""
        return Jobs(self._session)

    @cached_property
    def answers(self) -> Answers[Mode]:
        """Operations of answers."""
        return Answers(self._session)

    @cached_property
    def feedback(self) -> Feedback[Mode]:
        """Operations of feedback."""
        return Feedback(self._session)

    @cached_property
    def graph(self) -> Graph[Mode]:
        """Operations of the knowledge graph."""
        return Graph(self._session)

    @cached_property
    def communities(self) -> Communities[Mode]:
        """Operations of communities."""
        return Communities(self._session)

    @cached_property
    def raptor(self) -> Raptor[Mode]:
        """Operations of the RAPTOR tree."""
        return Raptor(self._session)

    @cached_property
    def features(self) -> Features[Mode]:
        """Operations of features."""
        return Features(self._session)

    @cached_property
    def ontology(self) -> Ontology[Mode]:
        """Operations of ontology."""
        return Ontology(self._session)

    @cached_property
    def admin(self) -> Admin[Mode]:
        """Operations of admin."""
        return Admin(self._session)

    @cached_property
    def tuning(self) -> Tuning[Mode]:
        """Operations of tuning."""
        return Tuning(self._session)

    @cached_property
    def datasets(self) -> Datasets[Mode]:
        """Operations of datasets."""
        return Datasets(self._session)

    @cached_property
    def runs(self) -> Runs[Mode]:
        """Operations of runs."""
        return Runs(self._session)

    @cached_property
    def experiments(self) -> Experiments[Mode]:
        """Operations of experiments."""
        return Experiments(self._session)

    @cached_property
    def questions(self) -> AskedQuestions[Mode]:
        """Operations of questions."""
        return AskedQuestions(self._session)

    @cached_property
    def scores(self) -> Scores[Mode]:
        """Operations of scores."""
        return Scores(self._session)

    @cached_property
    def tenants(self) -> Tenants[Mode]:
        """Operations of tenants."""
        return Tenants(self._session)

    @cached_property
    def health(self) -> Health[Mode]:
        """Operations of health."""
        return Health(self._session)
