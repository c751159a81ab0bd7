"""Idempotency: the header ``Idempotency-Key``.

A repeated POST with the same key gets the stored response of the first request, and is not executed again. The caller is
authenticated and authorised before the lookup. Responses of refused and failed requests are not stored, and their keys are free
again.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fastapi import Request, Response
from starlette.datastructures import FormData, UploadFile

from agentic_rag_backend.api.dependencies import container_of
from agentic_rag_backend.api.requests.bodies import Handler, JsonRoute, media_type_of, read_form
from agentic_rag_backend.domain.tenant import Principal
from agentic_rag_backend.errors import AgenticRagError, Conflict, InvalidRequest, StoreUnavailable
from agentic_rag_backend.stores.catalogue.base import IdempotencyKeys, Owner, StoredResponse
from agentic_rag_backend.stores.catalogue.base import Operator as OwnerOperator
from agentic_rag_backend.telemetry.logs import get_logger

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
MAX_CHARACTERS = 255
PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_CHARACTERS, "pattern": "^[!-~]+$"},
    "description": (
        "chosen by the caller, new for each request; for 24 hours, the same request with the same key gets the first response "
        f"with `{REPLAYED}: true`, and is not executed again"
    ),
}
_KEY = re.compile(rf"[!-~]{{1,{MAX_CHARACTERS}}}\Z")
_LEASE_SLACK_S = 30.0
"""Time that a process has after a request's limit to store the response."""
_HASHED_AT_ONCE = 1024 * 1024

_log = get_logger(__name__)


def shown_once(request: Request, instead: str) -> None:
    """Do not store this response, because it contains a secret. A repeated request is refused with the message ``instead``."""
    request.state.shown_once = instead


class IdempotentRoute(JsonRoute):
    """A route that supports the key for POST; other methods ignore it."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        if "POST" in (options.get("methods") or ()):
            extra = dict(options.get("openapi_extra") or {})
            parameters = [parameter for parameter in extra.get("parameters", []) if parameter.get("name") != HEADER]
            options["openapi_extra"] = {**extra, "parameters": [*parameters, PARAMETER]}
        super().__init__(path, endpoint, **options)

    def admitted_handler(self) -> Handler:
        """Return the handler that checks the stored responses first."""
        handle = super().admitted_handler()
        if "POST" not in (self.methods or ()):
            return handle

        async def once(request: Request) -> Response:
            if HEADER not in request.headers:
                return await handle(request)
            return await _once(request, handle)

        return once


async def _once(request: Request, handle: Handler) -> Response:
    owner, holder = _owner(request)
    digest = _digest(holder, request.method, request.scope["path"], _key(request))
    keys, lease_s = container_of(request).catalogue.idempotency, container_of(request).settings.request_timeout_s
    form = await read_form(request) if media_type_of(request) == "multipart/form-data" else None
    try:
        fingerprint = await _fingerprint(request, form)
        attempt = await keys.begin(owner, digest, fingerprint=fingerprint, lease_s=lease_s + _LEASE_SLACK_S)
        if isinstance(attempt, StoredResponse):
            return _replay_response(attempt)
        try:
            response = await handle(request)
        except BaseException:
            with suppress(StoreUnavailable):  # then the lease frees it
                await keys.release(owner, digest, attempt)
            raise
        await _record(keys, owner, digest, attempt, _answer(request, response))
        return response
    finally:
        if form is not None:
            await form.close()


async def _record(keys: IdempotencyKeys, owner: Owner, digest: str, claim: Any, answer: StoredResponse | None) -> None:
    try:
        if answer is None:
            await keys.release(owner, digest, claim)
        elif not await keys.complete(owner, digest, claim, answer):
            _log.warning("idempotency_claim_lost", digest=digest)
    except AgenticRagError as error:
        # The request was executed, so its response is sent.
        _log.warning("idempotency_not_recorded", code=error.code, reason=error.message)


def _owner(request: Request) -> tuple[Owner, str]:
    """Return the owner of the key and the holder of the credential. They differ if the operator acts for a tenant."""
    caller: Principal | None = getattr(request.state, "principal", None)
    if caller is None:  # the route is the operator's own
        return OwnerOperator.OPERATOR, "operator"
    return caller.tenant.id, "operator" if caller.operator else "tenant"


def _key(request: Request) -> str:
    headers = request.headers.getlist(HEADER)
    if len(headers) > 1:
        raise InvalidRequest(f"send {HEADER} once; got {len(headers)} headers")
    if not _KEY.match(headers[0]):
        raise InvalidRequest(
            f"{HEADER} must have 1 to {MAX_CHARACTERS} visible ASCII characters; "
            f"got {headers[0][:80]!r} (length {len(headers[0])})"
        )
    return headers[0]


def _answer(request: Request, response: Response) -> StoredResponse | None:
    """Return the part of a response that is stored; None unless it is a success."""
    if not 200 <= response.status_code < 300:
        return None
    instead = getattr(request.state, "shown_once", None)
    if instead is not None:
        return StoredResponse(Conflict.status, {}, str(instead).encode())
    headers = {name: value for name, value in response.headers.items() if name != "content-length"}
    return StoredResponse(response.status_code, headers, bytes(response.body))


def _replay_response(answer: StoredResponse) -> Response:
    if answer.status == Conflict.status:
        raise Conflict(answer.body.decode())
    return Response(answer.body, answer.status, {**answer.headers, REPLAYED: "true"})


async def _fingerprint(request: Request, form: FormData | None) -> str:
    """Return a hash of the request's content. The boundary of a multipart form does not matter."""
    parts = [request.scope["query_string"].decode("latin-1"), request.headers.get("if-match", ""), media_type_of(request)]
    if form is None:
        parts.append(hashlib.sha256(await request.body()).hexdigest())
    else:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                content = await asyncio.to_thread(_hash_body, value)
                parts += [name, "file", value.filename or "", value.content_type or "", content]
            else:
                parts += [name, "text", value]
    return _digest(*parts)


def _hash_body(upload: UploadFile) -> str:
    """Return the hash of a file's content, and rewind the file."""
    digest = hashlib.sha256()
    while part := upload.file.read(_HASHED_AT_ONCE):
        digest.update(part)
    upload.file.seek(0)
    return digest.hexdigest()


def _digest(*parts: str) -> str:
    """Return a hash that differs for every list of parts."""
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return digest.hexdigest()
