"""``status``, ``features set``, ``jobs retry`` and ``jobs watch``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from agentic_rag_backend.cli.command import Session
from agentic_rag_backend.cli.following import finish_job
from agentic_rag_backend.cli.output import fields, format_time, table
from agentic_rag_backend.cli.resources import Resource
from agentic_rag_backend.errors import InvalidRequest

JobId = Annotated[str, typer.Argument(metavar="JOB_ID", help="Id of the job, from 'jobs list'.")]
JOBS = Resource(
    path="/jobs",
    columns={
        "id": "id",
        "kind": "kind",
        "state": "state",
        "stage": "stage",
        "#done": lambda job: f"{job['done']}/{job['total']}",
        "updated": lambda job: format_time(job["updated_at"]),
    },
    droppable=("updated", "stage"),
    argument=JobId,
)
FLAGS = Resource(
    path="/features", columns={name: name for name in ("name", "value", "default", "source", "description")}, paged=False
)
FLAG_VALUES: Mapping[str, bool | None] = {"true": True, "on": True, "false": False, "off": False, "default": None}


async def show_status(session: Session) -> None:
    """Show the status of the server and of the tenant."""
    status = await session.client.get("/status")
    strategies = await session.client.get("/strategies")
    if session.output.as_json:
        session.output.result(status)
        return
    tables = ("strategies", "vector_indexes", "extraction_methods")
    session.output.show(fields({"served by": session.client.where} | {key: status[key] for key in status if key not in tables}))
    if status["vector_indexes"] is not None:
        columns = ["collection", "vectors", "in the index", "state", "last built"]
        session.output.show("", table(columns, [_make_index_row(index) for index in status["vector_indexes"]]))
    methods = [
        [method["name"], "available" if method["available"] else f"it {method['why_not']}"]
        for method in status["extraction_methods"]
    ]
    session.output.show("", table(["extraction", "state"], methods))
    rows = [
        [
            strategy["name"],
            strategy["why_not"] or "available",
            ", ".join(strategy["languages"] or ["any"]),
            strategy["description"],
        ]
        for strategy in strategies
    ]
    session.output.show("", table(["strategy", "state", "languages", "description"], rows))


def _make_index_row(index: Mapping[str, Any]) -> list[str]:
    build, report = index["last"], "not since the start"
    if build is not None:
        work = f"{build['reason']}: {build['seconds']:.1f} s, requests blocked for {build['gap_s']:.2f} s"
        report = f"{build['finished_at']} {'failed: ' + build['failure'] if build['failure'] else work}"
    return [index["collection"], f"{index['points']:,}", f"{index['indexed_share']:.0%}", index["state"], report]


async def set_feature(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Flag, such as DUAL_LEVEL_RETRIEVAL_ENABLED.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="true, false, a number, or default.")],
) -> None:
    """Set a feature flag of the tenant. It applies from the next request on."""
    session.output.present(await session.client.patch(FLAGS.path, {name: _parse_flag(value)}), FLAGS.show_items)


def _parse_flag(value: str) -> bool | float | None:
    if value.lower() in FLAG_VALUES:
        return FLAG_VALUES[value.lower()]
    try:
        return float(value)
    except ValueError:
        raise InvalidRequest(f"VALUE must be a number or one of {', '.join(FLAG_VALUES)}; got {value[:80]!r}") from None


async def retry_job(
    session: Session,
    job_id: JobId,
    watch: Annotated[bool, typer.Option("--watch-job/--no-watch-job", help="Wait until it has ended.")] = True,
) -> None:
    """Retry a failed, partial or cancelled job. Finished work is not repeated."""
    accepted = await session.client.post(f"{await JOBS.find_path(session, job_id)}/retry")
    if watch:
        await watch_job(session, job_id)
    else:
        session.output.present(accepted)


async def watch_job(session: Session, job_id: JobId) -> None:
    """Follow a job to its end. The command fails if the job fails."""
    await finish_job(session, job_id, title="job", render=lambda output, job: output.show(fields(job)))
