"""Synthetic questions: staged with their chunks, recorded, copied to other versions, and read through visible versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BindParameter, and_, bindparam, delete, insert, select, tuple_, update
from sqlalchemy.engine import Connection

from agentic_rag_backend.domain.document import Failure, SyntheticQuestion
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.stores.catalogue.columns import plain
from agentic_rag_backend.stores.catalogue.documents.chunk_rows import AnyRow
from agentic_rag_backend.stores.catalogue.documents.document_values import ChunkQuestions, PreparedQuestion
from agentic_rag_backend.stores.catalogue.documents.versions import writable
from agentic_rag_backend.stores.catalogue.operations import CataloguePart, batches, read, write
from agentic_rag_backend.stores.catalogue.tables import chunk_questions, chunks, documents, prepared_chunks

_PLACE = ("tenant_id", "document_id", "version", "ordinal")
_IDS: BindParameter[Any] = bindparam("ids", expanding=True)
_RECIPES: BindParameter[Any] = bindparam("recipes", expanding=True)
_SOURCES: BindParameter[Any] = bindparam("sources", expanding=True)
_OF_VERSION = (
    chunks.c.tenant_id == bindparam("tenant"),
    chunks.c.document_id == bindparam("document"),
    chunks.c.version == bindparam("number"),
)
_ORDINALS = select(chunks.c.chunk_id, chunks.c.ordinal).where(*_OF_VERSION, chunks.c.chunk_id.in_(_IDS))
_KNOWN = (
    select(chunks.c.chunk_id, chunks.c.version)
    .select_from(chunks.join(prepared_chunks, and_(*(prepared_chunks.c[name] == chunks.c[name] for name in _PLACE))))
    .where(
        chunks.c.tenant_id == bindparam("tenant"),
        chunks.c.document_id == bindparam("document"),
        chunks.c.chunk_id.in_(_IDS),  # uses the index; the pairs are checked afterwards
        tuple_(chunks.c.chunk_id, prepared_chunks.c.question_recipe).in_(_RECIPES),
        prepared_chunks.c.question_failure.is_(None),
    )
)
_held = chunks.alias("held")
_COPIED = ("number", "question_id", "source", "text", "vector")
_COPY = insert(chunk_questions).from_select(
    [*_PLACE, *_COPIED],
    select(*(chunks.c[name] for name in _PLACE), *(chunk_questions.c[name] for name in _COPIED))
    .select_from(
        chunks.join(_held, and_(_held.c.tenant_id == chunks.c.tenant_id, _held.c.chunk_id == chunks.c.chunk_id)).join(
            chunk_questions, and_(*(chunk_questions.c[name] == _held.c[name] for name in _PLACE))
        )
    )
    .where(
        *_OF_VERSION,
        chunks.c.chunk_id.in_(_IDS),
        _held.c.document_id == bindparam("document"),
        tuple_(_held.c.chunk_id, _held.c.version).in_(_SOURCES),
    ),
)
_MARK = (
    update(prepared_chunks)
    .where(
        prepared_chunks.c.tenant_id == bindparam("tenant"),
        prepared_chunks.c.document_id == bindparam("document"),
        prepared_chunks.c.version == bindparam("number"),
        prepared_chunks.c.ordinal == bindparam("place"),
    )
    .values(question_recipe=bindparam("new_recipe"), question_failure=bindparam("new_failure"))
)
_CLEAR = delete(chunk_questions).where(
    chunk_questions.c.tenant_id == bindparam("tenant"),
    chunk_questions.c.document_id == bindparam("document"),
    chunk_questions.c.version == bindparam("number"),
    chunk_questions.c.ordinal.in_(bindparam("places", expanding=True)),
)
_INSERT = insert(chunk_questions)
_REVECTOR = (
    update(chunk_questions)
    .where(
        chunk_questions.c.tenant_id == bindparam("tenant"),
        chunk_questions.c.document_id == bindparam("document"),
        chunk_questions.c.version == bindparam("of_version"),
        chunk_questions.c.question_id == bindparam("question"),
    )
    .values(vector=bindparam("new_vector"))
)
_FIELDS = (chunk_questions.c.question_id, chunks.c.chunk_id, chunk_questions.c.text, chunk_questions.c.source)
_PLACED = chunk_questions.join(chunks, and_(*(chunks.c[name] == chunk_questions.c[name] for name in _PLACE)))
_PREPARED = (
    select(*_FIELDS, chunk_questions.c.ordinal, chunk_questions.c.vector)
    .select_from(_PLACED)
    .where(
        chunk_questions.c.tenant_id == bindparam("tenant"),
        chunk_questions.c.document_id == bindparam("document"),
        chunk_questions.c.version == bindparam("number"),
    )
    .order_by(chunk_questions.c.ordinal, chunk_questions.c.number)
)
# The join that keeps questions of superseded and tombstoned text from ever being shown.
_VISIBLE = _PLACED.join(
    documents,
    and_(
        documents.c.tenant_id == chunk_questions.c.tenant_id,
        documents.c.id == chunk_questions.c.document_id,
        documents.c.current_version == chunk_questions.c.version,
        documents.c.deleted_at.is_(None),
    ),
)
_SHOWN = select(*_FIELDS).select_from(_VISIBLE).where(chunk_questions.c.tenant_id == bindparam("tenant"))
_OF_CHUNKS = _SHOWN.where(chunks.c.chunk_id.in_(_IDS)).order_by(chunk_questions.c.ordinal, chunk_questions.c.number)
_BY_ID = _SHOWN.where(chunk_questions.c.question_id.in_(_IDS))
_EMBEDDED = (
    select(chunk_questions.c.document_id, chunk_questions.c.question_id)
    .select_from(_VISIBLE)
    .where(
        chunk_questions.c.tenant_id == bindparam("tenant"),
        chunk_questions.c.document_id.in_(_IDS),
        chunk_questions.c.vector.is_not(None),
    )
    .order_by(chunk_questions.c.document_id, chunk_questions.c.ordinal, chunk_questions.c.number)
)


def save(
    connection: Connection, tenant: TenantId, document_id: str, version: int, questions: Mapping[str, ChunkQuestions]
) -> None:
    """Record questions by chunk id, in place of recorded ones. The chunks are staged for the version. Idempotent.

    A version that is visible, or older than a visible one, is not changed. `NotFound` if the document was deleted.
    """
    if writable(connection, tenant, document_id, version) is None or not questions:
        return
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    ordinals = _find_ordinals(connection, bound, list(questions))
    if len(ordinals) < len(questions):
        raise InvalidRequest(f"version {version} of document {document_id!r} has no such chunks; {len(questions)} were named")
    for batch in batches(sorted(ordinals.values())):
        connection.execute(_CLEAR, {**bound, "places": batch})
    marks = [{**bound, "place": ordinals[id], **_mark_of(questions_of_chunk)} for id, questions_of_chunk in questions.items()]
    connection.execute(_MARK, marks)
    insert_questions(
        connection,
        tenant,
        document_id,
        version,
        {ordinals[id]: questions_of_chunk for id, questions_of_chunk in questions.items()},
    )


def reuse(
    connection: Connection, tenant: TenantId, document_id: str, version: int, requests: Mapping[str, str]
) -> frozenset[str]:
    """Record the questions of ``requests``, recipes by chunk id, that are known. Return the ids of their chunks.

    Questions count if they have the same recipe and no failure. They may belong to this version, or to another version of
    the document; then they are copied. The chunks are staged for the version. `NotFound` if the document was deleted.

    Takes four statements per 500 chunks. Vectors stay in the database.
    """
    open_for_writing = writable(connection, tenant, document_id, version) is not None
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    reused: set[str] = set()
    for batch in batches(list(requests.items())):
        recipes = dict(batch)
        recorded = connection.execute(_KNOWN, {**bound, "ids": list(recipes), "recipes": batch}).all()
        own_ids = {row.chunk_id for row in recorded if row.version == version}
        reused |= own_ids
        # Versions may have different questions by the same recipe, because a model made them. One version's are copied.
        newest: dict[str, int] = {}
        for id, number in recorded:
            newest[id] = max(number, newest.get(id, 0))
        source_versions = {id: number for id, number in newest.items() if id not in own_ids}
        if source_versions and open_for_writing:
            ordinals = _find_ordinals(connection, bound, list(source_versions))
            for ordinal_batch in batches(sorted(ordinals.values())):
                connection.execute(_CLEAR, {**bound, "places": ordinal_batch})
            connection.execute(_COPY, {**bound, "ids": list(ordinals), "sources": [(id, source_versions[id]) for id in ordinals]})
            marks = [
                {**bound, "place": ordinal, "new_recipe": recipes[id], "new_failure": None} for id, ordinal in ordinals.items()
            ]
            if marks:
                connection.execute(_MARK, marks)
            reused |= ordinals.keys()
    return frozenset(reused)


def revector_questions(
    connection: Connection, tenant: TenantId, document_id: str, version: int, questions: Mapping[str, ChunkQuestions]
) -> None:
    """Replace the vectors and recipes of questions of a visible version; see `TransferCatalogue.revector`."""
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    vectors = [
        {
            "tenant": tenant.value,
            "document": document_id,
            "of_version": version,
            "question": item.question.id,
            "new_vector": _pack_vector(item.vector),
        }
        for questions_of_chunk in questions.values()
        for item in questions_of_chunk.items
    ]
    if vectors:
        connection.execute(_REVECTOR, vectors)
    places = _find_ordinals(connection, bound, list(questions))
    if places:
        connection.execute(_MARK, [{**bound, "place": ordinal, **_mark_of(questions[id])} for id, ordinal in places.items()])


def _find_ordinals(connection: Connection, bound: Mapping[str, Any], ids: Sequence[str]) -> dict[str, int]:
    """Return the positions of the chunks ``ids`` of a version that are staged."""
    ordinals: dict[str, int] = {}
    for batch in batches(ids):
        ordinals.update((row.chunk_id, row.ordinal) for row in connection.execute(_ORDINALS, {**bound, "ids": batch}))
    return ordinals


def of_chunks(connection: Connection, tenant: TenantId, chunk_ids: Sequence[str]) -> dict[str, tuple[SyntheticQuestion, ...]]:
    """Return the questions of chunks of visible versions, in order. Chunks without questions are absent."""
    by_chunk: dict[str, tuple[SyntheticQuestion, ...]] = {}
    for batch in batches(list(dict.fromkeys(chunk_ids))):
        for row in connection.execute(_OF_CHUNKS, {"tenant": tenant.value, "ids": batch}):
            by_chunk[row.chunk_id] = (*by_chunk.get(row.chunk_id, ()), _question_from(row))
    return by_chunk


def by_id(connection: Connection, tenant: TenantId, question_ids: Sequence[str]) -> dict[str, SyntheticQuestion]:
    """Return questions of visible versions. Other questions are absent."""
    by_question: dict[str, SyntheticQuestion] = {}
    for batch in batches(list(dict.fromkeys(question_ids))):
        for row in connection.execute(_BY_ID, {"tenant": tenant.value, "ids": batch}):
            by_question[row.question_id] = _question_from(row)
    return by_question


def embedded(connection: Connection, tenant: TenantId, document_ids: Sequence[str]) -> dict[str, list[str]]:
    """Return the ids of the questions that each document's visible version has in the vector store."""
    ids_of: dict[str, list[str]] = {}
    for batch in batches(list(dict.fromkeys(document_ids))):
        for document_id, id in connection.execute(_EMBEDDED, {"tenant": tenant.value, "ids": batch}):
            ids_of.setdefault(document_id, []).append(id)
    return ids_of


def question_columns(questions: ChunkQuestions | None) -> dict[str, Any]:
    """Return the columns of `prepared_chunks` that record how a chunk's questions were made."""
    if questions is None:
        return {"question_recipe": None, "question_failure": None}
    return {"question_recipe": questions.recipe, "question_failure": questions.failure}


def _mark_of(questions: ChunkQuestions) -> dict[str, Any]:
    failure = None if questions.failure is None else plain({"failure": questions.failure})["failure"]
    return {"new_recipe": questions.recipe, "new_failure": failure}


def insert_questions(
    connection: Connection, tenant: TenantId, document_id: str, version: int, questions: Mapping[int, ChunkQuestions]
) -> None:
    """Insert the questions of a version's chunks by their ordinals. These chunks have none yet."""
    rows = [
        {
            "tenant_id": tenant.value,
            "document_id": document_id,
            "version": version,
            "ordinal": ordinal,
            "number": number,
            "question_id": item.question.id,
            "source": item.question.source,
            "text": item.question.text,
            "vector": _pack_vector(item.vector),
        }
        for ordinal, questions_of_chunk in questions.items()
        for number, item in enumerate(questions_of_chunk.items)
    ]
    if rows:
        connection.execute(_INSERT, rows)


def read_questions(
    connection: Connection, tenant: TenantId, document_id: str, version: int
) -> dict[int, tuple[PreparedQuestion, ...]]:
    """Return the questions of a version by the ordinals of their chunks."""
    by_ordinal: dict[int, tuple[PreparedQuestion, ...]] = {}
    bound = {"tenant": tenant.value, "document": document_id, "number": version}
    for row in connection.execute(_PREPARED, bound):
        vector = None if row.vector is None else np.frombuffer(row.vector, dtype="<f4").astype(np.float32)
        by_ordinal[row.ordinal] = (*by_ordinal.get(row.ordinal, ()), PreparedQuestion(_question_from(row), vector))
    return by_ordinal


def _pack_vector(vector: NDArray[np.float32] | None) -> bytes | None:
    return None if vector is None else np.ascontiguousarray(vector, dtype="<f4").tobytes()


def recorded_questions(row: AnyRow, items: Iterable[PreparedQuestion]) -> ChunkQuestions | None:
    """Return the questions for a row of `prepared_chunks`."""
    if row.question_recipe is None:
        return None
    failure = Failure(**row.question_failure) if row.question_failure else None
    return ChunkQuestions(row.question_recipe, tuple(items), failure)


def _question_from(row: AnyRow) -> SyntheticQuestion:
    return SyntheticQuestion(id=row.question_id, chunk_id=row.chunk_id, text=row.text, source=row.source)


class QuestionCatalogue(CataloguePart):
    """Synthetic questions of chunks. Readers get those of visible versions only."""

    save = write(save)
    reuse = write(reuse)
    of_chunks = read(of_chunks)
    by_id = read(by_id)
    embedded = read(embedded)
