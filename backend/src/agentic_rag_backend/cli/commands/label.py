"""``label``: labels of texts by the labelled documents that are nearest to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.options import Strategy, drop_unset, parse_filter, split_names
from agentic_rag_backend.cli.output import Output, count_of, table
from agentic_rag_backend.errors import InvalidRequest
from agentic_rag_backend.sources.table_rows import BadRow, Columns, Row, check_table, read_rows


async def label_texts(
    session: Session,
    text: Annotated[str | None, typer.Argument(metavar="TEXT", help="The text. Default: --data has the texts.")] = None,
    *,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="FILE", exists=True, dir_okay=False, help="JSON Lines or CSV with a text in each row."),
    ] = None,
    text_column: Annotated[str, typer.Option("--text-column", help="Column of --data with the text.")] = "text",
    label_column: Annotated[
        str | None, typer.Option("--label-column", help="Column of --data with the right label; the accuracy is printed.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option("--labels", metavar="A,B,…", help="Labels to choose from; default: those of the documents.")
    ] = None,
    strategy: Strategy = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Number of documents that vote; default: 20.")] = None,
    filters: Annotated[
        str | None, typer.Option("--filter", metavar="JSON", help="Filter of the labelled documents, as a JSON object.")
    ] = None,
    method: Annotated[str | None, typer.Option("--method", help="votes, or model: a language model decides.")] = None,
) -> None:
    """Label a text, or each row of a file, by the documents with the metadata 'label' that are nearest to it."""
    if (text is None) is (data is None):
        raise InvalidRequest("give either TEXT or --data FILE")
    request = drop_unset(
        strategy=strategy, limit=limit, labels=split_names(labels or "") or None, filters=parse_filter(filters), method=method
    )
    if data is None:
        session.output.present(await session.client.post("/label", {**request, "text": text}), _show_label)
        return
    rows = []
    for row in _read_texts(data, text_column, label_column):
        labelling = await session.client.post("/label", {**request, "text": row.text})
        expected = row.metadata.get(label_column or "")
        rows.append({"row": row.number, **{key: labelling[key] for key in ("label", "confidence")}, "expected": expected})
    session.output.present({"rows": rows, "accuracy": _accuracy_of(rows)}, _show_rows)


def _read_texts(file: Path, text_column: str, label_column: str | None) -> Iterator[Row]:
    """Yield the rows.

    Raises:
        InvalidRequest: the file has no such column, or a row has no text. The message has the number of the row.
    """
    columns = Columns(text=text_column, metadata=(label_column,) if label_column else ())
    check_table(file, columns)
    for row in read_rows(file, file.name, columns):
        if isinstance(row, BadRow):
            raise InvalidRequest(f"{file}, row {row.number}: {row.reason}")
        yield row


def _accuracy_of(rows: list[dict[str, Any]]) -> float | None:
    """Return the share of right labels among the rows that have one, in [0, 1]. None: none has one."""
    known = [row for row in rows if row["expected"] is not None]
    return sum(row["label"] == str(row["expected"]) for row in known) / len(known) if known else None


def _show_label(output: Output, labelling: Mapping[str, Any]) -> None:
    output.show(labelling["label"] or "no label", style="bold")
    output.show(f"confidence {labelling['confidence']:.2f} · {labelling['method']} · {labelling['strategy']}\n", style="dim")
    votes = [(vote["label"], f"{vote['share']:.2f}", vote["documents"]) for vote in labelling["votes"]]
    output.show(table(("label", "#share", "#documents"), votes))


def _show_rows(output: Output, result: Mapping[str, Any]) -> None:
    rows = [(row["row"], row["label"] or "", f"{row['confidence']:.2f}", row["expected"] or "") for row in result["rows"]]
    output.show(table(("#row", "label", "#confidence", "expected"), rows))
    accuracy = "" if result["accuracy"] is None else f", {result['accuracy']:.3f} of them right"
    output.show(f"{count_of(len(rows), 'text')}{accuracy}")
