"""Documents that the coarsest level groups communities by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from agentic_rag_backend.domain.graph import Support
from agentic_rag_backend.domain.tenant import TenantId
from agentic_rag_backend.themes.communities.detection.documents import add_documents
from agentic_rag_backend.themes.communities.detection.knowledge import VisibleKnowledge

TENANT = TenantId("t_" + "0" * 32)


class Catalogue:
    """Has one chunk of each document, whose id is the name of its file."""

    async def hydrate(self, tenant: TenantId, ids: list[str]) -> dict[str, Any]:
        location = SimpleNamespace(headings=())
        return {
            id: SimpleNamespace(
                chunk=SimpleNamespace(document_id=id, location=location),
                document_title=id.partition(".")[0],
                document_key=id,
            )
            for id in ids
        }


class Vectors:
    """Has no vectors."""

    async def vectors(self, *_: object) -> dict[str, Any]:
        return {}


async def test_files_of_a_numbered_series_have_no_titles() -> None:
    files = [*(f"note {number}.txt" for number in (1, 2, 12)), "page 7.txt", "page 8.txt", "Tide tables.txt", "note.txt"]
    mentions = {"e": tuple(Support(file, 1, file) for file in files)}
    knowledge, _ = await add_documents(
        TENANT,
        VisibleKnowledge(mentions=mentions),
        Catalogue(),  # type: ignore[arg-type]  # enough of it
        Vectors(),  # type: ignore[arg-type]  # enough of it
    )
    titles = {id: document.title for id, document in knowledge.documents.items()}
    assert titles == {
        **dict.fromkeys(("note 1.txt", "note 2.txt", "note 12.txt"), ""),
        "page 7.txt": "page 7",
        "page 8.txt": "page 8",
        "Tide tables.txt": "Tide tables",
        "note.txt": "note",
    }
