"""``evaluate datasets`` and ``evaluate questions``: datasets of questions, and the questions of users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentic_rag_backend.cli.command import EVERYTHING, Session, join_path
from agentic_rag_backend.cli.commands.tenants import write_file
from agentic_rag_backend.cli.following import explain_failure, follow_job
from agentic_rag_backend.cli.options import drop_unset, split_names
from agentic_rag_backend.cli.output import format_time
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import AgenticRagError, InvalidRequest, NotFound

if TYPE_CHECKING:
    from agentic_rag_backend.cli.session.client import Client

DATASETS = Resource(
    path="/evaluation/datasets",
    columns={"id": "id", "name": "name", "#version": "version", "#cases": "case_count", "kinds": "kinds"},
    droppable=("kinds",),
    argument=Annotated[str, typer.Argument(metavar="DATASET_ID")],
)
QUESTIONS = Resource(
    path="/evaluation/questions",
    columns={
        "id": "id",
        "question": "question",
        "answered": "grounded",
        "#confidence": lambda item: f"{item['confidence']:.2f}",
        "asked": lambda item: format_time(item["asked_at"]),
    },
    droppable=("#confidence", "id"),
    empty="no questions; the flag QUESTION_LOG_ENABLED keeps them",
    argument=Annotated[str, typer.Argument(metavar="QUESTION_ID")],
)
QuestionRating = Annotated[str | None, typer.Option("--rating", help="good or bad: only questions whose answers were rated so.")]


async def upload_dataset(
    session: Session,
    file: Annotated[Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="JSON Lines or CSV.")],
    name: Annotated[str | None, typer.Option("--name", help="Name of the dataset; default: the file's.")] = None,
) -> None:
    """Upload a dataset: one question on each line, with the expected answer and evidence."""
    session.output.present(await post_dataset(session.client, file, name or file.stem))


async def generate_dataset(
    session: Session,
    name: Annotated[str, typer.Option("--name", help="Name of the dataset.")],
    count: Annotated[int, typer.Option("--count", help="Number of questions.")] = 60,
    kinds: Annotated[
        str | None, typer.Option("--kinds", metavar="KIND,…", help="single, two_hops, comparison, theme, time, unanswerable.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed chooses other questions.")] = 0,
) -> None:
    """Generate a dataset from the tenant's documents, by rules without a model. They may yield fewer questions, but not none."""
    generate = drop_unset(count=count, kinds=split_names(kinds) if kinds is not None else None, seed=seed)
    dataset = await session.client.post(DATASETS.path, {"name": name, "generate": generate})
    job = await follow_job(session.client, dataset["job_id"], title="questions")
    if job["state"] not in ("succeeded", "partial") or not job["result"]["cases"]:
        raise AgenticRagError(f"the dataset {name!r} has no questions: {explain_failure(job)}")
    for note in job["result"].get("reasons", ()):
        session.output.show(f"note: {note}", style="yellow")
    session.output.present(job["result"])


async def take_questions(
    session: Session,
    name: Annotated[str, typer.Option("--name", help="Name of the dataset.")],
    count: Annotated[int, typer.Option("--count", help="Maximum number of different questions, the newest ones.")] = 100,
    rating: QuestionRating = None,
) -> None:
    """Make a dataset of questions that users asked, if the tenant allowed to keep them."""
    chosen = drop_unset(count=count, rating=rating)
    session.output.present(await session.client.post(DATASETS.path, {"name": name, "from_questions": chosen}))


async def forget_questions(session: Session) -> None:
    """Delete all questions that are kept."""
    reply = await session.client.request("DELETE", QUESTIONS.path)
    session.output.present(reply["data"])


async def export_dataset(
    session: Session,
    dataset: Annotated[str, typer.Argument(metavar="ID|NAME")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, as JSON Lines.")],
) -> None:
    """Export a dataset as JSON Lines, which can be uploaded again."""
    dataset_id = await find_dataset(session.client, dataset)
    await write_file(session.client.download(f"{join_path(DATASETS.path, dataset_id)}/export", method="GET"), out)
    session.output.present({"dataset": dataset_id, "file": str(out)})


async def note_deletion(session: Session, _reply: Any) -> None:
    """Print that an item was deleted."""
    session.output.present({"deleted": True})


async def find_dataset(client: Client, name: str) -> str:
    """Return the id of a dataset by its id or name; a file is uploaded first.

    Raises:
        NotFound: there is no such dataset.
        InvalidRequest: several datasets have the name.
    """
    file = _find_file(name)
    if file is not None:
        return str((await post_dataset(client, file, file.stem))["id"])
    datasets = await client.every(DATASETS.path, limit=EVERYTHING)
    ids = [dataset["id"] for dataset in datasets if name in (dataset["id"], dataset["name"])]
    if not ids:
        raise NotFound(f"there is no dataset and no file {name[:128]!r}; 'agentic-rag evaluate datasets list' lists the datasets")
    if len(ids) > 1:
        raise InvalidRequest(f"{len(ids)} datasets are named {name[:128]!r}; give an id: {', '.join(ids[:10])}")
    return str(ids[0])


def _find_file(name: str) -> Path | None:
    return Path(name) if Path(name).is_file() else None


def _read_file(file: Path) -> bytes:
    return file.read_bytes()


async def post_dataset(client: Client, file: Path, name: str) -> Any:
    files = {"file": (file.name, _read_file(file))}
    return (await client.request("POST", DATASETS.path, files=files, data={"name": name}))["data"]
