"""Options that several commands have, and the values that they carry."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypeVar

import typer

from agentic_rag_backend.domain.document import CHUNKING_STRATEGIES
from agentic_rag_backend.errors import InvalidRequest

T = TypeVar("T")
_MAX_SHOWN = 80

WatchJob = Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until the job has ended.")]
CHUNKING_HELP = f"Chunking strategy: {', '.join(CHUNKING_STRATEGIES)}."
ChunkingStrategy = Annotated[str | None, typer.Option("--strategy", help=CHUNKING_HELP)]
Question = Annotated[str, typer.Argument(metavar="QUESTION", help="The question, 1 to 8,000 characters.")]
Strategy = Annotated[str | None, typer.Option("--strategy", help="Search strategy; 'agentic-rag status' lists them.")]


def drop_unset(**options: Any) -> dict[str, Any]:
    """Return the options that are not None. The server has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}


def split_names(text: str) -> list[str]:
    """Return the names in a text with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def parse_assignment(option: str, form: str, text: str, limit: int = _MAX_SHOWN) -> tuple[str, Any]:
    """Return name and value of ``NAME=VALUE``. A value that is not JSON is text.

    Raises:
        InvalidRequest: there is no ``=`` or no name. The message has ``option`` and at most ``limit`` characters of the text.
    """
    name, sign, value = text.partition("=")
    if not sign or not name.strip():
        raise InvalidRequest(f"{option} {form}; got {text[:limit]!r}")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value


def parse_filter(text: str | None) -> Any:
    """Return the JSON object of ``--filter``.

    Raises:
        InvalidRequest: it is not a JSON object.
    """
    if text is None:
        return None
    value = _parse_json("--filter", text)
    if not isinstance(value, dict):
        raise InvalidRequest(f"--filter must be a JSON object; got {text[:_MAX_SHOWN]!r}")
    return value


def parse_rerank(text: str | None) -> Any:
    """Return the value of ``--rerank``: a name, true, false, or a JSON object.

    Raises:
        InvalidRequest: it begins like a JSON object and is none.
    """
    if text is None or not text.lstrip().startswith("{"):
        return {"true": True, "false": False}.get(text or "", text)
    return _parse_json("--rerank", text)


def parse_options(texts: list[str] | None) -> dict[str, Any]:
    """Return the values of ``--option`` by name."""
    return dict(parse_assignment("--option", "must be NAME=VALUE", text) for text in texts or ())


def _parse_json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"{option} is not JSON: {error}; got {text[:_MAX_SHOWN]!r}") from None


def _check_early(parse: Callable[[T], Any]) -> Callable[[T], T]:
    """Return a callback that refuses a bad value before any store is opened."""

    def check_value(value: T) -> T:
        parse(value)
        return value

    return check_value


RerankOption = Annotated[
    str | None,
    typer.Option(
        "--rerank",
        metavar="NAME|JSON",
        callback=_check_early(parse_rerank),
        help="""Reranker, such as mmr, or an object such as '{"name": "mmr", "lambda": 0.5}'; none: the strategy's order.""",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options that ``search`` and ``ask`` share."""

    limit: Annotated[
        int | None,
        typer.Option("--limit", help="Maximum results and themes, 1 to 100; default: 5, or the settings of both levels."),
    ] = None
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="JSON",
            callback=_check_early(parse_filter),
            help="""Filter over metadata and entities, such as '{"category": "minutes", "entity": "Mara Venn"}'.""",
        ),
    ] = None
    synthetic_questions: Annotated[
        bool | None,
        typer.Option(
            "--synthetic-questions/--no-synthetic-questions",
            help="Search the synthetic questions of chunks, too. Default: as the server is configured.",
        ),
    ] = None
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            callback=_check_early(parse_options),
            help="""Option of the strategy; the value is JSON or text, such as base=graph or
            'weights={"dense": 0.7, "graph": 0.3}'; repeat it for further options.""",
        ),
    ] = None
    rerank: RerankOption = None
    corrective: Annotated[
        bool | None,
        typer.Option(
            "--corrective/--no-corrective", help="Grade the results, and search other wordings if too few are relevant."
        ),
    ] = None
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Whether results of an earlier equal search may be shown.")
    ] = True
    min_score: Annotated[
        float | None, typer.Option("--min-score", help="Least score of a result, 0 to 1, after reranking; default: 0.")
    ] = None

    def as_body(self) -> dict[str, Any]:
        """Return the members of a request."""
        return {
            "limit": self.limit,
            "filters": parse_filter(self.filter),
            "options": {**drop_unset(synthetic_questions=self.synthetic_questions), **parse_options(self.option)},
            "rerank": parse_rerank(self.rerank),
            "corrective": self.corrective,
            "cache": self.cache,
            "min_score": self.min_score,
        }


@dataclass(frozen=True, kw_only=True)
class ChunkSizes:
    """Sizes of chunks."""

    chunk_size: Annotated[int | None, typer.Option("--chunk-size", help="Maximum size of a chunk, in units.")] = None
    overlap: Annotated[int | None, typer.Option("--overlap", help="Overlap with the previous chunk, in units.")] = None
    unit: Annotated[str | None, typer.Option("--unit", help="tokens or characters.")] = None
    parent_size: Annotated[
        int | None, typer.Option("--parent-size", help="parent_child and proposition: maximum size of a parent, in units.")
    ] = None

    def as_body(self, strategy: str | None) -> dict[str, Any]:
        """Return the members of a request that are not None."""
        return drop_unset(strategy=strategy, **asdict(self))


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """Synthetic questions of chunks."""

    questions: Annotated[str | None, typer.Option("--questions", help="Synthetic questions: off, patterns or model.")] = None
    questions_per_chunk: Annotated[
        int | None, typer.Option("--questions-per-chunk", help="Maximum number of synthetic questions of a chunk, 1 to 3.")
    ] = None

    def as_body(self) -> dict[str, Any] | None:
        """Return the member of a request. None: the server's default.

        Raises:
            InvalidRequest: their number was given without a method.
        """
        if self.questions is None and self.questions_per_chunk is not None:
            raise InvalidRequest("--questions-per-chunk needs --questions patterns or --questions model")
        return None if self.questions is None else drop_unset(method=self.questions, per_chunk=self.questions_per_chunk)
