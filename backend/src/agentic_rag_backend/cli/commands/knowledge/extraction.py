"""Extraction of stored documents, as a step of ``build-graph``."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentic_rag_backend.cli.command import EVERYTHING, Session
from agentic_rag_backend.cli.commands.documents import id_of
from agentic_rag_backend.cli.following import JobFollower, failure_reason, succeeded
from agentic_rag_backend.cli.model_cost import cost_of_chunks
from agentic_rag_backend.cli.output import console, plain
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound, StoreUnavailable, Unauthenticated

AT_ONCE = 16
"""Documents that are extracted at the same time."""
FAILURES = 100
_READABLE = ("ready", "partial")


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents to extract from. Neither ``documents`` nor ``everything``: none."""

    documents: Sequence[str]
    everything: bool
    method: str | None = None
    entity_types: Sequence[str] | None = None

    @property
    def wanted(self) -> bool:
        """Whether documents are to be extracted."""
        return self.everything or bool(self.documents)

    def check(self) -> None:
        """Raise `InvalidRequest` for options that contradict one another."""
        if self.everything and self.documents:
            raise InvalidRequest("give --documents or --all, not both")
        if not self.wanted and (self.method is not None or self.entity_types is not None):
            raise InvalidRequest("--extraction and --entity-types need --documents ID or --all")
        if self.entity_types is not None and not self.entity_types:
            raise InvalidRequest("--entity-types names no type")


async def extract_selected(session: Session, selection: Selection, *, dry_run: bool) -> dict[str, Any]:
    """Extract documents again, with a progress bar. Return counts. A dry run only estimates the cost."""
    if selection.entity_types is not None and not dry_run:
        await _set_entity_types(session, selection.entity_types)
    documents = await _select_documents(session, selection)
    chunks = sum(document["chunk_count"] for document in documents)
    models: Mapping[str, Any] = (await session.client.get("/status"))["models"]
    method = selection.method or models["extraction"]
    cost = cost_of_chunks(chunks, method) if method != "rules" and models["extraction_model"] else cost_of_chunks(0)
    planned = {
        "documents": len(documents),
        "chunks": chunks,
        "extraction": method,
        "model_calls": cost.calls,
        "tokens_read": cost.tokens_read,
        "tokens_written": cost.tokens_written,
    }
    if cost.calls:
        session.output.note(
            f"extraction {method!r} asks {models['extraction_model']} about the chunks: at most {cost.calls:,} calls, which read "
            f"about {cost.tokens_read:,} and write about {cost.tokens_written:,} tokens; replies on record are not paid again"
        )
    if dry_run or not documents:
        return {"planned": planned}
    return {"planned": planned, **await _extract_documents(session, documents, method)}


async def _set_entity_types(session: Session, names: Sequence[str]) -> None:
    """Replace the entity types of the tenant's ontology. Types that stay keep their descriptions."""
    ontology = await session.client.get("/ontology")
    described = {entity_type["name"]: entity_type for entity_type in ontology["entity_types"]}
    ontology["entity_types"] = [described.get(name, {"name": name}) for name in names]
    del ontology["source"]
    await session.client.request("PUT", "/ontology", json=ontology)


async def _select_documents(session: Session, selection: Selection) -> list[dict[str, Any]]:
    if selection.everything:
        documents = await session.client.every("/documents", limit=EVERYTHING)
        return [document for document in documents if document["state"] in _READABLE]
    ids = dict.fromkeys([await id_of(session.client, document) for document in selection.documents])
    return [await session.client.get(f"/documents/{document_id}") for document_id in ids]


async def _extract_documents(session: Session, documents: Sequence[Mapping[str, Any]], method: str) -> dict[str, Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    states: Counter[str] = Counter()
    failures: list[dict[str, str]] = []
    waiting = iter(documents)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(sys.stderr), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("extraction", total=len(documents))

        async def work(follower: JobFollower) -> None:
            for document in waiting:
                state, reason = await _extract_one(session, follower, str(document["id"]), method)
                states[state] += 1
                if reason and len(failures) < FAILURES:
                    failures.append({"document_id": str(document["id"]), "reason": reason})
                progress.update(task, advance=1, description=plain(f"extraction: {str(document['title'])[:40]}"))

        session.client.wait_for_restarts()
        async with JobFollower(session.client) as follower:
            await asyncio.gather(*(work(follower) for _ in range(min(AT_ONCE, len(documents)))))
    return {**states, "failures": failures}


async def _extract_one(session: Session, follower: JobFollower, document_id: str, method: str) -> tuple[str, str]:
    """Return the state of a document's job, and why it did not succeed."""
    try:
        submitted = await session.client.post(f"/documents/{document_id}/extract", {"extraction": method})
    except (StoreUnavailable, Unauthenticated):
        raise
    except NotFound:
        return "deleted", ""
    except AgenticRagError as error:
        return "refused", error.message
    job = await follower.ended(submitted["job_id"])
    return str(job["state"]), "" if succeeded(job) else failure_reason(job)
