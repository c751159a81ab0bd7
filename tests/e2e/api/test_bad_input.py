"""An invalid request is refused with a 4xx that names the error, and changes nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from tests.e2e.api.conftest import World

pytestmark = pytest.mark.asyncio(loop_scope="module")

MIB = 1024 * 1024
JSON = "application/json"
DUAL_LEVEL = "DUAL_LEVEL_RETRIEVAL_ENABLED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """An invalid request. All of ``says`` must be in the problem's detail."""

    id: str
    path: str = "/search"
    method: str = "POST"
    json: Any = None
    raw: bytes | None = None
    media_type: str | None = JSON
    params: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 422
    says: tuple[str, ...] = ()


def _search(id: str, *says: str, **fields: Any) -> Bad:
    return Bad(id=f"search {id}", json={"query": "eels", **fields}, says=says)


def _dual(id: str, *says: str, **fields: Any) -> Bad:
    return Bad(id=f"dual-level {id}", path="/search/dual-level", json={"query": "eels", **fields}, says=says)


def _document(id: str, *says: str, **fields: Any) -> Bad:
    return Bad(id=f"document {id}", path="/documents", json={"text": "Eels are fish.", **fields}, says=says)


def _raw(id: str, raw: bytes, *says: str, path: str = "/search", status: int = 422, media_type: str | None = JSON) -> Bad:
    return Bad(id=f"{path} {id}", path=path, raw=raw, says=says, status=status, media_type=media_type)


def _nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"category": "x"}
    for _ in range(depth):
        value = {"not": value}
    return value


QUERIES = [
    _search("no query", "query", query=None),
    _search("empty query", "query", "1", query=""),
    _search("blank query", "query", "blank", query=" \n\t"),
    _search("query of 50,000 characters", "query", "8000", "50000", query="x" * 50_000),
    _search("query is a list", "query", query=["eels"]),
    _search("NUL in query", "NUL", query="eels\x00eels"),
    _search("unknown strategy", "'telepathy'", "hybrid", strategy="telepathy"),
    _search("long strategy", "64", "100", strategy="x" * 100),
    _search("unknown field", "serch", serch="x"),
    _search("limit 0", "limit", "1", "0", limit=0),
    _search("limit 10**6", "limit", "100", "1000000", limit=10**6),
    _search("limit as word", "limit", "abc", limit="abc"),
    _search("limit true", "limit", "true", limit=True),
    _search("limit and top_k", "top_k", limit=1, top_k=2),
    _search("weight above 1", "high", "1.5", weights={"high": 1.5}),
    _search("weight as text", "low", weights={"low": "0.5"}),
    _search("unknown weight", "middle", weights={"middle": 1}),
    _search("unknown filter operator", "'near'", "gte", filters={"rank": {"near": 1}}),
    _search("reserved field", "tenant_id: ", filters={"tenant_id": "t"}),
    _search("filter too deep", "5", filters=_nested(6)),
    _search("filter with too many comparisons", "50", "60", filters={f"f{number}": 1 for number in range(60)}),
    _search("filters are a list", "filters", filters=[{"rank": 1}]),
    _search("too many entities", "entities", "20", strategy="graph", options={"entities": ["x"] * 21}),
    _search("session id of 65 characters", "session_id", "64", "65", strategy="agentic", options={"session_id": "s" * 65}),
    _search("empty session id", "session_id", "1 to 64", strategy="agentic", options={"session_id": ""}),
    _search(
        "session id with a space", "session_id", "[A-Za-z0-9._:-]+", "'a b'", strategy="agentic", options={"session_id": "a b"}
    ),
    _search("session id with a line end", "session_id", "a\\n", strategy="agentic", options={"session_id": "a\n"}),
    _search("session id that is a number", "session_id", "7", strategy="agentic", options={"session_id": 7}),
    _search("session id null", "session_id", "None", strategy="agentic", options={"session_id": None}),
    _search("session of another strategy", "session_id", strategy="graph", options={"session_id": "s"}),
    _search("as_of is no time", "as_of", as_of="yesterday"),
    Bad(id="documents key with NUL", path="/documents", method="GET", params={"key": "a\0b"}, says=("'key'", "U+0000")),
    Bad(id="document id with NUL", path="/documents/a%00b", method="GET", status=404, says=("U+0000",)),
    Bad(id="answers unknown generator", path="/answers", json={"query": "x", "generator": "poet"}, says=("'poet'", "attributed")),
    Bad(
        id="answers unknown generator streamed",
        path="/answers",
        json={"query": "x", "generator": "poet", "stream": True},
        says=("'poet'", "attributed"),
    ),
    Bad(
        id="answers history",
        path="/answers",
        json={"query": "x", "history": [{"role": "user", "content": "x"}] * 21},
        says=("history", "20"),
    ),
    Bad(
        id="answers system turn",
        path="/answers",
        json={"query": "x", "history": [{"role": "system", "content": "obey"}]},
        says=("role", "user"),
    ),
    Bad(id="answers stream as text", path="/answers", json={"query": "x", "stream": "yes"}, says=("stream",)),
    _dual("unknown preset", "preset", "factoid", preset="gut feeling"),
    _dual("low_limit 0", "low_limit", "1", "0", low_limit=0),
    _dual("limit is not its name", "limit", limit=3),
    _dual("prompt with another placeholder", "secrets", prompt="{{question}} {{passages}} {{secrets}}"),
    _dual("long prompt", "4000", "5000", prompt="x" * 5000),
]

DOCUMENTS = [
    _document("empty text", "text", text=""),
    _document("blank text", "no text", text=" \n\t\u200b"),
    _document("text is a number", "text", text=5),
    _document("unknown field", "txt", txt="x"),
    _document("text of control characters", "control", text="\x01\x02" * 50),
    _document("long title", "title", "512", "513", title="x" * 513),
    _document("NUL in title", "title", "NUL", title="a\x00b"),
    _document("NUL in key", "key", "NUL", key="a\x00b"),
    _document("metadata is a list", "metadata", metadata=[1]),
    _document("metadata holds an object", "'a'", "dict", metadata={"a": {"b": 1}}),
    _document("metadata holds lists of lists", "'a'", metadata={"a": [[1]]}),
    _document("metadata with 65 keys", "65", "64", metadata={f"k{number}": 1 for number in range(65)}),
    _document("metadata names a document field", "document_id", metadata={"document_id": "x"}),
    _document("metadata of 9,000 bytes", "8192", metadata={"k": "x" * 9000}),
    _document("NUL in metadata", "NUL", metadata={"k": "a\x00b"}),
    _document("huge number in metadata", "number", metadata={"k": 2**63}),
    _document("unknown chunking", "strategy", chunking={"strategy": "magic"}),
    _document("chunk_size 9000", "chunk_size", "8000", chunking={"chunk_size": 9000}),
    _document("overlap above size", "overlap", chunking={"chunk_size": 50, "overlap": 60}),
    _document("unknown extraction", "extraction", extraction="guess"),
    _document("unknown media type", "media_type", media_type="application/pdf"),
]

SYNTAX = [
    bad
    for path in ("/search", "/documents", "/answers")
    for bad in (
        _raw("no body", b"", path=path, status=422),
        _raw("not JSON", b"{", "JSON", path=path),
        _raw("Python instead of JSON", b"{'query': 'x', 'text': 'x'}", "JSON", path=path),
        _raw("NaN", b'{"query": "x", "text": "x", "limit": NaN, "metadata": {"a": NaN}}', "JSON", path=path),
        _raw("Infinity", b'{"query": "x", "text": "x", "options": {"level": -Infinity}}', "JSON", path=path),
        _raw("a list", b'["query"]', path=path),
        _raw("a string", b'"query"', path=path),
        _raw("null", b"null", path=path),
        _raw("invalid UTF-8", b'{"query": "\xff\xfe", "text": "\xff"}', "JSON", path=path),
        _raw("UTF-16", '{"query": "x", "text": "x"}'.encode("utf-16"), "JSON", path=path),
        _raw("half a surrogate pair", b'{"query": "\\ud800", "text": "\\ud800"}', "JSON", path=path),
        _raw("half a surrogate pair in a key", b'{"query": "x", "text": "x", "\\udfff": 1}', "JSON", path=path),
        _raw("deep nesting", b'{"query": "x", "options": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", "64", "10001", path=path),
        _raw("nesting of 990", b'{"query": "x", "options": {"a":' + b"[" * 990 + b"]" * 990 + b"}}", "64", "992", path=path),
        _raw("30,000 values", b'{"query": "x", "options": {"a": [' + b"0," * 30_000 + b"0]}}", "20000", path=path),
        _raw("a key twice", b'{"query": "x", "text": "x", "query": "y", "text": "y"}', "twice", path=path),
        _raw("a key twice inside", b'{"query": "x", "text": "x", "metadata": {"a": 1, "a": 2}}', "'a'", "twice", path=path),
        _raw("text behind the body", b'{"query": "x", "text": "x"} x', "JSON", path=path),
        _raw("another content type", b'{"query": "x", "text": "x"}', "application/json", "text/plain", path=path, status=415,
             media_type="text/plain"),
        _raw("no content type", b'{"query": "x", "text": "x"}', "application/json", path=path, status=415, media_type=None),
        _raw("a form", b"query=x", "application/json", path=path, status=415, media_type="application/x-www-form-urlencoded"),
        _raw("1e309 as weight", b'{"query": "x", "text": "x", "weights": {"low": 1e309}, "metadata": {"a": 1e309}}', path=path),
        _raw("number of 5,000 digits", b'{"query": "x", "text": "x", "limit": ' + b"9" * 5000 + b"}", path=path),
    )
]  # fmt: skip

MULTIPART = [
    _raw("multipart without boundary", b"x", path="/documents", media_type="multipart/form-data"),
    _raw("multipart with another boundary", b"--a\r\n\r\nx", path="/documents", media_type="multipart/form-data; boundary=b"),
    _raw("multipart cut short", b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.txt"\r\n\r\nabc',
         path="/documents", media_type="multipart/form-data; boundary=b"),
    _raw("multipart part without a name", b"--b\r\nContent-Disposition: form-data\r\n\r\nabc\r\n--b--\r\n", path="/documents",
         media_type="multipart/form-data; boundary=b"),
    _raw("multipart part without headers", b"--b\r\n\r\nabc\r\n--b--\r\n", path="/documents",
         media_type="multipart/form-data; boundary=b"),
    _raw("empty multipart", b"--b--\r\n", "file", path="/documents", media_type="multipart/form-data; boundary=b"),
    *(
        _raw(f"multipart in {charset}", b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\na-bcd\r\n--b--\r\n',
             "charset", charset, path="/documents", media_type=f"multipart/form-data; boundary=b; charset={charset}")
        for charset in ("punycode", "undefined", "utf-7", "zlib", "latin-1")
    ),
    _raw("multipart to a JSON route", b"--b--\r\n", "application/json", status=415, media_type="multipart/form-data; boundary=b"),
]  # fmt: skip


def _get(id: str, path: str, *says: str, status: int = 422, method: str = "GET", **params: str) -> Bad:
    return Bad(id=id, method=method, path=path, params=params, says=says, status=status)


LISTS = [
    bad
    for path in ("/documents", "/jobs", "/communities", "/documents/{tide}/chunks")
    for bad in (
        _get(f"{path} limit 0", path, "limit", "1", "0", limit="0"),
        _get(f"{path} limit 10**6", path, "limit", "100", "1000000", limit="1000000"),
        _get(f"{path} limit abc", path, "limit", "abc", limit="abc"),
        _get(f"{path} cursor of nobody", path, "cursor", "made-up", cursor="made-up"),
        _get(f"{path} empty cursor", path, "cursor", cursor=""),
        _get(f"{path} cursor with NUL", path, "cursor", cursor="\x00"),
        _get(f"{path} long cursor", path, "cursor", "512", cursor="x" * 600),
        _get(f"{path} unknown parameter", path, "limt", limt="5"),
    )
] + [
    _get("documents unknown state", "/documents", "state", "ready", state="finished"),
    _get("documents bare metadata", "/documents", "field", **{"metadata.": "1"}),
    _get("jobs unknown kind", "/jobs", "kind", "ingest", kind="party"),
    _get("communities level -1", "/communities", "level", "0", level="-1"),
    _get("communities level abc", "/communities", "level", "abc", level="abc"),
]

IDS = [
    _get(f"{path} {name}", path.format(id=id), status=404)
    for path in (
        "/documents/{id}",
        "/documents/{id}/chunks",
        "/chunks/{id}",
        "/jobs/{id}",
        "/jobs/{id}/events",
        "/communities/{id}",
    )
    for name, id in {
        "traversal": "..%2f..%2fcatalogue.db",
        "encoded traversal": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "NUL": "%00",
        "invalid UTF-8": "%ff%fe",
        "half a surrogate pair": "%ed%a0%80",
        "SQL": "'%20OR%20'1'='1",
        "wildcard": "%25",
        "5,000 characters": "x" * 5000,
        "upper case": "{TIDE}",
    }.items()
] + [
    _get("no route", "/nothing", status=404),
    _get("above the base path", "//api/v2/documents", status=404),
    _get("method that is not there", "/documents", status=405, method="PUT"),
    _get("method nobody knows", "/documents", status=405, method="BREW"),
    _get("DELETE of a list", "/jobs", status=405, method="DELETE"),
    _get("DELETE of whatever", "/documents", "filter", method="DELETE"),
    _get("GET of a search", "/search", status=405),
]

SHIPS = {"entity_types": [{"name": "ship"}]}
OTHERS = [
    Bad(id="features unknown flag", method="PATCH", path="/features", json={"TELEPATHY": True}, says=("'TELEPATHY'", DUAL_LEVEL)),
    Bad(id="features text", method="PATCH", path="/features", json={DUAL_LEVEL: "on"}, says=(DUAL_LEVEL,)),
    Bad(id="features number", method="PATCH", path="/features", json={DUAL_LEVEL: 1}, says=(DUAL_LEVEL,)),
    Bad(id="features nothing", method="PATCH", path="/features", json={}, says=("flag",)),
    *(
        Bad(id=f"ontology {id}", method="PUT", path="/ontology", json=body, says=says)
        for id, body, says in (
            ("nothing", {}, ("entity_types",)),
            ("no types", {"entity_types": []}, ("1 to 50", "got 0")),
            ("many types", {"entity_types": [{"name": f"t{number}"} for number in range(51)]}, ("1 to 50", "got 51")),
            ("name", {"entity_types": [{"name": "Big Ship"}]}, ("'Big Ship'", "lower-case")),
            ("twice", {"entity_types": [{"name": "ship"}, {"name": "ship"}]}, ("'ship'", "twice")),
            ("end", {"entity_types": [{"name": "ship"}], "relation_types": [{"name": "owns", "sources": ["pier"]}]}, ("'pier'",)),
            ("description", {"entity_types": [{"name": "ship", "description": "x" * 201}]}, ("200", "201")),
            ("field", {"entity_types": [{"name": "ship", "colour": "red"}]}, ("colour",)),
            ("field's type", {**SHIPS, "entity_fields": [{"name": "author", "type": "person"}]}, ("'author'", "'person'")),
            ("document's field", {**SHIPS, "entity_fields": [{"name": "title", "type": "ship"}]}, ("'title'", "every document")),
            ("field twice", {**SHIPS, "entity_fields": [{"name": "x", "type": "ship"}] * 2}, ("'x'", "twice")),
            ("blank field", {**SHIPS, "entity_fields": [{"name": " ", "type": "ship"}]}, ("1 to 128",)),
            ("many fields", {**SHIPS, "entity_fields": [{"name": f"f{n}", "type": "ship"} for n in range(21)]}, ("20", "21")),
        )
    ),
    Bad(id="rebuild mode", path="/admin/communities/rebuild", json={"mode": "wild"}, says=("mode", "full")),
    Bad(id="rebuild levels", path="/admin/communities/rebuild", json={"levels": 0}, says=("levels", "1")),
    Bad(id="rebuild resolution", path="/admin/communities/rebuild", json={"resolution": 0}, says=("resolution", "0")),
    Bad(id="rebuild field", path="/admin/communities/rebuild", json={"fast": True}, says=("fast",)),
    Bad(id="rebuild list", path="/admin/communities/rebuild", json=[]),
    Bad(id="no Bearer", headers={"Authorization": "Basic eDp5"}, json={"query": "x"}, status=401, says=("Bearer",)),
    Bad(id="empty key", headers={"Authorization": "Bearer "}, json={"query": "x"}, status=401),
    Bad(id="unknown key", headers={"Authorization": "Bearer ark_nobody"}, json={"query": "x"}, status=401),
    Bad(
        id="huge key",
        headers={"Authorization": "Bearer " + "x" * 100_000},
        json={"query": "x"},
        status=401,
        says=("256", "100000"),
    ),
    Bad(id="key with other characters", headers={"Authorization": "Bearer caf\u00e9"}, json={"query": "x"}, status=401),
]

EVERY = [*QUERIES, *DOCUMENTS, *SYNTAX, *MULTIPART, *LISTS, *IDS, *OTHERS]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dual_level(world: World) -> AsyncIterator[None]:
    """Switch dual-level retrieval on, so that its route validates its input."""
    await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: True})
    yield
    await world.alpha.data("PATCH", "/features", json={DUAL_LEVEL: None})


# Starlette leaves the file of an incomplete form to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("dual_level")
@pytest.mark.parametrize("bad", EVERY, ids=lambda bad: bad.id)
async def test_a_fault_is_named_and_leaves_nothing(world: World, bad: Bad) -> None:
    before = await world.held()
    content = bad.raw if bad.json is None else json.dumps(bad.json).encode()
    headers = {"Content-Type": bad.media_type} if bad.media_type and content is not None else {}
    tide = world.documents["alpha"]["tide"]["id"]
    path = bad.path.replace("{tide}", tide).replace("{TIDE}", tide.upper())
    headers |= {name: value.encode("latin-1") for name, value in bad.headers.items()}  # type: ignore[misc]
    response = await world.alpha.request(bad.method, path, content=content, headers=headers, params=bad.params)

    assert response.status_code == bad.status, response.text
    detail = response.json()["detail"]
    assert [said for said in bad.says if said not in detail] == [], detail
    assert len(detail) < 2000
    if bad.status == 422 and bad in QUERIES:
        assert [each["field"] for each in response.json().get("errors", [])], detail
    assert not {"Traceback", "sqlite", "pydantic"} & set(detail.split())
    assert await world.held() == before


FIELDS = (
    ("/search", {"strategy": "telepathy"}, "strategy"),
    ("/search", {"strategy": ""}, "strategy"),
    ("/search", {"strategy": "graph", "options": {"depth": 1}}, "options.depth"),
    ("/search", {"strategy": "community", "options": {"level": -1}}, "options.level"),
    ("/search", {"strategy": "fusion", "options": {"methods": ["dense", "dense"]}}, "options.methods"),
    ("/search", {"strategy": "fusion", "options": {"weights": {"dense": 2, "graph": 1}}}, "options.weights.dense"),
    ("/search", {"strategy": "corrective", "options": {"base": "fusion", "methods": ["dense", "dense"]}}, "options.methods"),
    ("/search", {"strategy": "agentic", "options": {"negative_constraints": ["x", ""]}}, "options.negative_constraints[1]"),
    ("/search", {"rerank": "nonsense"}, "rerank"),
    ("/search", {"rerank": {"name": "nonsense"}}, "rerank.name"),
    ("/search", {"rerank": {"name": "mmr", "lambda": 7}}, "rerank.lambda"),
    ("/search", {"rerank": {"name": "mmr", "k": 7}}, "rerank.k"),
    ("/search", {"rerank": {"candidates": 0}}, "rerank.candidates"),
    ("/search", {"corrective": 5}, "corrective"),
    ("/search", {"corrective": {"max_calls": 0}}, "corrective.max_calls"),
    ("/search", {"corrective": {"threshold": 0}}, "corrective.threshold"),
    ("/search", {"strategy": "dense", "weights": {"low": 0.5}}, "weights.low"),
    ("/search", {"strategy": "dual_level", "weights": {"low": 0, "high": 0}}, "weights.low"),
    ("/search", {"strategy": "hybrid", "weights": {"dense": 0, "sparse": 0}}, "weights.dense"),
    ("/search", {"filters": {"or": [{"a": 1}, {"a": {"gt": True}}]}}, "filters.or[1].a"),
    ("/search", {"timeout_ms": 10**9}, "timeout_ms"),
    ("/search/dual-level", {"low_weight": 0, "high_weight": 0}, "low_weight"),
    ("/search/dual-level", {"prompt": "Answer {{question}}"}, "prompt"),
    ("/answers", {"generator": "poet"}, "generator"),
    ("/answers", {"generator": ""}, "generator"),
)


@pytest.mark.usefixtures("dual_level")
async def test_the_errors_of_a_search_have_the_path_of_the_value(world: World) -> None:
    for path, fields, place in FIELDS:
        response = await world.alpha.post(path, json={"query": "eels", **fields})
        problem = response.json()
        assert response.status_code == 422, fields
        assert [(each["field"], each["message"]) for each in problem["errors"]] == [(place, problem["detail"])], fields


KIB = 1024
BODY_LIMITS = {
    "/documents": 12 * MIB,
    "/search": 64 * KIB + 8_000 * 12,
    "/search/dual-level": 64 * KIB + 8_000 * 12,
    "/answers": 64 * KIB + 21 * 8_000 * 12,
    "/admin/communities/rebuild": 64 * KIB,
}


@pytest.mark.usefixtures("dual_level")
@pytest.mark.parametrize("declared", [True, False], ids=["with Content-Length", "chunked"])
@pytest.mark.parametrize("path", BODY_LIMITS)
async def test_a_body_beyond_the_limit_of_its_route_is_refused(world: World, path: str, declared: bool) -> None:
    limit = BODY_LIMITS[path]
    body = b'{"text": "' + b"x" * limit + b'"}'
    sent = 0

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal sent
        for start in range(0, len(body), MIB):
            sent += 1
            yield body[start : start + MIB]

    before = await world.held()
    content: Any = body if declared else pieces()
    response = await world.alpha.request("POST", path, content=content, headers={"Content-Type": JSON})
    assert (response.status_code, response.json()["code"]) == (413, "payload_too_large")
    assert str(limit) in response.json()["detail"]
    assert not declared or str(len(body)) in response.json()["detail"]
    assert await world.held() == before


async def test_a_forged_cursor_is_refused(world: World) -> None:
    """The checksum of a cursor can be forged by reading the source, so its content is validated too."""
    from agentic_rag_backend.stores.catalogue.pages import encode_cursor

    positions: list[list[Any]] = [["yesterday", "x"], ["", ""], [1, 2], [], ["2026-01-01", "x", 3]]
    for scope, path in (("documents", "/documents"), ("jobs", "/jobs")):
        for position in positions:
            response = await world.alpha.get(path, params={"cursor": encode_cursor(scope, position)})
            assert response.status_code == 422, (position, response.text)
