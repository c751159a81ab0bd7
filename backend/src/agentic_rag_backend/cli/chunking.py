"""Options of chunking that several commands have."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agentic_rag_backend.domain.document import CHUNKING_STRATEGIES

STRATEGY_HELP = f"Chunking strategy: {', '.join(CHUNKING_STRATEGIES)}."
ChunkSize = Annotated[int | None, typer.Option("--chunk-size", help="Maximum size of a chunk, in units.")]
Overlap = Annotated[int | None, typer.Option("--overlap", help="Overlap with the previous chunk, in units.")]
ParentSize = Annotated[
    int | None, typer.Option("--parent-size", help="parent_child and proposition: maximum size of a parent, in units.")
]
Unit = Annotated[str | None, typer.Option("--unit", help="tokens or characters.")]
Strategy = Annotated[str | None, typer.Option("--strategy", help=STRATEGY_HELP)]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None. The server has defaults for the others."""
    return {name: value for name, value in options.items() if value is not None}
