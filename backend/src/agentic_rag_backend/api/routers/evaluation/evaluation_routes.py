"""Datasets of questions, and evaluation runs over them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from agentic_rag_backend.api.dependencies import Administrator, Reader, Services, Writer
from agentic_rag_backend.api.requests.bodies import (
    DOCUMENT_BYTES,
    media_type_of,
    read_form,
    read_json,
    reads,
    require_fields,
    require_json,
    text_field,
)
from agentic_rag_backend.api.requests.idempotency import IdempotentRoute
from agentic_rag_backend.api.responses.attachments import content_disposition
from agentic_rag_backend.api.responses.envelopes import Cursor, Envelope, Limit, ListEnvelope, wrap_data, wrap_page
from agentic_rag_backend.api.schemas.evaluation_views import (
    AskedQuestionView,
    CasesBody,
    CaseView,
    DatasetBody,
    DatasetView,
    EstimateView,
    OutcomeView,
    QuestionsForgotten,
    RunAccepted,
    RunBody,
    RunView,
)
from agentic_rag_backend.application import Application
from agentic_rag_backend.domain.asked_questions import QuestionFilter, Rating
from agentic_rag_backend.domain.evaluation import Dataset
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import Conflict, InvalidRequest
from agentic_rag_backend.evaluation.case_files import CSV, JSON_LINES
from agentic_rag_backend.evaluation.questions.question_rules import KINDS
from agentic_rag_backend.evaluation.reports.run_reports import format_html, format_markdown

router = APIRouter(prefix="/evaluation", tags=["evaluation"], route_class=IdempotentRoute)
_FORM_FIELDS = frozenset({"file", "name"})
_MEDIA_TYPES = {".jsonl": JSON_LINES, ".ndjson": JSON_LINES, ".csv": CSV}
"""Media types of files by their suffixes. Browsers send none for JSON Lines, and different ones for CSV."""
Version = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="version of the dataset; default: the current one")]
Baseline = Annotated[
    str | None, Query(max_length=64, description="id of another run: `differences` are then those from this run")
]


@router.post(
    "/datasets",
    status_code=201,
    response_model=Envelope[DatasetView],
    summary="Create a dataset from cases or a file, or generate one",
    responses={202: {"model": Envelope[DatasetView], "description": "a job generates the cases"}},
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/DatasetBody"}},
                "multipart/form-data": {
                    "schema": {
                        "type": "object",
                        "required": ["file", "name"],
                        "examples": [{"file": "questions.jsonl", "name": "harbour"}],
                        "properties": {
                            "file": {"type": "string", "format": "binary", "description": "JSON Lines or CSV"},
                            "name": {"type": "string"},
                        },
                    }
                },
            },
        }
    },
)
@reads(lambda _: DOCUMENT_BYTES)
async def create_dataset(request: Request, response: Response, services: Services, caller: Writer) -> dict[str, Any]:
    """Create a dataset. With `generate`, a job makes the cases from the tenant's own documents, by rules without a model."""
    if media_type_of(request) == "multipart/form-data":
        return wrap_data(request, DatasetView.of(await _upload_dataset(request, services, caller)))
    require_json(request, instead="application/json or multipart/form-data")
    try:
        body = DatasetBody.model_validate(await read_json(request))
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False)) from None
    if body.generate is not None:
        response.status_code = 202
        options = body.generate
        dataset = await services.evaluations.generate_dataset(
            caller, body.name, count=options.count, kinds=options.kinds or KINDS, seed=options.seed
        )
    elif body.from_questions is not None:
        chosen = body.from_questions
        dataset = await services.evaluations.create_from_questions(
            caller, body.name, count=chosen.count, chosen=chosen.to_filter()
        )
    else:
        cases = [case.to_case() for case in body.cases or ()]
        dataset = await services.evaluations.create_dataset(caller, body.name, cases)
    return wrap_data(request, DatasetView.of(dataset))


async def _upload_dataset(request: Request, services: Application, caller: Principal) -> Dataset:
    form = await read_form(request)
    try:
        require_fields(form, _FORM_FIELDS)
        files = [item for item in form.getlist("file") if isinstance(item, UploadFile)]
        if len(files) != 1:
            raise InvalidRequest(f"send one part named 'file'; got {len(files)}")
        name = text_field(form, "name")
        if name is None:
            raise InvalidRequest("the form field 'name' is required", field="name")
        suffix = next((suffix for suffix in _MEDIA_TYPES if (files[0].filename or "").casefold().endswith(suffix)), "")
        media_type = _MEDIA_TYPES.get(suffix) or (files[0].content_type or "").partition(";")[0].strip().lower()
        return await services.evaluations.upload_dataset(caller, name, await files[0].read(), media_type)
    finally:
        await form.close()


@router.get("/datasets", response_model=ListEnvelope[DatasetView], summary="List datasets, newest first")
async def list_datasets(
    request: Request, services: Services, caller: Reader, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List the tenant's datasets without their cases."""
    page = await services.evaluations.list_datasets(caller, limit=limit, cursor=cursor)
    return wrap_page(request, [DatasetView.of(dataset) for dataset in page.items], page.next_cursor)


@router.get("/datasets/{dataset_id}", response_model=Envelope[DatasetView], summary="Get a dataset")
async def get_dataset(request: Request, services: Services, caller: Reader, dataset_id: str) -> dict[str, Any]:
    """Return a dataset without its cases."""
    return wrap_data(request, DatasetView.of(await services.evaluations.get_dataset(caller, dataset_id)))


@router.delete("/datasets/{dataset_id}", status_code=204, summary="Delete a dataset")
async def delete_dataset(services: Services, caller: Writer, dataset_id: str) -> Response:
    """Delete a dataset in all versions, with its runs and their outcomes."""
    await services.evaluations.delete_dataset(caller, dataset_id)
    return Response(status_code=204)


@router.get("/datasets/{dataset_id}/cases", response_model=ListEnvelope[CaseView], summary="List the cases of a dataset")
async def list_cases(
    request: Request,
    services: Services,
    caller: Reader,
    dataset_id: str,
    version: Version = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the cases of a version in the order in which they were added."""
    page = await services.evaluations.list_cases(caller, dataset_id, limit=limit, cursor=cursor, version=version)
    return wrap_page(request, [CaseView.of(case) for case in page.items], page.next_cursor)


@router.post(
    "/datasets/{dataset_id}/cases", status_code=201, response_model=Envelope[DatasetView], summary="Add cases to a dataset"
)
@reads(lambda _: DOCUMENT_BYTES)
async def add_cases(request: Request, services: Services, caller: Writer, dataset_id: str, body: CasesBody) -> dict[str, Any]:
    """Add cases, an answer as a case, or questions that users asked, as a new version. Earlier versions stay as they are."""
    if body.answer is not None:
        dataset = await services.evaluations.save_answer(caller, dataset_id, body.answer.to_case())
    elif body.from_questions is not None:
        chosen = body.from_questions
        dataset = await services.evaluations.add_questions(caller, dataset_id, count=chosen.count, chosen=chosen.to_filter())
    else:
        dataset = await services.evaluations.add_cases(caller, dataset_id, [case.to_case() for case in body.cases or ()])
    return wrap_data(request, DatasetView.of(dataset))


@router.delete(
    "/datasets/{dataset_id}/cases/{case_id}", response_model=Envelope[DatasetView], summary="Remove a case from a dataset"
)
async def remove_case(request: Request, services: Services, caller: Writer, dataset_id: str, case_id: str) -> dict[str, Any]:
    """Remove a case from the next version. Earlier versions keep it."""
    return wrap_data(request, DatasetView.of(await services.evaluations.remove_case(caller, dataset_id, case_id)))


@router.get(
    "/datasets/{dataset_id}/export",
    summary="Export a dataset",
    response_class=StreamingResponse,
    responses={200: {"content": {JSON_LINES: {"schema": {"type": "string"}}}, "description": "a case on each line"}},
)
async def export_dataset(services: Services, caller: Reader, dataset_id: str, version: Version = None) -> StreamingResponse:
    """Return a version as JSON Lines, which can be uploaded again."""
    dataset = await services.evaluations.get_dataset(caller, dataset_id)
    lines = services.evaluations.export_dataset(caller, dataset_id, version=version)
    first_lines = await anext(lines)  # an error before the first line is still a response

    async def blocks() -> AsyncIterator[bytes]:
        yield first_lines
        async for block in lines:
            yield block

    headers = {"Content-Disposition": content_disposition(f"{dataset.name}.jsonl")}
    return StreamingResponse(blocks(), media_type=JSON_LINES, headers=headers)


@router.get("/questions", response_model=ListEnvelope[AskedQuestionView], summary="List kept questions, newest first")
async def list_questions(
    request: Request,
    services: Services,
    caller: Administrator,
    rating: Rating | None = None,
    grounded: bool | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the questions that users asked, if the tenant allowed to keep them (`QUESTION_LOG_ENABLED`)."""
    chosen = QuestionFilter(rating=rating, grounded=grounded)
    page = await services.evaluations.list_questions(caller, limit=limit, cursor=cursor, chosen=chosen)
    return wrap_page(request, [AskedQuestionView.of(question) for question in page.items], page.next_cursor)


@router.delete("/questions", response_model=Envelope[QuestionsForgotten], summary="Delete all kept questions")
async def forget_questions(request: Request, services: Services, caller: Administrator) -> dict[str, Any]:
    """Delete the texts of all kept questions. Datasets that were made from them stay."""
    return wrap_data(request, QuestionsForgotten(questions=await services.evaluations.forget_questions(caller)))


@router.delete("/questions/{question_id}", status_code=204, summary="Delete a kept question")
async def forget_question(services: Services, caller: Administrator, question_id: str) -> Response:
    """Delete the text of a kept question."""
    await services.evaluations.forget_question(caller, question_id)
    return Response(status_code=204)


@router.post(
    "/runs",
    status_code=202,
    response_model=Envelope[RunAccepted],
    summary="Run configurations over a dataset",
    responses={200: {"model": Envelope[RunAccepted], "description": "the estimate of a dry run"}},
)
async def start_run(request: Request, response: Response, services: Services, caller: Writer, body: RunBody) -> dict[str, Any]:
    """Queue a job that asks every case in every configuration and measures the results. It survives restarts of the server.

    With `dry_run`, the response is the expected number of questions and tokens.
    """
    if body.dry_run:
        response.status_code = 200
        estimate = EstimateView.of(await services.evaluations.estimate_run(caller, body.to_plan()))
        return wrap_data(request, RunAccepted(run_id=None, job_id=None, state=None, dry_run=True, estimate=estimate))
    return wrap_data(request, RunAccepted.of(await services.evaluations.start_run(caller, body.to_plan())))


@router.get("/runs", response_model=ListEnvelope[RunView], summary="List evaluation runs, newest first")
async def list_runs(
    request: Request,
    services: Services,
    caller: Reader,
    dataset: Annotated[str | None, Query(max_length=64, description="only runs over this dataset")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """List the tenant's runs without their results."""
    page = await services.evaluations.list_runs(caller, limit=limit, cursor=cursor, dataset_id=dataset)
    return wrap_page(request, [RunView.of(run, with_result=False) for run in page.items], page.next_cursor)


@router.get("/runs/{run_id}", response_model=Envelope[RunView], summary="Get an evaluation run")
async def get_run(request: Request, services: Services, caller: Reader, run_id: str, baseline: Baseline = None) -> dict[str, Any]:
    """Return a run with its metrics, and the differences from its first configuration or from another run."""
    return wrap_data(request, RunView.of(await services.evaluations.get_run(caller, run_id, baseline=baseline)))


@router.get(
    "/runs/{run_id}/report",
    response_model=Envelope[RunView],
    summary="Report of an evaluation run",
    responses={
        200: {
            "content": {"text/html": {"schema": {"type": "string"}}, "text/markdown": {"schema": {"type": "string"}}},
            "description": "by `Accept`: JSON, Markdown, or one HTML page with plots and without scripts",
        }
    },
)
async def get_report(request: Request, services: Services, caller: Reader, run_id: str, baseline: Baseline = None) -> Any:
    """Return the report of a run that has ended."""
    run = await services.evaluations.get_run(caller, run_id, baseline=baseline)
    if run.result is None:
        raise Conflict(f"run {run_id!r} is {run.state.value}; it has no report")
    accepted = request.headers.get("accept", "")
    if "text/html" in accepted:
        security = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(await asyncio.to_thread(format_html, run.result), media_type="text/html", headers=security)
    if "text/markdown" in accepted:
        return Response(await asyncio.to_thread(format_markdown, run.result), media_type="text/markdown")
    return wrap_data(request, RunView.of(run))


@router.get("/runs/{run_id}/outcomes", response_model=ListEnvelope[OutcomeView], summary="List the outcomes of a run's questions")
async def list_outcomes(
    request: Request, services: Services, caller: Reader, run_id: str, limit: Limit = 50, cursor: Cursor = None
) -> dict[str, Any]:
    """List one outcome for each case and configuration that was asked."""
    page = await services.evaluations.list_outcomes(caller, run_id, limit=limit, cursor=cursor)
    return wrap_page(request, [OutcomeView.of(outcome) for outcome in page.items], page.next_cursor)


@router.delete("/runs/{run_id}", status_code=204, summary="Delete an evaluation run")
async def delete_run(services: Services, caller: Writer, run_id: str) -> Response:
    """Delete a run that has ended, with its outcomes."""
    await services.evaluations.delete_run(caller, run_id)
    return Response(status_code=204)
