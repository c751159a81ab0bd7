"""``search``: passages, facts and themes for a question, without an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session, command
from agentic_rag_backend.cli.rendering import show_explanation, show_search
from agentic_rag_backend.errors import InvalidRequest

Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, 1 to 8,000 characters.")]
Strategy = Annotated[str | None, typer.Option("--strategy", help="Search strategy; 'agentic-rag status' lists them.")]
Limit = Annotated[
    int | None, typer.Option("--limit", help="Maximum results and themes, 1 to 100; default: 5, or the settings of both levels.")
]


def filter_of(text: str | None) -> Any:
    """Return the JSON object of ``--filter``.

    Raises:
        InvalidRequest: it is not a JSON object.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"--filter is not JSON: {error}; got {text[:80]!r}") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"--filter must be a JSON object; got {text[:80]!r}")
    return value


def _check_filter(text: str | None) -> str | None:
    """Refuse a bad filter before any store is opened."""
    filter_of(text)
    return text


FilterOption = Annotated[
    str | None,
    typer.Option(
        "--filter",
        metavar="JSON",
        callback=_check_filter,
        help="""Filter over metadata and entities, such as '{"category": "minutes", "entity": "Mara Venn"}'.""",
    ),
]


SyntheticQuestions = Annotated[
    bool | None,
    typer.Option(
        "--synthetic-questions/--no-synthetic-questions",
        help="Search the synthetic questions of chunks, too. Default: as the server is configured.",
    ),
]


def _parse_option(text: str) -> tuple[str, Any]:
    """Return the name and the value of an ``--option``. A value that is not JSON is text."""
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InvalidRequest(f"--option must be NAME=VALUE; got {text[:80]!r}")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def _check_options(texts: list[str] | None) -> list[str] | None:
    """Refuse a bad option before any store is opened."""
    for text in texts or ():
        _parse_option(text)
    return texts


StrategyOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        callback=_check_options,
        help="""Option of the strategy; the value is JSON or text, such as base=graph or 'weights={"dense": 0.7, "graph": 0.3}';
        repeat it for further options.""",
    ),
]


def rerank_of(text: str | None) -> Any:
    """Return the value of ``--rerank``: a name, true, false, or a JSON object.

    Raises:
        InvalidRequest: it begins like a JSON object and is none.
    """
    if text is None or not text.lstrip().startswith("{"):
        return {"true": True, "false": False}.get(text or "", text)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"--rerank is not JSON: {error}; got {text[:80]!r}") from None


def _check_rerank(text: str | None) -> str | None:
    """Refuse a bad value before any store is opened."""
    rerank_of(text)
    return text


RerankOption = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="NAME|JSON",
        callback=_check_rerank,
        help="""Reranker, such as mmr, or an object such as '{"name": "mmr", "lambda": 0.5}'; none: the strategy's order.""",
    ),
]

CorrectiveOption = Annotated[
    bool | None,
    typer.Option("--corrective/--no-corrective", help="Grade the results, and search other wordings if too few are relevant."),
]

CacheOption = Annotated[
    bool,
    typer.Option("--cache/--no-cache", help="Whether results of an earlier equal search may be shown."),
]


MinScore = Annotated[
    float | None, typer.Option("--min-score", help="Least score of a result, 0 to 1, after reranking; default: 0.")
]


def options_of(synthetic_questions: bool | None, texts: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the options of the strategy."""
    options = {} if synthetic_questions is None else {"synthetic_questions": synthetic_questions}
    return {**options, **dict(map(_parse_option, texts or ()))}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "search")(search)


async def search(
    session: Session,
    question: Question,
    strategy: Strategy = None,
    limit: Limit = None,
    filter: FilterOption = None,
    synthetic_questions: SyntheticQuestions = None,
    option: StrategyOptions = None,
    rerank: RerankOption = None,
    corrective: CorrectiveOption = None,
    cache: CacheOption = True,
    min_score: MinScore = None,
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields",
            metavar="NAMES",
            help="With --json: the parts to print and fields of results, separated by commas, such as title,content,score.",
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option("--explain", metavar="DOCUMENT_ID", help="Explain why the search returns or omits this document."),
    ] = None,
) -> None:
    """Find passages, facts and themes."""
    if fields is not None and (explain is not None or not session.output.as_json):
        raise InvalidRequest("--fields goes with --json and without --explain")
    body = {
        "query": question,
        "strategy": strategy,
        "limit": limit,
        "filters": filter_of(filter),
        "options": options_of(synthetic_questions, option),
        "rerank": rerank_of(rerank),
        "corrective": corrective,
        "cache": cache,
        "min_score": min_score,
    }
    if explain is not None:
        explained = await session.client.post("/search/explain", {**body, "document_id": explain})
        session.output.present(explained, show_explanation)
        return
    names = None if fields is None else [name.strip() for name in fields.split(",")]
    session.output.present(await session.client.post("/search", {**body, "fields": names}), show_search)
