"""Requests generated from the OpenAPI document, valid and invalid, get the documented responses.

The gate tries a few requests per operation, `make test-deep` many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
import schemathesis
from http_server import OPERATOR_KEY, issue_key, running_server
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi import checks

from agentic_rag_backend.api.app import BASE_PATH, create_app
from agentic_rag_backend.container import Container
from agentic_rag_backend.settings import Settings

pytestmark = pytest.mark.slow

TIMEOUT = "urn:agentic-rag:problem:timeout"


def only_its_own_timeout(context: Any, response: schemathesis.Response, case: schemathesis.Case) -> bool | None:  # type: ignore[type-arg]
    """Fail on a server error, except the 504 of a request with a very short time limit (``timeout_ms``)."""
    asked = case.body.get("timeout_ms") if isinstance(case.body, dict) else None
    if response.status_code == 504 and asked is not None and response.json()["type"] == TIMEOUT:
        return None
    return not_a_server_error(context, response, case)


CHECKS = [
    only_its_own_timeout,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
    checks.ignored_auth,
]
OPERATORS = f"{BASE_PATH}/tenants"
LEFT_OUT = frozenset({"x-tenant-id", "content-length", "transfer-encoding", "connection", "upgrade", "expect"})
"""Headers that are not generated. Only the operator may send the first: all other requests would get the same 403. The others
belong to the connection: if they are invalid, the HTTP library refuses the request, and not the application.
"""


def _document() -> dict[str, Any]:
    chosen = Settings(_env_file=None)  # type: ignore[call-arg]
    found: dict[str, Any] = create_app(cast(Container, SimpleNamespace(settings=chosen))).openapi()
    return found


_CONFIG = SchemathesisConfig.from_dict({"phases": {"coverage": {"enabled": False}, "examples": {"enabled": True}}})
schema = schemathesis.openapi.from_dict(_document(), config=_CONFIG)


@schemathesis.serializer("application/gzip")
def _archive(_context: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@dataclass(frozen=True, slots=True)
class Target:
    """A server with a tenant that has a document."""

    url: str
    key: str
    ids: dict[str, str]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    # One check sends a wrong key to every route and expects 401.
    chosen = {"DUAL_LEVEL_RETRIEVAL_ENABLED": True, "MAX_WRONG_KEYS_PER_CLIENT": 0}
    with running_server(tmp_path_factory.mktemp("schemathesis"), **chosen) as client:
        key = issue_key(client, "fuzzed")
        yield Target(str(client.base_url), key, _filled(client, key))


def _filled(client: httpx.Client, key: str) -> dict[str, str]:
    headers = {"X-API-Key": key}
    text = "# Pier\n\nMara Venn leads the Harbour Authority. The Harbour Authority built the pier in 1911."
    submitted = client.post(f"{BASE_PATH}/documents", json={"text": text}, headers=headers).json()["data"]
    with client.stream("GET", f"{BASE_PATH}/jobs/{submitted['job_id']}/events", headers=headers) as events:
        events.read()
    chunks = client.get(f"{BASE_PATH}/documents/{submitted['document_id']}/chunks", headers=headers).json()["data"]
    return {"document_id": submitted["document_id"], "job_id": submitted["job_id"], "chunk_id": chunks[0]["id"]}


def _ask(case: schemathesis.Case, target: Target) -> None:  # type: ignore[type-arg]
    # Half of the requests use existing ids.
    for name, known in target.ids.items():
        given = case.path_parameters.get(name)
        if given is not None and case.method == "GET" and len(str(given)) % 2:
            case.path_parameters[name] = known
    for name in [name for name in case.headers or {} if name.lower() in LEFT_OUT]:
        del case.headers[name]
    own = case.path == f"{OPERATORS}/me" or not case.path.startswith(OPERATORS)
    key = target.key if own else OPERATOR_KEY
    case.call_and_validate(base_url=target.url, headers={"X-API-Key": key}, checks=CHECKS, timeout=60)


_UNHURRIED = {"deadline": None, "suppress_health_check": list(HealthCheck), "phases": [Phase.explicit, Phase.generate]}


@schema.parametrize()
@settings(max_examples=6, derandomize=True, **_UNHURRIED)
def test_answers_hold_to_the_document(case: schemathesis.Case, target: Target) -> None:  # type: ignore[type-arg]
    _ask(case, target)


@pytest.mark.deep
@schema.parametrize()
@settings(max_examples=200, **_UNHURRIED)
def test_answers_hold_to_the_document_however_often(case: schemathesis.Case, target: Target) -> None:  # type: ignore[type-arg]
    _ask(case, target)
