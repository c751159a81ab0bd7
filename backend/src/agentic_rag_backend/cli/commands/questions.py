"""``search``: passages, facts and themes for a question. ``ask``: an answer with checked citations."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.options import Question, SearchOptions, Strategy
from agentic_rag_backend.cli.output import Output, plain
from agentic_rag_backend.cli.rendering import show_answer, show_citations, show_explanation, show_search, show_trace
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


History = Annotated[
    list[str] | None,
    typer.Option(
        "--history",
        metavar="FILE|TEXT",
        help="""Earlier turns: a file with JSON ([{"role": "user", "content": "…"}, …]), or one turn, the user's first;
        repeat it for further turns.""",
    ),
]
CitationPolicy = Annotated[
    str | None, typer.Option("--citation-policy", help="Unsupported sentences: strict leaves them out, mark marks them.")
]


async def ask_question(
    session: Session,
    question: Question,
    *,
    strategy: Strategy = None,
    history: History = None,
    generator: Annotated[str | None, typer.Option("--generator", help="attributed, standard or verified.")] = None,
    citation_policy: CitationPolicy = None,
    citation_style: Annotated[
        str, typer.Option("--citation-style", help="Citations in the text: numeric, title or none.")
    ] = "numeric",
    stream: Annotated[bool, typer.Option("--stream", help="Print each sentence when it is checked.")] = False,
    options: SearchOptions,
) -> None:
    """Answer a question from the documents, or report that they do not contain the answer."""
    body = {
        "history": read_history(history or ()) or None,
        "query": question,
        "strategy": strategy,
        "generator": generator,
        "citation_policy": citation_policy,
        "citation_style": citation_style,
        **options.as_body(),
    }
    if stream:
        session.output.present(await _stream_answer(session, body), _show_ending)
    else:
        session.output.present(await session.client.post("/answers", body), show_answer)


def read_history(texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the turns of ``--history``: of a JSON file, or the texts, of user and assistant in turn.

    Raises:
        InvalidRequest: the file has no list of turns.
    """
    if len(texts) != 1 or not texts[0].endswith(".json"):
        return [{"role": "assistant" if index % 2 else "user", "content": text} for index, text in enumerate(texts)]
    try:
        turns = json.loads(Path(texts[0]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"--history {texts[0]!r} cannot be read as JSON: {error}") from None
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        raise InvalidRequest(f'--history {texts[0]!r} must hold a list of {{"role", "content"}}')
    return turns


async def _stream_answer(session: Session, body: Mapping[str, Any]) -> dict[str, Any]:
    """Print the answer's text while it arrives (to stderr with ``--json``) and return the whole answer."""
    from agentic_rag_backend.cli.session.client import UnexpectedReply

    out = sys.stderr if session.output.as_json else sys.stdout
    # The server goes on while a broken connection is replaced.
    request = {**body, "stream": True, "resumable": None if session.client.in_process else True}
    async with aclosing(session.client.events("/answers", request)) as events:
        async for name, data in events:
            if name == "token":
                out.write(plain(data["text"]))
                out.flush()
            elif name == "done":
                out.write("\n")
                return {key: value for key, value in data.items() if key != "v"}
    raise UnexpectedReply(f"{session.client.where} ended the stream without the answer")


def _show_ending(output: Output, answer: Mapping[str, Any]) -> None:
    """Print what follows the text of a streamed answer."""
    show_citations(output, answer["citations"])
    output.show(f"\nconfidence {answer['confidence']:.2f} · {answer['generator']} · {answer['model']}", style="dim")
    show_trace(output, answer["trace"])
