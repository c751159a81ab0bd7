"""Sets of documents of a caller's tenant."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentic_rag_backend.application.access import requires
from agentic_rag_backend.container import Container
from agentic_rag_backend.domain.document import ChunkingOptions, Document, DocumentState
from agentic_rag_backend.domain.document_sets import ALL_DOCUMENTS, DocumentSet, MemberBatch, StateCounts
from agentic_rag_backend.domain.filter_grammar import parse_filter
from agentic_rag_backend.domain.filters import Comparison, Filter, Or, narrow_filter
from agentic_rag_backend.domain.tenant import Principal, Scope
from agentic_rag_backend.errors import Conflict, NotFound
from agentic_rag_backend.stores.catalogue.base import Matching, Page
from agentic_rag_backend.stores.catalogue.columns import utc_now


@dataclass(frozen=True, slots=True)
class NewMember:
    """A document to add to a set, and changes of it: metadata by key, and other chunks."""

    document_id: str
    fields: Mapping[str, Any] | None = None
    chunking: ChunkingOptions | None = None


@dataclass(frozen=True, slots=True)
class DocumentSets:
    """Named selections of documents. A set of another tenant does not exist: `NotFound`.

    The set `ALL_DOCUMENTS` always exists, and cannot be changed.
    """

    container: Container

    @requires(Scope.WRITE)
    async def create_set(
        self,
        caller: Principal,
        name: str,
        *,
        description: str = "",
        labels: Mapping[str, str] | None = None,
        filter: Mapping[str, Any] | None = None,
        additions: Sequence[NewMember] = (),
    ) -> DocumentSet:
        """Create a set of documents, after their changes, or of the documents that pass a filter.

        Raises:
            InvalidRequest: the filter is invalid, or names fields of passages.
            NotFound: a document does not exist. No set is created.
            Conflict: the tenant has too many sets, or the set too many documents.
        """
        parse_filter(filter, of_documents=True)
        document_set = DocumentSet(
            id=uuid.uuid4().hex,
            name=name,
            description=description,
            labels=labels or {},
            filter=filter,
            created_at=utc_now(),
        )
        document_ids = [addition.document_id for addition in additions]
        await self._change_documents(caller, additions)
        await self.container.catalogue.document_sets.create(caller.tenant.id, document_set, document_ids)
        return document_set

    async def _change_documents(self, caller: Principal, additions: Sequence[NewMember]) -> None:
        tenant, ingestion = caller.tenant.id, self.container.ingestion
        for addition in additions:
            if addition.fields:
                await ingestion.update(tenant, addition.document_id, fields=addition.fields)
            if addition.chunking is not None:
                await ingestion.chunk_again(tenant, addition.document_id, addition.chunking)

    @requires(Scope.READ)
    async def get_set(self, caller: Principal, set_id: str) -> DocumentSet:
        """Return a set."""
        if set_id == ALL_DOCUMENTS:
            return DocumentSet(id=ALL_DOCUMENTS, name="All documents", filter={}, created_at=caller.tenant.created_at)
        return await self.container.catalogue.document_sets.document_set(caller.tenant.id, set_id)

    @requires(Scope.READ)
    async def list_sets(
        self, caller: Principal, *, limit: int, after: str | None = None, oldest_first: bool = False
    ) -> tuple[Sequence[DocumentSet], bool]:
        """Return a page of sets, and whether more follow. The set of all documents is the first one in both directions."""
        first_sets = [await self.get_set(caller, ALL_DOCUMENTS)] if after is None else []
        after_id = None if after == ALL_DOCUMENTS else after
        page = await self.container.catalogue.document_sets.page(
            caller.tenant.id, limit=limit, after=after_id, oldest_first=oldest_first
        )
        items = (*first_sets, *page.items)
        return items[:limit], len(items) > limit or page.next_cursor is not None

    @requires(Scope.WRITE)
    async def change_set(self, caller: Principal, set_id: str, values: Mapping[str, Any]) -> DocumentSet:
        """Change name, description or labels."""
        _require_changeable(set_id)
        return await self.container.catalogue.document_sets.change(caller.tenant.id, set_id, values)

    @requires(Scope.WRITE)
    async def delete_set(self, caller: Principal, set_id: str) -> None:
        """Delete a set. Its documents stay."""
        _require_changeable(set_id)
        await self.container.catalogue.document_sets.remove(caller.tenant.id, set_id)

    @requires(Scope.READ)
    async def count_documents(self, caller: Principal, sets: Sequence[DocumentSet]) -> Mapping[str, StateCounts]:
        """Return the documents of sets by state, by the id of the set."""
        catalogue, tenant = self.container.catalogue.document_sets, caller.tenant.id
        filters = {item.id: parse_filter(item.filter) for item in sets if not item.has_members}
        counts = await catalogue.count_matching(tenant, filters) if filters else {}
        with_members = [item.id for item in sets if item.has_members]
        counts |= await catalogue.count_members(tenant, with_members) if with_members else {}
        return {item.id: counts.get(item.id, StateCounts()) for item in sets}

    @requires(Scope.WRITE)
    async def add_documents(
        self, caller: Principal, set_id: str, additions: Sequence[NewMember], *, batch_id: str | None = None
    ) -> None:
        """Add documents to a set, after their changes. The set of all documents has them already.

        Raises:
            NotFound: the set or a document does not exist. No document is added or changed.
            Conflict: the set has a filter, or would have too many documents. No document is added or changed.
            InvalidRequest: a change is outside its limits. No document is added.
        """
        tenant, catalogue = caller.tenant.id, self.container.catalogue.document_sets
        document_ids = [addition.document_id for addition in additions]
        if set_id == ALL_DOCUMENTS:
            for document_id in document_ids:
                await self.container.catalogue.documents.document(tenant, document_id)
        else:
            await catalogue.check_members(tenant, set_id, document_ids)
        await self._change_documents(caller, additions)
        if set_id != ALL_DOCUMENTS:
            await catalogue.add_members(tenant, set_id, document_ids, batch_id=batch_id)

    @requires(Scope.WRITE)
    async def remove_document(self, caller: Principal, set_id: str, document_id: str) -> None:
        """Remove a document from a set. The document stays."""
        _require_changeable(set_id)
        if not (await self.get_set(caller, set_id)).has_members:
            raise Conflict("the documents of this set are those that pass its filter; none can be removed")
        await self.container.catalogue.document_sets.remove_member(caller.tenant.id, set_id, document_id)

    @requires(Scope.READ)
    async def list_documents(
        self,
        caller: Principal,
        set_id: str,
        *,
        limit: int,
        after: str | None = None,
        oldest_first: bool = False,
        states: Collection[DocumentState] = (),
        batch_id: str | None = None,
    ) -> Page[Document]:
        """List the documents of a set, newest first, in some states, or of one batch."""
        matching = replace(_select_members(await self.get_set(caller, set_id)), states=frozenset(states), batch_id=batch_id)
        return await self.container.catalogue.documents.documents(
            caller.tenant.id, matching, limit=limit, after=after, oldest_first=oldest_first
        )

    @requires(Scope.READ)
    async def get_document(self, caller: Principal, set_id: str, document_id: str) -> Document:
        """Return a document of a set. `NotFound` if it is not in the set."""
        matching = _select_members(await self.get_set(caller, set_id))
        only = narrow_filter(Comparison("document_id", "eq", document_id), matching.filter)
        page = await self.container.catalogue.documents.documents(caller.tenant.id, replace(matching, filter=only), limit=1)
        if not page.items:
            raise NotFound(f"document {document_id[:64]!r} is not in the set {set_id!r}")
        return page.items[0]

    @requires(Scope.READ)
    async def get_batch(self, caller: Principal, set_id: str, batch_id: str) -> MemberBatch:
        """Return the documents that one request added to a set."""
        return await self.container.catalogue.document_sets.batch(caller.tenant.id, set_id, batch_id)

    @requires(Scope.READ)
    async def select_documents(self, caller: Principal, set_ids: Sequence[str]) -> Filter | None:
        """Return the filter of the documents that are in any of the sets. None: every document is.

        Raises:
            NotFound: a set does not exist.
        """
        sets = [await self.get_set(caller, set_id) for set_id in dict.fromkeys(set_ids)]
        filters = [parse_filter(item.filter) for item in sets if not item.has_members]
        parts = [filter for filter in filters if filter is not None]
        if not sets or len(parts) < len(filters):
            return None
        if with_members := [item.id for item in sets if item.has_members]:
            ids = await self.container.catalogue.document_sets.member_ids(caller.tenant.id, with_members)
            parts.append(Comparison("document_id", "in", tuple(sorted(ids))))
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]


def _require_changeable(set_id: str) -> None:
    if set_id == ALL_DOCUMENTS:
        raise Conflict("the set of all documents always exists and cannot be changed; delete its documents instead")


def _select_members(document_set: DocumentSet) -> Matching:
    if document_set.has_members:
        return Matching(set_id=document_set.id)
    return Matching(filter=parse_filter(document_set.filter))
