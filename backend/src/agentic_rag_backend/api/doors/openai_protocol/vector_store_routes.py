"""Vector stores of OpenAI's protocol: sets of documents, and their files."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated

from fastapi import APIRouter, Query

from agentic_rag_backend.api.dependencies import Reader, Services, Writer
from agentic_rag_backend.api.doors.openai_protocol.conversations import PRESETS
from agentic_rag_backend.api.doors.openai_protocol.file_objects import document_id_of, name_file, name_files
from agentic_rag_backend.api.doors.openai_protocol.file_search import (
    MAX_QUERIES,
    MAX_RESULTS,
    StoreResult,
    StoreResults,
    StoreSearch,
    merge_hits,
)
from agentic_rag_backend.api.doors.openai_protocol.object_pages import ObjectPage, PagePosition, Position
from agentic_rag_backend.api.doors.openai_protocol.reply_schemas import ERRORS
from agentic_rag_backend.api.doors.openai_protocol.route import OPENAI_PATH, OpenAIRoute
from agentic_rag_backend.api.doors.openai_protocol.vector_store_bodies import (
    AddedFile,
    AddedFiles,
    FileAttributes,
    NewStore,
    StoreChange,
)
from agentic_rag_backend.api.doors.openai_protocol.vector_store_objects import (
    STATES,
    DeletedStore,
    DetachedFile,
    FileState,
    StoreFile,
    StoreFileBatch,
    StoreObject,
    name_store,
)
from agentic_rag_backend.api.requests.bodies import QUERY_BYTES, reads
from agentic_rag_backend.api.schemas.questions.questions import QUESTION_BYTES
from agentic_rag_backend.application import Application
from agentic_rag_backend.application.named_sets import NewMember
from agentic_rag_backend.application.questions import read_request
from agentic_rag_backend.domain.document_sets import ALL_DOCUMENTS, DocumentSet
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.retrieval.requests.search_requests import SearchRequest

router = APIRouter(prefix=OPENAI_PATH, tags=["openai"], route_class=OpenAIRoute, responses=ERRORS)
_BATCH_PREFIX = "vsfb_"
Status = Annotated[FileState | None, Query(alias="filter", description="only files with this status")]


@router.post("/vector_stores", summary="Create a vector store")
async def create_store(services: Services, caller: Writer, body: NewStore) -> StoreObject:
    """Create a store of files, or of the documents that pass a filter of the product's grammar."""
    body.require_no_expiry()
    if body.filter is not None and body.file_ids:
        raise InvalidRequest("a store has files or a filter; send either 'file_ids' or 'filter'", field="filter")
    with name_files(body.file_ids or ()) as document_ids:
        document_set = await services.document_sets.create_set(
            caller,
            body.name or "",
            description=body.description or "",
            labels=body.metadata,
            filter=body.filter,
            additions=[NewMember(document_id, chunking=body.chunking) for document_id in document_ids],
        )
    return (await _describe(services, caller, [document_set]))[0]


async def _describe(services: Application, caller: Principal, sets: Sequence[DocumentSet]) -> list[StoreObject]:
    counts = await services.document_sets.count_documents(caller, sets)
    return [StoreObject.of(document_set, counts[document_set.id]) for document_set in sets]


@router.get("/vector_stores", summary="List vector stores")
async def list_stores(services: Services, caller: Reader, position: Position) -> ObjectPage[StoreObject]:
    """List stores. The first one is `vs_all`, which has all files."""
    with nullcontext() if position.after is None else name_store(position.after) as after:
        sets, has_more = await services.document_sets.list_sets(
            caller, limit=position.limit, after=after, oldest_first=position.oldest_first
        )
    return ObjectPage[StoreObject].of(await _describe(services, caller, sets), has_more=has_more)


@router.get("/vector_stores/{vector_store_id}", summary="Get a vector store")
async def get_store(services: Services, caller: Reader, vector_store_id: str) -> StoreObject:
    """Return a store. `vs_all` has all files."""
    with name_store(vector_store_id) as set_id:
        return (await _describe(services, caller, [await services.document_sets.get_set(caller, set_id)]))[0]


@router.post("/vector_stores/{vector_store_id}", summary="Change a vector store")
async def change_store(services: Services, caller: Writer, vector_store_id: str, body: StoreChange) -> StoreObject:
    """Change name, description or metadata. Metadata is replaced."""
    body.require_no_expiry()
    values = {"name": body.name, "description": body.description, "labels": body.metadata}
    with name_store(vector_store_id) as set_id:
        changed = await services.document_sets.change_set(
            caller, set_id, {name: value for name, value in values.items() if value is not None}
        )
        return (await _describe(services, caller, [changed]))[0]


@router.delete("/vector_stores/{vector_store_id}", summary="Delete a vector store")
async def delete_store(services: Services, caller: Writer, vector_store_id: str) -> DeletedStore:
    """Delete a store. Its files stay."""
    with name_store(vector_store_id) as set_id:
        await services.document_sets.delete_set(caller, set_id)
    return DeletedStore(id=vector_store_id)


@router.post("/vector_stores/{vector_store_id}/search", summary="Search a vector store")
@reads(lambda _: QUERY_BYTES + MAX_QUERIES * QUESTION_BYTES)
async def search_store(services: Services, caller: Reader, vector_store_id: str, body: StoreSearch) -> StoreResults:
    """Return passages of the store's files. Of several queries, the best passages of all."""
    with name_store(vector_store_id) as set_id:
        within = await services.document_sets.select_documents(caller, [set_id])
    options = {**PRESETS["auto"], **body.to_values()}
    requests = [read_request(SearchRequest, {**options, "query": query}) for query in body.queries]
    retrievals = [await services.search.run_search(caller, request, within=within) for request in requests]
    hits = [hit for retrieval in retrievals for hit in retrieval.hits]
    results = [StoreResult.of(hit) for hit in merge_hits(hits, body.max_num_results or MAX_RESULTS)]
    return StoreResults(search_query=body.queries, data=results)


@router.post("/vector_stores/{vector_store_id}/files", summary="Add a file to a vector store")
async def add_file(services: Services, caller: Writer, vector_store_id: str, body: AddedFile) -> StoreFile:
    """Add a file. Attributes are merged into the metadata of its document."""
    await _add_files(services, caller, vector_store_id, [body])
    return await get_store_file(services, caller, vector_store_id, body.file_id)


async def _add_files(
    services: Application, caller: Principal, store_id: str, files: Sequence[AddedFile], batch_id: str | None = None
) -> None:
    with name_store(store_id) as set_id, name_files([file.file_id for file in files]):
        additions = [NewMember(document_id_of(file.file_id), file.attributes, file.chunking) for file in files]
        await services.document_sets.add_documents(caller, set_id, additions, batch_id=batch_id)


@router.get("/vector_stores/{vector_store_id}/files", summary="List the files of a vector store")
async def list_store_files(
    services: Services,
    caller: Reader,
    vector_store_id: str,
    position: Position,
    status: Status = None,
) -> ObjectPage[StoreFile]:
    """List files by the time of their upload."""
    return await _list_files(services, caller, vector_store_id, position, status)


async def _list_files(
    services: Application,
    caller: Principal,
    store_id: str,
    position: PagePosition,
    status: FileState | None,
    batch_id: str | None = None,
) -> ObjectPage[StoreFile]:
    states = () if status is None else STATES[status]
    with name_store(store_id) as set_id, nullcontext() if position.after is None else name_file(position.after) as after:
        page = await services.document_sets.list_documents(
            caller,
            set_id,
            limit=position.limit,
            after=after,
            oldest_first=position.oldest_first,
            states=states,
            batch_id=batch_id,
        )
    files = [StoreFile.of(document, store_id) for document in page.items]
    return ObjectPage[StoreFile].of(files, has_more=page.next_cursor is not None)


@router.get("/vector_stores/{vector_store_id}/files/{file_id}", summary="Get a file of a vector store")
async def get_store_file(services: Services, caller: Reader, vector_store_id: str, file_id: str) -> StoreFile:
    """Return a file of a store."""
    with name_store(vector_store_id) as set_id, name_file(file_id) as document_id:
        return StoreFile.of(await services.document_sets.get_document(caller, set_id, document_id), vector_store_id)


@router.post("/vector_stores/{vector_store_id}/files/{file_id}", summary="Change the attributes of a file")
async def change_attributes(
    services: Services, caller: Writer, vector_store_id: str, file_id: str, body: FileAttributes
) -> StoreFile:
    """Merge attributes into the metadata of the file's document, for all stores. Null removes an attribute."""
    await get_store_file(services, caller, vector_store_id, file_id)
    with name_file(file_id) as document_id:
        changed = await services.documents.change_document(caller, document_id, fields=body.attributes or {})
    return StoreFile.of(changed.document, vector_store_id)


@router.delete("/vector_stores/{vector_store_id}/files/{file_id}", summary="Remove a file from a vector store")
async def remove_file(services: Services, caller: Writer, vector_store_id: str, file_id: str) -> DetachedFile:
    """Remove a file from a store. The file stays."""
    with name_store(vector_store_id) as set_id, name_file(file_id) as document_id:
        await services.document_sets.remove_document(caller, set_id, document_id)
    return DetachedFile(id=file_id)


@router.post("/vector_stores/{vector_store_id}/file_batches", summary="Add files to a vector store")
async def add_batch(services: Services, caller: Writer, vector_store_id: str, body: AddedFiles) -> StoreFileBatch:
    """Add several files at once, or none of them if one is unknown."""
    with name_store(vector_store_id) as set_id:
        if set_id == ALL_DOCUMENTS:
            raise InvalidRequest(f"{vector_store_id} has all files already, so there are no batches of it")
    batch_id = f"{_BATCH_PREFIX}{uuid.uuid4().hex}"
    await _add_files(services, caller, vector_store_id, body.list_files(), batch_id)
    return await get_batch(services, caller, vector_store_id, batch_id)


@router.get("/vector_stores/{vector_store_id}/file_batches/{batch_id}", summary="Get a batch of files")
async def get_batch(services: Services, caller: Reader, vector_store_id: str, batch_id: str) -> StoreFileBatch:
    """Return the counts of a batch. It is completed when all its files are processed."""
    with name_store(vector_store_id) as set_id:
        batch = await services.document_sets.get_batch(caller, set_id, batch_id)
    return StoreFileBatch.of(batch, vector_store_id)


@router.get(
    "/vector_stores/{vector_store_id}/file_batches/{batch_id}/files",
    summary="List the files of a batch",
)
async def list_batch_files(
    services: Services,
    caller: Reader,
    vector_store_id: str,
    batch_id: str,
    position: Position,
    status: Status = None,
) -> ObjectPage[StoreFile]:
    """List the files of a batch that are still in the store."""
    await get_batch(services, caller, vector_store_id, batch_id)
    return await _list_files(services, caller, vector_store_id, position, status, batch_id=batch_id)
