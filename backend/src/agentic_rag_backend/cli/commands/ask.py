"""``ask``: an answer with checked citations."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.commands.search import FilterOption, Limit, Question, Strategy, filter_of
from agentic_rag_backend.cli.output import plain
from agentic_rag_backend.cli.rendering import show_answer, show_citations, show_trace
from agentic_rag_backend.cli.session.errors import UnexpectedReply


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "ask")(ask)


async def ask(
    session: Session,
    question: Question,
    strategy: Strategy = None,
    generator: Annotated[str | None, typer.Option("--generator", help="attributed (each sentence checked) or standard.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print each sentence when it is checked.")] = False,
    limit: Limit = None,
    filter: FilterOption = None,
) -> None:
    """Answer a question from the documents, or report that they do not contain the answer."""
    body = {"query": question, "strategy": strategy, "generator": generator, "limit": limit, "filters": filter_of(filter)}
    if stream:
        answer = await _streamed(session, body)
    else:
        answer = await session.client.post("/answers", body)
    if session.output.as_json:
        session.output.result(answer)
    elif stream:
        show_citations(session.output, answer["citations"])
        session.output.show(f"\nconfidence {answer['confidence']:.2f} · {answer['generator']} · {answer['model']}", style="dim")
        show_trace(session.output, answer["trace"])
    else:
        show_answer(session.output, answer)


async def _streamed(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """Print the answer's text while it arrives (to stderr with ``--json``) and return the whole answer."""
    out = sys.stderr if session.output.as_json else sys.stdout
    async for name, data in session.client.events("/answers", {**body, "stream": True}):
        if name == "token":
            out.write(plain(data["text"]))
            out.flush()
        elif name == "done":
            out.write("\n")
            return {key: value for key, value in data.items() if key != "v"}
    raise UnexpectedReply(f"{session.client.where} ended the stream without the answer")
