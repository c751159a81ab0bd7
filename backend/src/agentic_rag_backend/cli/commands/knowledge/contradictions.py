"""``graph contradictions``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.output import Output, text
from agentic_rag_backend.cli.resources import Most


async def contradictions(
    session: Session,
    entity: Annotated[str | None, typer.Argument(metavar="[NAME_OR_ID]", help="Only about this entity.")] = None,
    kind: Annotated[
        Literal["denial", "exclusive", "date", "number"] | None, typer.Option("--kind", help="Only of this kind.")
    ] = None,
    min_confidence: Annotated[
        float, typer.Option("--min-confidence", help="Least confidence, 0 to 1; lower ones are often none.")
    ] = 0.5,
    limit: Most = 50,
) -> None:
    """Show statements of documents that cannot both be true, with both sentences."""
    options = {"entity": entity, "kind": kind, "min_confidence": min_confidence}
    items = await session.client.every("/graph/contradictions", limit=limit, **options)
    session.output.present(items, show_contradictions)


def show_contradictions(output: Output, items: Sequence[Mapping[str, Any]]) -> None:
    """Print contradictions, numbered."""
    if not items:
        output.show("no contradictions")
    for number, contradiction in enumerate(items, 1):
        show_contradiction(output, number, contradiction)


def show_contradiction(output: Output, number: int, contradiction: Mapping[str, Any]) -> None:
    """Print a contradiction with both sides."""
    output.show(
        text(f"\n{number}. {contradiction['subject']}", "bold"),
        text(f"   {contradiction['kind']} · {contradiction['confidence']:.2f}", "dim"),
    )
    for side in (contradiction["a"], contradiction["b"]):
        dated = f" ({side['date']})" if side["date"] else ""
        output.show(f"   {side['value']} · {side['title']}{dated}")
        output.show(text(f"      “{' '.join(side['quote'].split())}” · chunk {side['chunk_id']}", "dim"))
