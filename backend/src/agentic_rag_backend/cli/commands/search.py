"""``search``: passages, facts and themes for a question, without an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.options import Question, SearchOptions, Strategy
from agentic_rag_backend.cli.rendering import show_explanation, show_search
from agentic_rag_backend.errors import InvalidRequest

Fields = Annotated[
    str | None,
    typer.Option(
        "--fields",
        metavar="NAMES",
        help="With --json: the parts to print and fields of results, separated by commas, such as title,content,score.",
    ),
]
Explain = Annotated[
    str | None,
    typer.Option("--explain", metavar="DOCUMENT_ID", help="Explain why the search returns or omits this document."),
]


async def search_documents(
    session: Session,
    question: Question,
    *,
    strategy: Strategy = None,
    options: SearchOptions,
    fields: Fields = None,
    explain: Explain = None,
) -> None:
    """Find passages, facts and themes."""
    if fields is not None and (explain is not None or not session.output.as_json):
        raise InvalidRequest("--fields goes with --json and without --explain")
    body = {"query": question, "strategy": strategy, **options.as_body()}
    if explain is not None:
        explained = await session.client.post("/search/explain", {**body, "document_id": explain})
        session.output.present(explained, show_explanation)
        return
    names = None if fields is None else [name.strip() for name in fields.split(",")]
    session.output.present(await session.client.post("/search", {**body, "fields": names}), show_search)
