"""Python API: ingestion, search and answers in the process of a program, with the services of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime
from os import PathLike, fspath
from pathlib import Path
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any, Literal

from pydantic import SecretStr

from agentic_rag_backend.answering.base import CitationPolicy, CitationStyle
from agentic_rag_backend.application import Application
from agentic_rag_backend.application.labelling import LabelRequest
from agentic_rag_backend.application.questions import AnswerRequest, read_request
from agentic_rag_backend.container import Container, open_container
from agentic_rag_backend.domain.answer import Answer
from agentic_rag_backend.domain.contradictions import Contradiction, Kind
from agentic_rag_backend.domain.document import Document, DocumentState
from agentic_rag_backend.domain.graph_edits import GraphEdit
from agentic_rag_backend.domain.job import Job, JobState
from agentic_rag_backend.domain.query import Retrieval
from agentic_rag_backend.domain.tenant import Principal, Tenant, TenantId
from agentic_rag_backend.errors import AgenticRagError, Conflict, InvalidRequest, NotFound, UnreadableDocument, error_class
from agentic_rag_backend.fairness import act_for, charge_to
from agentic_rag_backend.ingestion.accept.uploads import Upload
from agentic_rag_backend.jobs.service import JobEndings
from agentic_rag_backend.knowledge.contradictions.contradiction_finder import LIKELY, ContradictionFilter
from agentic_rag_backend.knowledge.editing import Split
from agentic_rag_backend.knowledge.paths.base import PathOptions, PathsFound
from agentic_rag_backend.knowledge.paths.neighbourhood import Neighbourhood, NeighbourhoodOptions
from agentic_rag_backend.knowledge.visible.entity_reader import ListedEntity, VisibleEntity
from agentic_rag_backend.labelling.labeller import Labelling
from agentic_rag_backend.models.llm.base import Message
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest
from agentic_rag_backend.settings_reading import read_settings
from agentic_rag_backend.sources.files import find_sources

if TYPE_CHECKING:
    from agentic_rag_client import AsyncClient

DEFAULT_TENANT = "default"
IN_FLIGHT = 16
"""Maximum documents that are submitted and not finished."""


@asynccontextmanager
async def open_embedded(
    data_dir: str | PathLike[str], *, tenant: str = DEFAULT_TENANT, dual_level: bool = True, **settings: Any
) -> AsyncIterator[Embedded]:
    """Open the stores in ``data_dir`` for one tenant, with workers, and close them at the end.

    Args:
        tenant: name or id. ``default`` is created at first use; other tenants must exist.
        dual_level: whether both levels are searched if no strategy is named.
        settings: any field of `Settings`, such as ``llm="openai"``. They override the environment.

    Raises:
        ConfigurationError: a setting is outside its limits.
        StoreLocked: another process has the folder open.
        NotFound: the tenant does not exist.
    """
    key = {"operator_key": SecretStr(token_urlsafe(48))}  # of `Embedded.open_client`
    chosen = read_settings(
        **{"community_auto_rebuild": False, **settings, **key}, data_dir=Path(data_dir), dual_level_retrieval_enabled=dual_level
    )
    async with open_container(chosen) as container:
        yield Embedded(container, (await choose_tenant(container, tenant)).id)


async def choose_tenant(container: Container, name_or_id: str | None) -> Tenant:
    """Return the tenant with that name or id (None: the default tenant). A missing default tenant is created.

    Raises:
        NotFound: the tenant does not exist.
    """
    tenant_name = name_or_id or DEFAULT_TENANT
    try:
        return await container.tenants.find(tenant_name)
    except NotFound as error:
        if tenant_name != DEFAULT_TENANT:
            raise NotFound(f"{error.message}; 'agentic-rag tenants create NAME' creates a tenant") from None
    try:
        return await container.tenants.create(DEFAULT_TENANT)
    except Conflict:  # another process has just created it
        return await container.tenants.find(tenant_name)


class Embedded:
    """The documents of one tenant, opened by `open_embedded`. Calls may run concurrently.

    Args:
        container: the services of this process, for features without a method here.
        tenant_id: owner of the documents.
    """

    def __init__(self, container: Container, tenant_id: TenantId) -> None:
        self.container = container
        self.tenant_id = tenant_id
        self._application = Application(container)
        self._job_endings = JobEndings(container.catalogue.jobs, tenant_id)

    async def ingest(
        self,
        *paths: str | PathLike[str],
        text: str | None = None,
        key: str | None = None,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        attachments: str | None = None,
    ) -> list[Document]:
        """Ingest files, folders and patterns, or one ``text`` (Markdown). Return the documents when they can be searched.

        Attachments of messages can be searched by then, too. Those that cannot be read are documents in the state
        ``unreadable``, or named in the ``warnings`` of the message's metadata.

        The key of a file is its path below the given folder. The same key again is a new version. With dual-level
        retrieval, the communities are rebuilt before this returns.

        Args:
            key: of a single file or of ``text``.
            title: of ``text``; a file has its own title.
            metadata: of each document: JSON scalars and lists of them.
            attachments: of messages: ``documents`` (default), ``sections`` or ``ignore``.

        Raises:
            InvalidRequest: paths and text are both given or neither is, or a path names nothing.
            AgenticRagError: a document was refused or its processing failed. Earlier documents stay.
        """
        if (text is None) == (not paths):
            raise InvalidRequest(
                f"give either paths or text; got {len(paths)} paths and {'a' if text is not None else 'no'} text"
            )
        if text is not None:
            content = text.encode("utf-8", errors="surrogatepass")
            uploads = [Upload(content=content, media_type="text/markdown", key=key, title=title, metadata=metadata or {})]
            documents = [await self._submit_upload(upload) for upload in uploads]
        else:
            shared = Upload(content=b"", metadata=metadata or {}, attachments=attachments)
            documents = await self._submit_files([fspath(path) for path in paths], key, shared)
        pointer = await self.container.catalogue.communities.pointer(self.tenant_id)
        if self.container.settings.dual_level_retrieval_enabled and (pointer.stale or pointer.generation == 0):
            await self._await_end(await self._application.admin.rebuild_communities(await self._read_caller()))
        return documents

    async def search(self, question: str, **options: Any) -> Retrieval:
        """Return passages, facts and themes.

        Args:
            options: as in the body of ``POST /search``: strategy, limit, min_score, filters, as_of, weights, options, rerank,
                corrective, cache. ``fields`` is for responses of the server only.

        Raises:
            InvalidRequest: a value is outside its limits.
            FeatureDisabled: the strategy is dual_level, which is disabled.
        """
        request = read_request(SearchRequest, {**options, "query": question})
        return await self._application.search.run_search(await self._read_caller(), request)

    async def ask(
        self,
        question: str,
        *,
        generator: str | None = None,
        history: Sequence[Message] = (),
        citation_style: CitationStyle = "numeric",
        citation_policy: CitationPolicy | None = None,
        **options: Any,
    ) -> Answer:
        """Return an answer with checked citations, or a refusal (``grounded`` False) if the documents do not contain the answer.

        Args:
            generator: ``attributed``, ``standard`` or ``verified``; None: the deployment's default.
            history: earlier turns, oldest first, at most 20.
            citation_style: form of citations in the text.
            citation_policy: ``strict`` leaves unsupported sentences out, ``mark`` marks them; None: the deployment's default,
                then the generator's.
            options: as in `search`.

        Raises:
            InvalidRequest: a value is outside its limits.
            ModelUnavailable: the language model failed.
        """
        turns = [{"role": message.role, "content": message.content} for message in history]
        values = {"generator": generator, "history": turns, "citation_style": citation_style, "citation_policy": citation_policy}
        request = read_request(AnswerRequest, {**options, **values, "query": question})
        return await self._application.answers.write_answer(await self._read_caller(), request)

    async def label(self, text: str, **options: Any) -> Labelling:
        """Return the label of a text: that of the nearest documents with the metadata ``label``.

        Args:
            options: as in the body of ``POST /label``: limit, strategy, labels, filters, method.

        Raises:
            InvalidRequest: a value is outside its limits.
        """
        request = read_request(LabelRequest, {**options, "text": text})
        return await self._application.labels.label_text(await self._read_caller(), request)

    async def entities(self, name: str | None = None, *, type: str | None = None, limit: int = 100) -> list[ListedEntity]:
        """Return entities by decreasing number of mentions, at most ``limit`` (1–1,000).

        Args:
            name: only entities with a name that has this text at the beginning of a word, whole names first.
            type: only entities of this type, such as ``person``.
        """
        page = await self._application.graph.list_entities(await self._read_caller(), name=name, type=type, limit=limit)
        return list(page.items)

    async def entity(self, id: str, *, limit: int = 20, as_of: datetime | None = None) -> VisibleEntity:
        """Return an entity with its names, chunks and relationships, at most ``limit`` (1–100) of both.

        Raises:
            NotFound: no document mentions an entity of this id.
        """
        return await self._application.graph.get_entity(await self._read_caller(), id, limit=limit, as_of=as_of)

    async def neighbourhood(self, id: str, *, positions: bool = False, also: Sequence[str] = (), **options: Any) -> Neighbourhood:
        """Return the entities around an entity, and the relationships between them.

        Args:
            options: fields of `NeighbourhoodOptions`; ``also``, ``positions``: see `GraphService.read_neighbourhood`.

        Raises:
            NotFound: no document mentions an entity of this id.
        """
        graph, chosen = self._application.graph, NeighbourhoodOptions(**options)
        return await graph.read_neighbourhood(await self._read_caller(), id, chosen, also=also, positions=positions)

    async def paths(self, source: str, target: str, **options: Any) -> PathsFound:
        """Return the best paths between two entities, which are given by id or name.

        Args:
            options: fields of `PathOptions`: max_hops, relations, min_weight, direction, mentions, limit, as_of.

        Raises:
            NotFound: no document mentions an entity of this id or name.
        """
        caller = await self._read_caller()
        return await self._application.graph.find_paths(caller, [source], [target], PathOptions(**options))

    async def merge_entities(self, id: str, others: Sequence[str], *, reason: str = "") -> GraphEdit:
        """Make other entities, which are given by id, this one. Later documents follow it, too.

        Raises:
            NotFound: no document mentions an entity of one of the ids.
        """
        caller = await self._read_caller()
        return (await self._application.graph.merge_entities(caller, id, others, reason=reason)).edit

    async def split_entity(self, id: str, *, reason: str = "", **parts: Any) -> GraphEdit:
        """Take documents, names or merged entities out of an entity.

        Args:
            parts: fields of `Split`: exactly one of document_ids, names and entity_ids; with document_ids, name and type.

        Raises:
            NotFound: no document mentions an entity of this id.
        """
        caller = await self._read_caller()
        return (await self._application.graph.split_entity(caller, id, Split(**parts), reason=reason)).edit

    async def rename_entity(self, id: str, name: str = "", *, type: str = "", reason: str = "") -> GraphEdit:
        """Give an entity another name or type.

        Raises:
            NotFound: no document mentions an entity of this id.
        """
        caller = await self._read_caller()
        return (await self._application.graph.rename_entity(caller, id, name=name, type=type, reason=reason)).edit

    async def delete_entity(self, id: str, *, reason: str = "") -> GraphEdit:
        """Delete an entity with its mentions and relationships. Documents stay.

        Raises:
            NotFound: no document mentions an entity of this id.
        """
        return (await self._application.graph.delete_entity(await self._read_caller(), id, reason=reason)).edit

    async def undo_edit(self, number: int) -> GraphEdit:
        """Undo an edit of the graph.

        Raises:
            NotFound: there is no edit of this number.
        """
        return (await self._application.graph.undo_edit(await self._read_caller(), number)).edit

    async def contradictions(
        self, entity: str | None = None, *, kind: Kind | None = None, min_confidence: float = LIKELY, limit: int = 50
    ) -> list[Contradiction]:
        """Return statements of documents that cannot both be true, at most ``limit`` (1–1,000).

        Args:
            entity: only about this entity, which is given by id or name.
            kind: only of this kind.
            min_confidence: in [0, 1]; those with less are often none.

        Raises:
            NotFound: no document mentions an entity of this id or name.
        """
        caller = await self._read_caller()
        contradiction_filter = ContradictionFilter(entity=entity, kind=kind, min_confidence=min_confidence)
        contradictions: list[Contradiction] = []
        cursor: str | None = None
        while len(contradictions) < limit:
            page = await self._application.graph.list_contradictions(
                caller, contradiction_filter, limit=limit - len(contradictions), cursor=cursor
            )
            contradictions += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        return contradictions

    async def export_graph(self, format: Literal["graphml", "json"] = "graphml") -> AsyncIterator[str]:
        """Yield the graph as a file, in parts."""
        async for part in self._application.graph.export_graph(await self._read_caller(), format):
            yield part

    @asynccontextmanager
    async def open_client(self) -> AsyncIterator[AsyncClient]:
        """Yield a client of the whole HTTP API, in this process and without a socket. It acts for the tenant.

        Raises:
            ImportError: the package agentic-rag-client is not installed.
        """
        import httpx2

        from agentic_rag_backend.api.app import create_app
        from agentic_rag_backend.api.in_process import InProcessTransport
        from agentic_rag_client import AsyncClient

        key = self.container.settings.operator_key
        assert key is not None  # noqa: S101 - set by open_embedded
        async with AsyncExitStack() as stack:
            app = create_app(self.container)
            stack.push_async_callback(app.state.answer_streams.close)
            http = await stack.enter_async_context(httpx2.AsyncClient(transport=InProcessTransport(app)))
            yield AsyncClient("http://in-process", key.get_secret_value(), tenant=self.tenant_id.value, http=http)

    async def _read_caller(self) -> Principal:
        # Read at every call, so that a changed flag applies immediately.
        act_for(self.tenant_id)
        caller = await self.container.authenticator.local_principal(self.tenant_id)
        charge_to(caller.key_id, self.container.usage.ledger)
        return caller

    async def _submit_files(self, paths: Sequence[str], key: str | None, shared: Upload) -> list[Document]:
        slots = asyncio.Semaphore(IN_FLIGHT)

        async def take(path: Path, own_key: str) -> Document:
            async with slots:
                content = await asyncio.to_thread(path.read_bytes)
                return await self._submit_upload(replace(shared, content=content, file_name=path.name, key=own_key))

        sources = find_sources(paths, key=key).sources
        tasks = [asyncio.create_task(take(source.path, source.key)) for source in sources]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _submit_upload(self, upload: Upload) -> Document:
        submitted = await self._application.documents.submit_document(await self._read_caller(), upload)
        if submitted.job is not None:
            await self._await_attachments(await self._await_end(submitted.job))
        document = await self.container.catalogue.documents.document(self.tenant_id, submitted.document.id)
        if document.state is DocumentState.UNREADABLE:
            raise UnreadableDocument(document.failures[0].message if document.failures else f"{document.title!r} cannot be read")
        return document

    async def _await_attachments(self, job: Job) -> None:
        """Wait for the jobs of a message's attachments, and of the attachments within them."""
        for attachment in (job.result or {}).get("attachments", ()):
            if attachment.get("job_id"):
                await self._await_attachments(await self._job_endings.wait_for_end(attachment["job_id"]))

    async def _await_end(self, job: Job) -> Job:
        """Wait for a job's end. If the job failed, raise its error."""
        job = job if job.state.ended else await self._job_endings.wait_for_end(job.id)
        if job.state in (JobState.FAILED, JobState.CANCELLED):
            error = dict(job.error or {})
            message = str(error.get("message") or f"the {job.kind.value} job was {job.state.value}")
            raise _error_of(job.state, str(error.get("code", "")), message)
        return job


def _error_of(state: JobState, code: str, message: str) -> AgenticRagError:
    """Return the error of a job that failed or was cancelled."""
    if state is JobState.CANCELLED:  # its code is a reason for the end, not an error's
        return Conflict(message)
    return (error_class(code) or AgenticRagError)(message)
