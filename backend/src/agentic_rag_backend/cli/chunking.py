"""Options of chunking and synthetic questions that several commands have."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentic_rag_backend.domain.document import CHUNKING_STRATEGIES
from agentic_rag_backend.errors import InvalidRequest

STRATEGY_HELP = f"Chunking strategy: {', '.join(CHUNKING_STRATEGIES)}."
ChunkSize = Annotated[int | None, typer.Option("--chunk-size", help="Maximum size of a chunk, in units.")]
Overlap = Annotated[int | None, typer.Option("--overlap", help="Overlap with the previous chunk, in units.")]
ParentSize = Annotated[
    int | None, typer.Option("--parent-size", help="parent_child and proposition: maximum size of a parent, in units.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="tokens or characters.")]
Strategy = Annotated[str | None, typer.Option("--strategy", help=STRATEGY_HELP)]

QuestionsOption = Annotated[str | None, typer.Option("--questions", help="Synthetic questions: off, patterns or model.")]
QuestionsPerChunk = Annotated[
    int | None, typer.Option("--questions-per-chunk", help="Maximum number of synthetic questions of a chunk, 1 to 3.")
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None. The server has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}


def questions_given(method: str | None, per_chunk: int | None) -> dict[str, Any] | None:
    """Return the options of synthetic questions. None: the server's default.

    Raises:
        InvalidRequest: their number was given without a method.
    """
    if method is None and per_chunk is not None:
        raise InvalidRequest("--questions-per-chunk needs --questions patterns or --questions model")
    return None if method is None else given(method=method, per_chunk=per_chunk)
